"""Sweeping up holds that ran out, so that those who wait and those who watch hear of it soon.

Nothing depends on it for being right: every act settles what it looks at. A sweep takes no lock,
since its writes are guarded by version like every other, and it writes many slots at once, since
thousands of holds may run out in the same second.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import count

from prometheus_client import Counter

from slotlock.desk.act import tell
from slotlock.desk.campaigns import finish_spreading
from slotlock.desk.deciding import decide
from slotlock.desk.desk import Desk
from slotlock.desk.waitlist import finish_leaving
from slotlock.domain.bookings import SlotId
from slotlock.domain.settling import due
from slotlock.stores.batches import in_parts
from slotlock.stores.locks import Locks
from slotlock.stores.mongo import is_away
from slotlock.stores.slots import Look
from slotlock.stores.writes import Change, Changes

log = logging.getLogger("slotlock.sweeping")

SWEEP_EVERY_S = 0.25
# In sweeps: some two seconds.
UPKEEP_EVERY = 8
# What was decided on before is written or given up by then.
WRITTEN_WITHIN = timedelta(seconds=10)
MOST_DUE = 500
LARGEST_SWEEP = 100
MOST_ENDED = 1000
TURN = SlotId("sweep")
# What dies while it sweeps is replaced after so long.
TURN_TTL_MS = 1_000
HEADS = 8
POSTPONED_BY = timedelta(seconds=5)

SWEPT = Counter("slotlock_holds_expired_total", "Holds and offers that ran out and were swept up")


@contextlib.asynccontextmanager
async def sweeping(desk: Desk, turns: Locks) -> AsyncIterator[None]:
    """Sweep for as long as this lasts, in turn with the other processes."""
    task = asyncio.create_task(_sweep_for_ever(desk, turns))
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def _sweep_for_ever(desk: Desk, turns: Locks) -> None:
    for number in count():
        try:
            found = await _sweep_in_turn(desk, turns, finish=number % UPKEEP_EVERY == 0)
        except Exception as error:
            # The truth may be away for a while; the sweeper must outlive that.
            found = 0
            log.warning("holds were not swept up", exc_info=None if is_away(error) else error)
        if found < MOST_DUE:
            await asyncio.sleep(SWEEP_EVERY_S)


async def _sweep_in_turn(desk: Desk, turns: Locks, *, finish: bool) -> int:
    # Two who sweep the same slots at once only keep each other from writing.
    lease = await turns.acquire(TURN)
    if lease is None:
        return 0
    try:
        swept = await sweep(desk)
        if finish:  # last: what cannot be written shall keep no hold alive
            await finish_acts(desk)
        return swept
    finally:
        await turns.release(lease)


async def finish_acts(desk: Desk) -> None:
    """Go on with what organisers did, where a process died or something was on its way."""
    await finish_spreading(desk)
    await finish_leaving(desk)
    now = desk.now()
    await desk.users.waiting.finish(now - WRITTEN_WITHIN, now)


async def sweep(desk: Desk) -> int:
    """Sweep up the holds that ran out; returns how many slots were due."""
    found = await desk.slots.due(desk.now(), MOST_DUE)
    await asyncio.gather(*(_sweep(desk, part) for part in in_parts(found, LARGEST_SWEEP)))
    return len(found)


async def _sweep(desk: Desk, slot_ids: Sequence[SlotId]) -> None:
    try:
        await _settle(desk, slot_ids)
    except Exception as error:
        if is_away(error):
            raise
        if len(slot_ids) == 1:
            log.warning("the holds of slot %s were not swept up", slot_ids[0], exc_info=error)
            await desk.writes.postpone(slot_ids[0], desk.now() + POSTPONED_BY)
            return
        # One that cannot be read or written keeps no other hold alive.
        half = len(slot_ids) // 2
        await _sweep(desk, slot_ids[:half])
        await _sweep(desk, slot_ids[half:])


async def _settle(desk: Desk, slot_ids: Sequence[SlotId]) -> None:
    now = desk.now()
    looks = (desk.slots.look_to_decide(Look(slot_id, now, heads=HEADS)) for slot_id in slot_ids)
    slots = {slot.id: slot for (slot,) in await asyncio.gather(*looks) if slot is not None}
    decided = decide(slots, [], now)
    settled = {change.before.id for change in decided.changes}
    # A hold that was confirmed or given up leaves a time behind at which nothing runs out.
    others = [
        replace(slot, due=due(slot, now)) for id_, slot in slots.items() if id_ not in settled
    ]
    await asyncio.gather(*map(desk.writes.correct_due, others))
    for part in _parts(decided.changes):
        await _write(desk, part)


def _parts(changes: Sequence[Change]) -> Iterator[tuple[Change, ...]]:
    """The changes in parts that are one transaction each, by how many bookings end in them."""
    part: list[Change] = []
    ends = 0
    for change in changes:
        if part and ends + len(change.after.ended) > MOST_ENDED:
            yield tuple(part)
            part, ends = [], 0
        part.append(change)
        ends += len(change.after.ended)
    if part:
        yield tuple(part)


async def _write(desk: Desk, changes: tuple[Change, ...]) -> None:
    if await desk.writes.commit(Changes(changes)):
        SWEPT.inc(sum(len(change.after.ended) for change in changes))
        for state in tell(desk, changes):
            desk.announcements.publish(state)
    elif len(changes) > 1:
        # Somebody wrote to one of them meanwhile: the others shall not wait for that one. They are
        # decided anew, since who got a place in one slot may have lost their turn in another.
        half = len(changes) // 2
        for part in (changes[:half], changes[half:]):
            await _settle(desk, [change.before.id for change in part])
