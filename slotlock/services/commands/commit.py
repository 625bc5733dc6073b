"""Commits a batch of commands: load, decide, write, publish; and again after a conflict."""

import asyncio
import random
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from slotlock.domain.audit.audit_notes import AuditNote
from slotlock.domain.booking.availability import Availability, to_availability
from slotlock.domain.booking.booking import EndedWaitlistEntry, SlotId
from slotlock.domain.booking.booking_refusals import Locked
from slotlock.domain.booking.decision import CommandResult, LoadedState
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.teams.team import TeamVersion
from slotlock.infrastructure.mongo.idempotency.records import IdempotencyRecord
from slotlock.infrastructure.mongo.slots.write_set import (
    Precondition,
    SlotWrite,
    WriteSet,
    check_written,
)
from slotlock.infrastructure.redis.locks.lock_leases import LockLease
from slotlock.infrastructure.telemetry import tracing
from slotlock.services.batch_decision import BatchDecision, decide_batch
from slotlock.services.commands.idempotency import find_replay, to_record
from slotlock.services.commands.slot_redaction import SlotRedactor
from slotlock.services.container import Services
from slotlock.services.slot_command import SlotCommand, slot_ids_of, slot_query

# A second attempt usually succeeds. More are needed when one user books several slots of a campaign
# at once: their version document conflicts, and the lock of one slot does not order those writes.
MAX_COMMIT_ATTEMPTS = 5
# A lock is held for milliseconds. The spread keeps refused clients from retrying together.
RETRY_AFTER_MS = (50, 250)


@value_object
class BatchResult:
    """One result per command, in their order, and the availability to publish."""

    results: tuple[CommandResult[object], ...]
    events: tuple[Availability, ...] = ()


async def serve_and_release(
    services: Services, lease: LockLease, commands: Sequence[SlotCommand[object]]
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


def locked_refusal(slot_id: SlotId) -> Locked:
    """Return the refusal that asks the client to retry after a random pause."""
    return Locked(slot_id, random.randint(*RETRY_AFTER_MS))  # noqa: S311


def locked_result(command: SlotCommand[object]) -> CommandResult[object]:
    """Return the result of a command whose slots other commands have locked or changed."""
    return CommandResult(locked_refusal(command.slot_ids[0]))


async def decide_and_commit(
    services: Services,
    commands: Sequence[SlotCommand[object]],
    max_attempts: int = MAX_COMMIT_ATTEMPTS,
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
        loaded = await load_slots(services, batch, now)
        with tracing.span("slotlock.decide"):
            decided = decide_batch(loaded, batch, now)
        results |= zip(pending, decided.results, strict=True)
        changes = write_set(batch, decided, now)
        is_empty = not (decided.updates or changes.preconditions)
        if is_empty or await _commit(services, changes):
            services.free_place_hints.observe(decided.slots.values())
            events = publish_changes(services, decided.updates)
            break
        if not any(decided.needs_write):  # another writer ends the expired holds
            break
        is_on_unwritten = False
        for number, needs_write in zip(pending, decided.needs_write, strict=True):
            # A later refusal may be due to a change that was not written either.
            is_on_unwritten = is_on_unwritten or needs_write
            if is_on_unwritten:
                results[number] = locked_result(pending[number])
        replays = await _find_replays(services, pending)
        results |= replays
        pending = {n: command for n, command in pending.items() if n not in replays}
        if not pending:
            break
    return BatchResult(tuple(results[n] for n in range(len(commands))), events)


async def _commit(services: Services, changes: WriteSet) -> bool:
    """Write the changes; False if another writer was faster."""
    with tracing.span("slotlock.commit"):
        return check_written(await services.slot_writer.commit(changes))


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


def write_set(
    commands: Sequence[SlotCommand[object]], decided: BatchDecision, now: datetime
) -> WriteSet:
    """Return what the commands write, and what their decision relied on.

    Each accepted command that has an idempotency key has a record.
    """
    records: list[IdempotencyRecord] = []
    team_versions: list[TeamVersion] = []
    preconditions: list[Precondition] = []
    notes: list[AuditNote] = []
    redactor: SlotRedactor | None = None
    for command, decision in zip(commands, decided.decisions, strict=True):
        team_versions += command.team_versions
        if command.is_edit:
            preconditions += command.preconditions
            notes += audit_notes(command, decided.updates)
        if decision.accepted and (key := command.idempotency_key):
            redactor = redactor or SlotRedactor(decided.slots)
            shown = redactor.shown_slots(decision.outcome, command.user_ids)
            records.append(to_record(key, decision.outcome, now, shown))
    return WriteSet(
        decided.updates,
        decided.users,
        tuple(records),
        tuple(team_versions),
        preconditions=tuple(preconditions),
        audit_notes=tuple(notes),
    )


def audit_notes(command: SlotCommand[object], updates: Sequence[SlotWrite]) -> Iterator[AuditNote]:
    """Return the audit notes that a command writes about the changed slots."""
    return filter(None, map(command.audit_note, updates))


async def load_slots(
    services: Services, commands: Sequence[SlotCommand[object]], now: datetime
) -> LoadedState:
    """Load the slots of the commands, as far as these need them."""
    with tracing.span("slotlock.load"):
        return await services.slots.find_for_update(
            *(slot_query(slot_id, commands, now) for slot_id in slot_ids_of(commands))
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


def publish_changes(services: Services, updates: Sequence[SlotWrite]) -> tuple[Availability, ...]:
    """Notify the subscribers of this process and return the availability for the others.

    Users whose bookings were changed by another user are notified in every process.
    """
    availability: list[Availability] = []
    for update in updates:
        change = update.after.change
        # An entry of the waiting list that ended has the id that its booking would have.
        lost = map(EndedWaitlistEntry.to_booking, change.ended_entries)
        for booking in (*change.added, *change.changed, *change.ended, *lost):
            if booking.history[-1].by != booking.user_id:
                services.slot_events.publish_booking_changed([booking])
        state = to_availability(update.after)
        availability.append(state)
        services.availability.publish(state)
    return tuple(availability)
