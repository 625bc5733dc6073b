"""The one act behind everything that changes a roster: lock, look, decide, write, tell."""

import random
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TypeVar

from slotlock.desk.desk import Desk
from slotlock.domain.booking import Decision
from slotlock.domain.outcomes import Locked
from slotlock.domain.slots import Availability, Slot, SlotId, availability

Outcome = TypeVar("Outcome")

# A second try reads what the first one missed; a third would mean the lock is of no use now.
TRIES = 2
# Holding a lock takes milliseconds. The spread keeps those refused together from returning so.
RETRY_AFTER_MS = (50, 250)


async def act(
    desk: Desk,
    slot_id: SlotId,
    look: Callable[[], Awaitable[Slot | None]],
    decide: Callable[[Slot, datetime], Decision[Outcome]],
) -> Outcome | Locked | None:
    """The outcome of a decision on one slot, written if it changes anything.

    None when `look` finds no slot. Locked when there is something to write while somebody else is
    being served there, or when others wrote first both times. If the lease runs out or this
    process dies on any line, the slot is as before the write or as after it: the write is one
    guarded by the version that was looked at.
    """
    lease = await desk.locks.acquire(slot_id)
    if lease is None:
        return await _turned_away(desk, slot_id, look, decide)
    news: Availability | None = None
    try:
        now = desk.now()
        for _ in range(TRIES):
            slot = await look()
            if slot is None:
                return None
            decision = decide(slot, now)
            if not decision.changes:
                return decision.outcome
            if await desk.slots.commit(slot, decision):
                news = availability(decision.slot)
                desk.board.tell(news)
                return decision.outcome
        return locked(slot_id)
    finally:
        await desk.locks.release(lease, *([news] if news else []))


async def _turned_away(
    desk: Desk,
    slot_id: SlotId,
    look: Callable[[], Awaitable[Slot | None]],
    decide: Callable[[Slot, datetime], Decision[Outcome]],
) -> Outcome | Locked | None:
    # A refusal needs no lock: who asks for a slot that is full is told so, not to ask again.
    slot = await look()
    if slot is None:
        return None
    decision = decide(slot, desk.now())
    return locked(slot_id) if decision.changes else decision.outcome


def locked(slot_id: SlotId) -> Locked:
    """The answer to whoever is not served now."""
    return Locked(slot_id, random.randint(*RETRY_AFTER_MS))  # noqa: S311
