"""Executing commands: acquire the locks, load the slots, decide, commit, release and publish.

The calls of `bookSlot`, from the resolver to the domain rule: `book_slot`, `execute_booking` and
`_execute_if_permitted` (services/booking/book), `execute` (here), `WaitQueues.submit`
(services/wait_queue), `serve_and_release` and `decide_and_commit` (here), `decide_batch`
(decisions), `BookSlotCommand.apply` and `book` (domain/booking/rules). A command for several slots
or for a team passes through `run_with_lock` instead of `WaitQueues`. `decide_and_commit` writes
with `SlotWriter.commit`.
"""

import asyncio
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TypeVar

from slotlock.domain.booking.availability import Availability, to_availability
from slotlock.domain.booking.booking import Booking, SlotId
from slotlock.domain.booking.decision import CommandResult, LoadedState
from slotlock.domain.booking.refusals import Locked
from slotlock.infrastructure.mongo.slots.change_set import ChangeSet, SlotUpdate, check_written
from slotlock.infrastructure.mongo.slots.slot_query import SlotQuery
from slotlock.infrastructure.redis.locks.leases import Lease
from slotlock.services.commands.decisions import (
    BatchDecision,
    audit_notes,
    decide_batch,
    idempotency_records,
)
from slotlock.services.commands.idempotency import find_replay
from slotlock.services.container import Services
from slotlock.services.deadline import Deadline
from slotlock.services.slot_command import SlotCommand

Outcome = TypeVar("Outcome")

# A second attempt usually succeeds. More are needed when one user books several slots of a campaign
# at once: their version document conflicts, and the lock of one slot does not order those writes.
MAX_ATTEMPTS = 5
# No response waits for the release of a lock: the next request, sent to another process, may come
# before it. So the first failed acquisition does not show that the slot is still being changed.
ACQUISITIONS_WITHOUT_WAIT = 2
# A lock is held for milliseconds. The spread keeps refused clients from retrying together.
RETRY_AFTER_MS = (50, 250)
# Waitlist entries to load besides those that can be promoted: some users have booked elsewhere.
EXTRA_WAITLIST_DEPTH = 4


@dataclass(frozen=True, slots=True)
class BatchResult:
    """One result per command, in their order, and the availability to publish."""

    results: tuple[CommandResult[object], ...]
    events: tuple[Availability, ...] = ()


async def execute(
    services: Services, command: SlotCommand[Outcome], wait_s: float = 0.0
) -> CommandResult[Outcome]:
    """Execute one command and return its result.

    The outcome is Locked if the command would change a slot, but the slot stays locked for the
    whole wait or other writers win every attempt. The write is a single one, conditional on the
    versions that were read: if the lease expires or the process dies, it has happened completely or
    not at all.
    """
    if len(command.slot_ids) == 1 and not command.team_versions:
        return command.check_result(await _execute_in_batch(services, command, wait_s))
    deadline = Deadline.after(wait_s)
    if len(command.slot_ids) > 1:
        # The locks of several slots block many callers: a command without a write takes none.
        decided = await preview(services, command)
        if not decided.updates:
            return command.check_result(decided.results[0])
    while results := await run_with_lock(services, [command], deadline.remaining_s):
        # A team may have changed: the caller checks its permission again before the next attempt.
        is_retryable = isinstance(results[0].outcome, Locked) and not command.team_versions
        if not (is_retryable and deadline.remaining_s):
            return command.check_result(results[0])
    return command.check_result(await _preview_without_lock(services, command))


async def _execute_in_batch(
    services: Services, command: SlotCommand[object], wait_s: float
) -> CommandResult[object]:
    """Execute a command for one slot together with the others that reach the slot with it.

    A caller who does not wait asks for no lock while the slot is full and refuses the command.
    """
    if wait_s <= 0 and command.slot_ids[0] in services.full_slots:
        refused = await _preview_without_lock(services, command)
        if not isinstance(refused.outcome, Locked):
            return refused
    serve_batch = partial(serve_and_release, services)
    attempts_left = 1 if wait_s > 0 else ACQUISITIONS_WITHOUT_WAIT
    while True:
        result = await services.wait_queues.submit(
            command.slot_ids[0], command, wait_s, serve_batch
        )
        if result is not None:
            return result
        attempts_left -= 1
        refused = await _preview_without_lock(services, command)
        if not (attempts_left and isinstance(refused.outcome, Locked)):
            return refused


async def run_with_lock(
    services: Services, commands: Sequence[SlotCommand[object]], wait_s: float
) -> tuple[CommandResult[object], ...] | None:
    """Execute the commands while holding their locks; None if these were not acquired in time."""
    lease = await services.locks.acquire(*_slot_ids(commands), wait_s=wait_s)
    return None if lease is None else await serve_and_release(services, lease, commands)


async def serve_and_release(
    services: Services, lease: Lease, commands: Sequence[SlotCommand[object]]
) -> tuple[CommandResult[object], ...]:
    """Execute the commands, then release the lease and publish the events in one round trip.

    The results do not wait for this round trip.
    """
    events: tuple[Availability, ...] = ()
    try:
        batch = await decide_and_commit(services, commands)
        events = batch.events
        return batch.results
    finally:
        await services.locks.release(lease, *events)


