"""The one act behind everything that changes a roster: lock, look, decide, write, tell."""

import asyncio
import random
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any, TypeVar, cast

from slotlock.domain.booking.availability import Availability, to_availability
from slotlock.domain.booking.booking import Booking, SlotId
from slotlock.domain.booking.refusals import KeyReused, Locked
from slotlock.domain.booking.slot import Slot
from slotlock.infrastructure.mongo.slots.change_set import ChangeSet, SlotChange, check_written
from slotlock.infrastructure.mongo.slots.repository import SlotQuery
from slotlock.services.commands.decisions import (
    BatchDecision,
    SlotCommand,
    audit_notes,
    decide_batch,
    idempotency_records,
)
from slotlock.services.commands.idempotency import find_replay
from slotlock.services.container import Services

Outcome = TypeVar("Outcome")

# A second try reads what the first one missed. More are for people who ask for several places of
# one campaign at once: each turns their page, and the lock of one slot does not order those.
MAX_ATTEMPTS = 5
# Holding a lock takes milliseconds. The spread keeps those refused together from returning so.
RETRY_AFTER_MS = (50, 250)
# How far down the line is read: those whom freed places go to, and some who have chosen elsewhere.
EXTRA_WAITLIST_DEPTH = 4


async def execute(
    services: Services,
    slot_ids: Sequence[SlotId],
    command: SlotCommand[Outcome],
    wait_s: float = 0.0,
) -> Outcome | Locked | KeyReused:
    """The outcome of a request, written if it changes anything.

    Locked when there is something to write while somebody else is being served there and stays so
    for the time that the caller waits, or when others write first for as long. If the lease runs
    out or this process dies on any line, the slots are as before the write or as after it: the
    write is one, guarded by the versions that were looked at.
    """
    if wait_s > 0 and len(slot_ids) == 1 and not command.team_versions:
        return await _execute_in_wait_queue(services, slot_ids[0], command, wait_s)
    if len(slot_ids) > 1:
        # Locks of several slots keep many others out, and where nothing is to be written none is
        # needed.
        decided = await preview(services, slot_ids, command)
        if not decided.changes:
            return cast("Outcome", decided.outcomes[0])
    clock = asyncio.get_running_loop().time
    until = clock() + wait_s
    while True:
        outcomes = await run_with_lock(
            services, slot_ids, lambda: [command], max(until - clock(), 0.0)
        )
        if outcomes is None:
            break
        (outcome,) = outcomes
        # Others wrote first; who is willing to wait tries again, but not with a team that changed.
        if command.team_versions or not isinstance(outcome, Locked) or clock() >= until:
            return cast("Outcome | Locked | KeyReused", outcome)
    turned: Outcome | Locked = await preview_without_lock(services, slot_ids, command)
    return turned


async def _execute_in_wait_queue(
    services: Services, slot_id: SlotId, command: SlotCommand[Outcome], wait_s: float
) -> Outcome | Locked | KeyReused:
    async def serve_batch(
        wait_s: float, take_commands: Callable[[], list[Any]]
    ) -> list[Any] | None:
        return await run_with_lock(services, [slot_id], take_commands, wait_s)

    outcome: Outcome | None = await services.wait_queues.wait_for_turn(
        slot_id, command, wait_s, serve_batch
    )
    if outcome is not None:
        return outcome
    turned: Outcome | Locked = await preview_without_lock(services, [slot_id], command)
    return turned


async def run_with_lock(
    services: Services,
    slot_ids: Sequence[SlotId],
    take_commands: Callable[[], list[SlotCommand[Any]]],
    wait_s: float,
) -> list[Any] | None:
    """Serve those who are called once the lock is ours; None if it is not in time."""
    lease = await services.locks.acquire(*slot_ids, wait_s=wait_s)
    if lease is None:
        return None
    news: list[Availability] = []
    try:
        requests = take_commands()
        return await decide_and_commit(services, slot_ids, requests, news) if requests else []
    finally:
        await services.locks.release(lease, *news)


async def preview_without_lock(
    services: Services, slot_ids: Sequence[SlotId], command: SlotCommand[Outcome]
) -> Outcome | Locked:
    """What somebody without the lock is told.

    A refusal needs no lock: who asks for a slot that is full is told so, not to ask again.
    """
    decided = await preview(services, slot_ids, command)
    return locked_refusal(slot_ids[0]) if decided.accepted[0] else decided.outcomes[0]


async def preview(
    services: Services, slot_ids: Sequence[SlotId], command: SlotCommand[Any]
) -> BatchDecision:
    """What would be decided now. Nothing is written."""
    now = services.now()
    return decide_batch(await _load_slots(services, slot_ids, [command], now), [command], now)


