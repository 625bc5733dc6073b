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

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.promotion import next_deadline
from slotlock.infrastructure.batching import chunked
from slotlock.infrastructure.mongo.client import is_unavailable
from slotlock.infrastructure.mongo.slots.change_set import ChangeSet, SlotChange, check_written
from slotlock.infrastructure.mongo.slots.repository import SlotQuery
from slotlock.infrastructure.redis.keys import HOLD_SWEEPER_LOCK
from slotlock.infrastructure.redis.locks.locks import Locks
from slotlock.services.booking.waitlist import remove_recently_banned
from slotlock.services.campaigns.campaigns import resume_propagation
from slotlock.services.commands.decisions import decide_batch
from slotlock.services.commands.executor import publish_changes
from slotlock.services.container import Services

log = logging.getLogger("slotlock.sweeping")

SWEEP_INTERVAL_S = 0.25
# In sweeps: some two seconds.
MAINTENANCE_EVERY = 8
# What was decided on before is written or given up by then.
WRITE_GRACE_PERIOD = timedelta(seconds=10)
MAX_DUE_SLOTS = 500
SWEEP_BATCH_SIZE = 100
MAX_ENDED_PER_TRANSACTION = 1000
# What dies while it sweeps is replaced after so long.
SWEEPER_LEASE_TTL_MS = 1_000
WAITLIST_DEPTH = 8
SWEEP_DEFERRAL = timedelta(seconds=5)

HOLDS_EXPIRED_TOTAL = Counter(
    "slotlock_holds_expired_total", "Expired holds and offers released by the sweeper"
)


@contextlib.asynccontextmanager
async def hold_sweeper(services: Services, worker_locks: Locks) -> AsyncIterator[None]:
    """Sweep for as long as this lasts, in turn with the other processes."""
    task = asyncio.create_task(_sweep_forever(services, worker_locks))
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def _sweep_forever(services: Services, worker_locks: Locks) -> None:
    for number in count():
        try:
            found = await _sweep_with_lease(
                services, worker_locks, with_maintenance=number % MAINTENANCE_EVERY == 0
            )
        except Exception as error:
            # The truth may be away for a while; the sweeper must outlive that.
            found = 0
            log.warning(
                "holds were not swept up", exc_info=None if is_unavailable(error) else error
            )
        if found < MAX_DUE_SLOTS:
            await asyncio.sleep(SWEEP_INTERVAL_S)


async def _sweep_with_lease(
    services: Services, worker_locks: Locks, *, with_maintenance: bool
) -> int:
    # Two who sweep the same slots at once only keep each other from writing.
    lease = await worker_locks.acquire(HOLD_SWEEPER_LOCK)
    if lease is None:
        return 0
    try:
        swept = await sweep(services)
        if with_maintenance:  # last: what cannot be written shall keep no hold alive
            await resume_interrupted_work(services)
        return swept
    finally:
        await worker_locks.release(lease)


async def resume_interrupted_work(services: Services) -> None:
    """Go on with what organisers did, where a process died or something was on its way."""
    await resume_propagation(services)
    await remove_recently_banned(services)
    now = services.now()
    await services.users.waitlist_groups.sync_pending(now - WRITE_GRACE_PERIOD, now)


async def sweep(services: Services) -> int:
    """Sweep up the holds that ran out; returns how many slots were due."""
    found = await services.slots.find_due(services.now(), MAX_DUE_SLOTS)
    await asyncio.gather(
        *(_sweep_slots(services, part) for part in chunked(found, SWEEP_BATCH_SIZE))
    )
    return len(found)


async def _sweep_slots(services: Services, slot_ids: Sequence[SlotId]) -> None:
    try:
        await _expire_and_promote(services, slot_ids)
    except Exception as error:
        if is_unavailable(error):
            raise
        if len(slot_ids) == 1:
            log.warning("the holds of slot %s were not swept up", slot_ids[0], exc_info=error)
            await services.slot_writer.defer_sweep(slot_ids[0], services.now() + SWEEP_DEFERRAL)
            return
        # One that cannot be read or written keeps no other hold alive.
        half = len(slot_ids) // 2
        await _sweep_slots(services, slot_ids[:half])
        await _sweep_slots(services, slot_ids[half:])


async def _expire_and_promote(services: Services, slot_ids: Sequence[SlotId]) -> None:
    now = services.now()
    looks = (
        services.slots.find_for_update(SlotQuery(slot_id, now, waitlist_depth=WAITLIST_DEPTH))
        for slot_id in slot_ids
    )
    slots = {slot.id: slot for (slot,) in await asyncio.gather(*looks) if slot is not None}
    decided = decide_batch(slots, [], now)
    settled = {change.before.id for change in decided.changes}
    # A hold that was confirmed or given up leaves a time behind at which nothing runs out.
    others = [
        replace(slot, next_deadline=next_deadline(slot, now))
        for id_, slot in slots.items()
        if id_ not in settled
    ]
    await asyncio.gather(*map(services.slot_writer.set_next_deadline, others))
    for part in _split_into_transactions(decided.changes):
        await _commit_and_publish(services, part)


def _split_into_transactions(changes: Sequence[SlotChange]) -> Iterator[tuple[SlotChange, ...]]:
    """The changes in parts that are one transaction each, by how many bookings end in them."""
    part: list[SlotChange] = []
    ends = 0
    for change in changes:
        if part and ends + len(change.after.ended_bookings) > MAX_ENDED_PER_TRANSACTION:
            yield tuple(part)
            part, ends = [], 0
        part.append(change)
        ends += len(change.after.ended_bookings)
    if part:
        yield tuple(part)


async def _commit_and_publish(services: Services, changes: tuple[SlotChange, ...]) -> None:
    if check_written(await services.slot_writer.commit(ChangeSet(changes))):
        HOLDS_EXPIRED_TOTAL.inc(sum(len(change.after.ended_bookings) for change in changes))
        for state in publish_changes(services, changes):
            services.slot_events.publish(state)
    elif len(changes) > 1:
        # Somebody wrote to one of them meanwhile: the others shall not wait for that one. They are
        # decided anew, since who got a place in one slot may have lost their turn in another.
        half = len(changes) // 2
        for part in (changes[:half], changes[half:]):
            await _expire_and_promote(services, [change.before.id for change in part])