async def preview(services: Services, command: SlotCommand[object]) -> BatchDecision:
    """Decide a command on the current slots without writing anything."""
    now = services.now()
    return decide_batch(await _load_slots(services, [command], now), [command], now)


async def _preview_without_lock(
    services: Services, command: SlotCommand[object]
) -> CommandResult[object]:
    """Return the outcome without the lock; Locked if the command needs a write.

    A refusal needs no lock: the caller of a full slot learns that it is full, not to retry.
    """
    decided = await preview(services, command)
    if decided.has_requested_changes:
        return locked_result(command)
    return decided.results[0]


def locked_refusal(slot_id: SlotId) -> Locked:
    """Return the refusal that asks the client to retry after a random pause."""
    return Locked(slot_id, random.randint(*RETRY_AFTER_MS))  # noqa: S311


def locked_result(command: SlotCommand[object]) -> CommandResult[object]:
    """Return the result of a command whose slots other commands have locked or changed."""
    return CommandResult(locked_refusal(command.slot_ids[0]))


async def decide_and_commit(
    services: Services, commands: Sequence[SlotCommand[object]], max_attempts: int = MAX_ATTEMPTS
) -> BatchResult:
    """Apply the commands in order against one read and commit them in one write.

    After a version conflict, commands whose idempotency key has an outcome by now replay it, and
    the others are decided again. Local subscribers are notified after the write.
    """
    results = _refuse_repeated_keys(commands)
    pending = {n: command for n, command in enumerate(commands) if n not in results}
    events: tuple[Availability, ...] = ()
    for _ in range(max_attempts if pending else 0):
        batch = tuple(pending.values())
        now = services.now()  # read again by each attempt: a hold may have expired since the last
        decided = decide_batch(await _load_slots(services, batch, now), batch, now)
        results |= zip(pending, decided.results, strict=True)
        change_set = _change_set(batch, decided, now)
        if not decided.updates or check_written(await services.slot_writer.commit(change_set)):
            services.full_slots.observe(decided.slots.values())
            events = publish_changes(services, decided.updates)
            break
        if not decided.has_requested_changes:  # another writer ends the expired holds
            break
        for (number, command), decision in zip(pending.items(), decided.decisions, strict=True):
            if decision.changed_slots:
                results[number] = locked_result(command)
        replays = await _find_replays(services, pending)
        results |= replays
        pending = {n: command for n, command in pending.items() if n not in replays}
        if not pending:
            break
    return BatchResult(tuple(results[n] for n in range(len(commands))), events)


def _refuse_repeated_keys(
    commands: Sequence[SlotCommand[object]],
) -> dict[int, CommandResult[object]]:
    """Return Locked for all but the first command of each idempotency key.

    A key comes twice in a batch if Redis lost its lock. The retry finds the outcome of the first.
    """
    seen: set[str] = set()
    refused: dict[int, CommandResult[object]] = {}
    for number, command in enumerate(commands):
        if key := command.idempotency_key:
            if key.record_id in seen:
                refused[number] = locked_result(command)
            seen.add(key.record_id)
    return refused


def _change_set(
    commands: Sequence[SlotCommand[object]], decided: BatchDecision, now: datetime
) -> ChangeSet:
    return ChangeSet(
        decided.updates,
        decided.users,
        idempotency_records(commands, decided, now),
        tuple(version for command in commands for version in command.team_versions),
        preconditions=tuple(each for command in commands for each in command.preconditions),
        audit_notes=audit_notes(commands, decided.updates),
    )


async def _find_replays(
    services: Services, pending: Mapping[int, SlotCommand[object]]
) -> dict[int, CommandResult[object]]:
    """Return the outcomes of those commands whose keys were used by another process meanwhile."""
    keys = {n: command.idempotency_key for n, command in pending.items() if command.idempotency_key}
    found = await asyncio.gather(
        *(find_replay(services.idempotency_records, key) for key in keys.values())
    )
    return {n: result for n, result in zip(keys, found, strict=True) if result is not None}


async def _load_slots(
    services: Services, commands: Sequence[SlotCommand[object]], now: datetime
) -> LoadedState:
    user_ids = tuple({user_id for command in commands for user_id in command.user_ids})
    booking_ids = tuple({id_ for command in commands for id_ in command.booking_ids})
    depth = sum(command.waitlist_depth for command in commands) + EXTRA_WAITLIST_DEPTH
    return await services.slots.find_for_update(
        *(SlotQuery(slot_id, now, user_ids, booking_ids, depth) for slot_id in _slot_ids(commands))
    )


def _slot_ids(commands: Iterable[SlotCommand[object]]) -> list[SlotId]:
    return sorted({slot_id for command in commands for slot_id in command.slot_ids})


def publish_changes(services: Services, updates: Sequence[SlotUpdate]) -> tuple[Availability, ...]:
    """Notify the subscribers of this process and return the availability for the others.

    Users whose bookings were changed by another user are notified in every process.
    """
    services.slot_events.publish_booking_changed(
        booking for update in updates for booking in _bookings_changed_by_others(update)
    )
    availability = tuple(to_availability(update.after) for update in updates)
    for state in availability:
        services.availability.publish(state)
    return availability


def _bookings_changed_by_others(update: SlotUpdate) -> Iterator[Booking]:
    change = update.after.change
    for booking in (*change.added, *change.changed, *change.ended):
        if booking.history[-1].by != booking.user_id:
            yield booking