def locked_refusal(slot_id: SlotId) -> Locked:
    """The answer to whoever is not served now."""
    return Locked(slot_id, random.randint(*RETRY_AFTER_MS))  # noqa: S311


async def decide_and_commit(
    services: Services,
    slot_ids: Sequence[SlotId],
    commands: Sequence[SlotCommand[Any]],
    availability_updates: list[Availability],
    max_attempts: int = MAX_ATTEMPTS,
) -> list[Any]:
    """Serve requests in their order with one look and one write; the outcome of each.

    What is to be announced is added to `news`; whoever waits in this process is told at once.
    """
    keys = [
        request.idempotency_key.record_id if request.idempotency_key else str(id(request))
        for request in commands
    ]
    if len(set(keys)) < len(keys):
        # Redis lost the order of one key's sends: the first is served, the others find its answer.
        first = [request for n, request in enumerate(commands) if keys[n] not in keys[:n]]
        served = iter(
            await decide_and_commit(services, slot_ids, first, availability_updates, max_attempts)
        )
        told = (next(served) if key not in keys[:n] else None for n, key in enumerate(keys))
        return [locked_refusal(slot_ids[0]) if outcome is None else outcome for outcome in told]
    for _ in range(max_attempts):
        now = services.now()  # each try decides anew: a hold may have run out since the last
        decided = decide_batch(await _load_slots(services, slot_ids, commands, now), commands, now)
        if not decided.changes:
            return decided.outcomes
        answers = idempotency_records(commands, decided, now)
        teams = tuple(seen for request in commands for seen in request.team_versions)
        guards = tuple(guard for request in commands for guard in request.preconditions)
        noted = audit_notes(commands, decided.changes)
        changes = ChangeSet(
            decided.changes, answers, teams, preconditions=guards, audit_notes=noted
        )
        if check_written(await services.slot_writer.commit(changes)):
            availability_updates += publish_changes(services, decided.changes)
            return decided.outcomes
        if not any(decided.accepted):  # what is left to write somebody else will
            return decided.outcomes
        if answered := await _replayed_outcomes(services, commands):
            left = [request for request in commands if id(request) not in answered]
            rest = iter(
                await decide_and_commit(
                    services, slot_ids, left, availability_updates, max_attempts
                )
                if left
                else []
            )
            return [answered.get(id(request)) or next(rest) for request in commands]
    return [
        locked_refusal(slot_ids[0]) if granted else outcome
        for granted, outcome in zip(decided.accepted, decided.outcomes, strict=True)
    ]


async def _load_slots(
    services: Services,
    slot_ids: Sequence[SlotId],
    commands: Sequence[SlotCommand[Any]],
    now: datetime,
) -> dict[SlotId, Slot]:
    people = tuple({user_id for request in commands for user_id in request.user_ids})
    booking_ids = tuple({id_ for request in commands for id_ in request.booking_ids})
    heads = sum(request.waitlist_depth for request in commands) + EXTRA_WAITLIST_DEPTH
    looks = (SlotQuery(slot_id, now, people, booking_ids, heads) for slot_id in slot_ids)
    found = await services.slots.find_for_update(*looks)
    return {slot.id: slot for slot in found if slot is not None}


async def _replayed_outcomes(
    services: Services, commands: Sequence[SlotCommand[Any]]
) -> dict[int, Any]:
    """The outcomes of those requests whose keys were answered meanwhile, by their identity."""
    slips = [
        (id(request), request.idempotency_key) for request in commands if request.idempotency_key
    ]
    kept = await asyncio.gather(
        *(find_replay(services.idempotency_records, slip) for _, slip in slips)
    )
    return {
        identity: outcome
        for (identity, _), outcome in zip(slips, kept, strict=True)
        if outcome is not None
    }


def publish_changes(services: Services, changes: Sequence[SlotChange]) -> list[Availability]:
    """Tell those who watch in this process, and poke whoever others did something for."""
    services.slot_events.publish_booking_changed(
        booking for change in changes for booking in _bookings_changed_by_others(change)
    )
    news = [to_availability(change.after) for change in changes]
    for state in news:
        services.availability.publish(state)
    return news


def _bookings_changed_by_others(change: SlotChange) -> Iterator[Booking]:
    before = {booking.id: booking for booking in change.before.bookings}
    for booking in (*change.after.bookings, *change.after.ended_bookings):
        if booking.history[-1].by != booking.user_id and before.get(booking.id) != booking:
            yield booking
