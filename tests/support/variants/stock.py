"""Places kept in Redis instead of where the bookings are, as two of the five designs had it."""

import os
from dataclasses import replace
from functools import cache
from typing import Any

from redis.asyncio import Redis

from slotlock.desk import booking
from slotlock.domain.bookings import SlotId
from slotlock.domain.refusals import SlotFull
from slotlock.domain.slots import Slot
from slotlock.stores.slots import Look, Slots
from slotlock.stores.writes import Changes, Writes
from tests.support.variants.points import instead

look_to_decide, commit, book = Slots.look_to_decide, Writes.commit, booking.book


@cache
def _redis() -> Redis:
    return Redis.from_url(os.environ["SLOTLOCK_REDIS_URL"])


def _key(slot_id: SlotId) -> str:
    return f"stock:{slot_id}"


async def _as_cached(self: Slots, *looks: Look) -> list[Slot | None]:
    slots = []
    for slot in await look_to_decide(self, *looks):
        left = await _redis().get(_key(slot.id)) if slot else None
        slots.append(slot and replace(slot, taken=slot.capacity - int(left) if left else 0))
    return slots


async def _caching(self: Writes, changes: Changes) -> bool:
    written = await commit(self, changes)
    for change in changes.slots if written else ():
        await _redis().set(_key(change.after.id), change.after.remaining)
    return written


def stock_in_the_cache() -> None:
    """The places left are what Redis says, and all of them when it says nothing (D2)."""
    Slots.look_to_decide = _as_cached  # type: ignore[method-assign]
    Writes.commit = _caching  # type: ignore[method-assign]


async def _admitted_first(desk: Any, caller: Any, slot_id: SlotId, *more: Any) -> Any:
    slot = await desk.slots.look(Look(slot_id, desk.now(), ()))
    if slot is not None:
        await _redis().set(_key(slot_id), slot.capacity, nx=True)
        if await _redis().decr(_key(slot_id)) < 0:
            return SlotFull(slot)
    return await book(desk, caller, slot_id, *more)


def admission_by_a_counter() -> None:
    """A counter in Redis is lowered first, and what fails afterwards does not raise it (D5)."""
    instead(book, _admitted_first)


GUARDS = {"stock": stock_in_the_cache, "admission": admission_by_a_counter}
