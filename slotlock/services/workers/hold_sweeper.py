"""Releases expired holds and offers, so that waiting users and subscribers learn of it soon.

Correctness does not depend on it: every command first ends the expired holds of its slots. It also
ends the waiting lists of slots that have started, of which nobody can be promoted. A sweep
takes no slot locks, since its writes are conditional on versions like all others. It writes many
slots at once, since thousands of holds may expire in the same second.

A process sweeps at the next deadline that it knows. It learns of a deadline from its last sweep,
which looks ahead until the next one, or because it wrote a near one itself. Holds last a minute or
longer, so that only a change by an organizer in another process can set a deadline that comes
before its next sweep.
"""

import asyncio
import contextlib
import logging
import random
from collections import deque
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from prometheus_client import Counter

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.rules.next_version import next_deadline
from slotlock.domain.booking.user_contexts import UserContexts
from slotlock.infrastructure.batching import chunked
from slotlock.infrastructure.mongo.client import is_unavailable
from slotlock.infrastructure.mongo.slots.slot_query import SlotQuery
from slotlock.infrastructure.mongo.slots.write_set import SlotWrite, WriteSet, check_written
from slotlock.infrastructure.redis.keys import HOLD_SWEEPER_LOCK
from slotlock.infrastructure.redis.locks.locks import Locks
from slotlock.infrastructure.tasks import cancel_and_wait, wait_for_event
from slotlock.services.batch_decision import decide_batch
from slotlock.services.booking.waitlist import remove_recently_banned
from slotlock.services.campaigns.campaigns import resume_propagation
from slotlock.services.commands.commit import publish_changes
from slotlock.services.container import Services
from slotlock.services.erasure import finish_erasures

log = logging.getLogger("slotlock.hold_sweeper")

# The time between two sweeps while there is something to do, and while there is nothing.
SWEEP_INTERVAL_S = 0.25
IDLE_INTERVAL_S = (1.5, 2.5)
# How often a process looks for interrupted work.
CRASH_RECOVERY_INTERVAL_S = 4.0
# The pause between two leases of a process, in which another one may get the lease.
LEASE_PAUSE_S = 0.1
# MongoDB stores milliseconds, and the time of decisions is truncated to them.
RESOLUTION_S = 0.001
MAX_DUE_SLOTS = 500
SWEEP_BATCH_SIZE = 100
MAX_ENDED_PER_TRANSACTION = 1000
# The time after which another process replaces one that died.
SWEEPER_LEASE_TTL_MS = 1_000
WAITLIST_DEPTH = 8
SWEEP_DEFERRAL = timedelta(seconds=5)
# A write that was decided longer ago is done or abandoned.
WRITE_GRACE_PERIOD = timedelta(seconds=10)

HOLDS_EXPIRED_TOTAL = Counter(
    "slotlock_holds_expired_total", "Expired holds and offers released by the sweeper"
)


@contextlib.asynccontextmanager
async def hold_sweeper(services: Services, lease_locks: Locks) -> AsyncIterator[None]:
    """Sweep while the context is open, in one process at a time."""
    task = asyncio.create_task(_sweep_forever(services, lease_locks))
    try:
        yield
    finally:
        await cancel_and_wait(task)


async def _sweep_forever(services: Services, lease_locks: Locks) -> None:
    clock = asyncio.get_running_loop().time
    recover_at = clock()
    while True:
        begun_at = clock()
        pause_s, deadline_set = SWEEP_INTERVAL_S, services.slot_writer.deadline_set.next
        try:
            # Concurrent sweeps of the same slots would only cause write conflicts.
            lease = await lease_locks.acquire(HOLD_SWEEPER_LOCK)
            if lease is not None:
                is_recovering = begun_at >= recover_at
                if is_recovering:
                    recover_at = begun_at + CRASH_RECOVERY_INTERVAL_S
                try:
                    pause_s = await _sweep_with_lease(services, is_recovering=is_recovering)
                finally:
                    await lease_locks.release(lease)
        except Exception as error:  # the sweeper must outlive an unavailable MongoDB
            log.warning(
                "could not release expired holds", exc_info=None if is_unavailable(error) else error
            )
        await wait_for_event(deadline_set, pause_s)
        await asyncio.sleep(begun_at + SWEEP_INTERVAL_S - clock())


async def _sweep_with_lease(services: Services, *, is_recovering: bool) -> float:
    """Sweep, and return the time in seconds until the next sweep of this process."""
    idle_s = random.uniform(*IDLE_INTERVAL_S)  # noqa: S311 - no secret
    deadlines = await sweep(services, timedelta(seconds=idle_s))
    if is_recovering:  # after the sweep, so that a failure here does not delay the expiry
        await finish_interrupted_changes(services)
    now = services.now()
    if deadlines and deadlines[0] <= now:
        if len(deadlines) < MAX_DUE_SLOTS:
            # With the lease, so that the processes together sweep as often as one.
            await asyncio.sleep(SWEEP_INTERVAL_S)
        return LEASE_PAUSE_S
    return (deadlines[0] - now).total_seconds() + RESOLUTION_S if deadlines else idle_s


