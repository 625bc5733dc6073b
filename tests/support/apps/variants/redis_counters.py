"""Counters in Redis: of free places, and of requests in the windows of rate limits.

Two of the five designs in docs/defects.md count free places in Redis.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from redis.asyncio import Redis

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.booking_refusals import SlotFull
from slotlock.domain.booking.decision import CommandResult, LoadedState
from slotlock.domain.booking.slot_state import SlotState
from slotlock.infrastructure.mongo.slots.slot_query import SlotQuery
from slotlock.infrastructure.mongo.slots.slot_repository import SlotRepository
from slotlock.infrastructure.mongo.slots.write_set import CommitResult, WriteSet
from slotlock.infrastructure.mongo.slots.writer import SlotWriter
from slotlock.infrastructure.redis.rate_limits import RateLimit
from slotlock.services.booking import book
from slotlock.services.caller_queue import BatchServer, LockedBatch
from slotlock.services.caller_queues import CallerQueues, Command
from tests.support.apps.pause_points import replace_everywhere
from tests.support.apps.variants.locks import serve_groups_alone

# Windows begin at multiples of their length since 1970: this one ends in 2033.
ENDLESS_WINDOW_S = 1_000_000_000

original_find_for_update, original_find_each, original_commit, original_book = (
    SlotRepository.find_for_update,
    SlotRepository.find_each_for_update,
    SlotWriter.commit,
    book.book_slot,
)


@cache
def _redis() -> Redis:
    return Redis.from_url(os.environ["SLOTLOCK_REDIS_URL"])


def _counter_key(slot_id: SlotId) -> str:
    return f"remaining:{slot_id}"


async def _find_with_cached_count(self: SlotRepository, *queries: SlotQuery) -> LoadedState:
    loaded = await original_find_for_update(self, *queries)
    slots = {slot_id: await _with_cached_count(slot) for slot_id, slot in loaded.slots.items()}
    return LoadedState(slots, loaded.users)


async def _find_each_with_cached_count(
    self: SlotRepository, queries: Sequence[SlotQuery]
) -> Mapping[SlotId, SlotState | Exception]:
    found = await original_find_each(self, queries)
    return {
        slot_id: await _with_cached_count(slot) if isinstance(slot, SlotState) else slot
        for slot_id, slot in found.items()
    }


async def _with_cached_count(slot: SlotState) -> SlotState:
    left = await _redis().get(_counter_key(slot.id))
    return replace(slot, booked_count=slot.slot.capacity - int(left) if left else 0)


async def _commit_and_cache_count(self: SlotWriter, changes: WriteSet) -> CommitResult:
    result = await original_commit(self, changes)
    for change in changes.slot_writes if result is CommitResult.WRITTEN else ():
        await _redis().set(_counter_key(change.after.id), change.after.remaining)
    return result


def trust_cached_counts() -> None:
    """Read the number of free places from Redis; a missing counter means all (D2)."""
    serve_groups_alone()
    SlotRepository.find_for_update = _find_with_cached_count  # type: ignore[method-assign]
    SlotRepository.find_each_for_update = (  # type: ignore[method-assign]
        _find_each_with_cached_count
    )
    SlotWriter.commit = _commit_and_cache_count  # type: ignore[method-assign]


async def _decrement_then_book(services: Any, caller: Any, slot_id: SlotId, *options: Any) -> Any:
    slot = await services.slots.find(SlotQuery(slot_id, services.now(), ()))
    if slot is not None:
        await _redis().set(_counter_key(slot_id), slot.slot.capacity, nx=True)
        if await _redis().decr(_counter_key(slot_id)) < 0:
            return CommandResult(SlotFull(slot_id), {slot_id: slot})
    return await original_book(services, caller, slot_id, *options)


async def _submit_alone(
    self: CallerQueues[Command],
    slot_id: SlotId,
    command: Command,
    wait_s: float,
    server: BatchServer[Command],
) -> CommandResult[object] | None:
    lease = await self._locks.acquire(slot_id, wait_s=wait_s)
    if lease is None:
        return None
    (result,) = await server.serve(LockedBatch(slot_id, lease, [command]))
    return result


def admit_by_redis_counter() -> None:
    """Decrement a counter in Redis first; a later failure does not increment it (D5).

    As in that design, every request acquires the lock for itself.
    """
    replace_everywhere(original_book, _decrement_then_book)
    CallerQueues.submit = _submit_alone  # type: ignore[method-assign]


def make_windows_endless() -> None:
    """Count all that a test does in one window of each rate limit, however long it takes."""
    endless = property(lambda _: ENDLESS_WINDOW_S, lambda _, __: None)
    RateLimit.window_s = endless  # type: ignore[assignment]


FAULTS = {"endless-windows": make_windows_endless}
GUARDS = {"counts-in-mongo": trust_cached_counts, "no-redis-counter": admit_by_redis_counter}