async def sweep(services: Services, ahead: timedelta = timedelta()) -> Sequence[datetime]:
    """End the expired holds and the waiting lists of up to MAX_DUE_SLOTS slots that are due.

    Returns the deadlines that it found, also those that come within the time `ahead`, the earliest
    first.
    """
    now = services.now()
    deadlines = await services.slots.find_due(now + ahead, MAX_DUE_SLOTS)
    due = [slot_id for slot_id, deadline in deadlines.items() if deadline <= now]
    await asyncio.gather(
        *(_sweep_slots(services, slot_ids) for slot_ids in chunked(due, SWEEP_BATCH_SIZE))
    )
    return list(deadlines.values())


async def _sweep_slots(services: Services, slot_ids: Sequence[SlotId]) -> None:
    """Sweep slots together, in ever smaller groups where one of them fails or conflicts."""
    groups = deque([slot_ids])
    while groups:
        group = groups.popleft()
        try:
            conflicting_groups = await _sweep_together(services, group)
        except Exception as error:
            if is_unavailable(error):
                raise
            if len(group) == 1:
                await _defer(services, group[0], error)
            else:  # a slot that cannot be read or written must not delay the expiry of other holds
                groups.extend(_halves(group))
        else:
            for conflicting in conflicting_groups:
                # A slot that conflicts alone is due again in the next sweep.
                if len(conflicting) > 1:
                    groups.extend(_halves(conflicting))


def _halves(slot_ids: Sequence[SlotId]) -> tuple[Sequence[SlotId], Sequence[SlotId]]:
    middle = len(slot_ids) // 2
    return slot_ids[:middle], slot_ids[middle:]


async def _defer(services: Services, slot_id: SlotId, error: Exception) -> None:
    log.warning("could not release expired holds of slot_%s", slot_id, exc_info=error)
    await services.slot_writer.defer_sweep(slot_id, services.now() + SWEEP_DEFERRAL)


async def _sweep_together(services: Services, slot_ids: Sequence[SlotId]) -> list[Sequence[SlotId]]:
    """End the expired holds of these slots. Returns the groups that conflicted with other writes.

    They must be decided again: a user who got a place in one slot may no longer want another.
    """
    now = services.now()
    queries = (SlotQuery(slot_id, now, waitlist_depth=WAITLIST_DEPTH) for slot_id in slot_ids)
    loaded = await services.slots.find_for_update(*queries)
    decided = decide_batch(loaded, [], now, ends_waitlists=True)
    changed_ids = {change.before.id for change in decided.updates}
    # A hold that was confirmed or cancelled leaves a deadline at which nothing expires.
    unchanged = [
        replace(slot, next_deadline=next_deadline(slot, loaded.users, now))
        for id_, slot in loaded.slots.items()
        if id_ not in changed_ids
    ]
    await asyncio.gather(*map(services.slot_writer.set_next_deadline, unchanged))
    return [
        [change.before.id for change in changes]
        for changes in _split_into_transactions(decided.updates)
        if not await _commit_and_publish(services, changes, decided.users)
    ]


def _split_into_transactions(changes: Sequence[SlotWrite]) -> Iterator[tuple[SlotWrite, ...]]:
    """Split changes so that each part ends at most MAX_ENDED_PER_TRANSACTION bookings and entries.

    A slot with more of them is a part by itself.
    """
    part: list[SlotWrite] = []
    ended_count = 0
    for write in changes:
        change = write.after.change
        count = len(change.ended) + len(change.ended_entries)
        if part and ended_count + count > MAX_ENDED_PER_TRANSACTION:
            yield tuple(part)
            part, ended_count = [], 0
        part.append(write)
        ended_count += count
    if part:
        yield tuple(part)


async def _commit_and_publish(
    services: Services, changes: tuple[SlotWrite, ...], users: UserContexts
) -> bool:
    """Commit changes in one transaction. Returns False if another write came first."""
    if not check_written(await services.slot_writer.commit(WriteSet(changes, users))):
        return False
    HOLDS_EXPIRED_TOTAL.inc(sum(len(change.after.change.ended) for change in changes))
    for availability in publish_changes(services, changes):
        services.slot_events.publish(availability)
    return True


async def finish_interrupted_changes(services: Services) -> None:
    """Finish changes of organizers whose process crashed before it had applied them everywhere.

    A change is committed first and applied afterwards, so that it does not block bookings
    meanwhile. Examples are the terms of a campaign, the groups of users in waitlist entries, the
    waitlist entries of banned users, what is left of erased users, and what a process with another
    folding stores with a slot or a user. MongoDB shows which are incomplete.
    """
    await resume_propagation(services)
    await remove_recently_banned(services)
    await finish_erasures(services)
    now = services.now()
    await services.waitlist_groups.sync_pending(now - WRITE_GRACE_PERIOD, now)
    await services.slot_writer.backfill_list_fields()
    await services.users.backfill_list_fields()
