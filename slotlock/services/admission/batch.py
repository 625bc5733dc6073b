"""One batch of the admission queue: everything is looked at again, decided in order, and kept."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby

from prometheus_client import Histogram

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.outcomes import BookingWritten
from slotlock.domain.booking.refusals import KeyReused, Locked, NotYetOpen, UserBanned, UserNotFound
from slotlock.domain.booking.tickets import RequestLost
from slotlock.domain.users.user import Caller, User, UserId
from slotlock.infrastructure.redis.admission.partitions import StreamEntry
from slotlock.infrastructure.redis.admission.queue import QueuedBooking
from slotlock.services.booking.book import BOOKINGS_TOTAL, BookSlotCommand, execute_booking
from slotlock.services.commands.executor import locked_refusal, run_with_lock
from slotlock.services.commands.idempotency import find_replay, to_record
from slotlock.services.commands.idempotency_key import IdempotencyKey
from slotlock.services.commands.outcome_labels import outcome_label
from slotlock.services.commands.outcome_snapshots import strip_slots
from slotlock.services.container import Services

MAX_BATCH_SIZE = 500
# Whoever stands in line came when it was open by the clock of another process.
MAX_CLOCK_SKEW = timedelta(seconds=2)
# How long a batch waits for the slot's lock before it looks again at whom it serves.
LOCK_TIMEOUT_S = 5.0

QUEUE_WAIT_SECONDS = Histogram(
    "slotlock_queue_wait_seconds",
    "Time from standing in line to the outcome",
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0),
)


@dataclass(frozen=True, slots=True)
class _QueuedCommand:
    """A request in line with whoever asked for it, as they are now."""

    entry: StreamEntry
    queued_booking: QueuedBooking
    idempotency_key: IdempotencyKey
    user: User | None

    @property
    def is_on_behalf(self) -> bool:
        return self.queued_booking.user_id != self.queued_booking.requested_by

    @property
    def command(self) -> BookSlotCommand:
        role, request = self.user.role, self.queued_booking  # type: ignore[union-attr]
        caller = Caller(request.requested_by, role, "", self.entry.requested_at)
        return BookSlotCommand.create(
            caller, request.slot_id, request.user_id, request.hold, self.idempotency_key
        )


async def serve_batch(
    services: Services,
    slot_id: SlotId,
    entries: Sequence[StreamEntry],
    max_size: int = MAX_BATCH_SIZE,
) -> list[StreamEntry]:
    """Serve the first who stand in line for a slot; those of them whose outcomes are written.

    They are a beginning of the line: nobody is served while somebody in front of them is not.
    """
    visitors = await _load_queued_commands(services, entries[:max_size])
    done: list[StreamEntry] = []
    # Who asks for another rests on a team or a role, and is served alone, in their turn.
    for alone, together in groupby(visitors, lambda visitor: visitor.is_on_behalf):
        run = list(together)
        served = await (
            _serve_one_by_one(services, run) if alone else _serve_together(services, slot_id, run)
        )
        await _record_refusals(services, run[: len(served)], served)
        done += [visitor.entry for visitor in run[: len(served)]]
        if len(served) < len(run):
            break
    for entry in done:
        QUEUE_WAIT_SECONDS.observe(max((services.now() - entry.requested_at).total_seconds(), 0.0))
    return done


async def _load_queued_commands(
    services: Services, entries: Sequence[StreamEntry]
) -> list[_QueuedCommand]:
    requests = [entry.request for entry in entries if entry.request is not None]
    users = await services.users.find_many({request.requested_by for request in requests})
    return [
        _to_queued_command(entry, request, users)
        for entry, request in zip(entries, requests, strict=True)
    ]


def _to_queued_command(
    entry: StreamEntry, queued_booking: QueuedBooking, users: Mapping[UserId, User]
) -> _QueuedCommand:
    asked_by = queued_booking.requested_by
    slip = IdempotencyKey(
        asked_by, "", queued_booking.key, queued_booking.request_hash, entry.requested_at
    )
    return _QueuedCommand(entry, queued_booking, slip, users.get(asked_by))


async def _serve_together(
    services: Services, slot_id: SlotId, queued: Sequence[_QueuedCommand]
) -> list[object]:
    """The outcomes of the first who ask for themselves, up to somebody who could not be served."""
    outcomes = await _settled_outcomes(services, queued)
    new = [place for place, outcome in enumerate(outcomes) if outcome is None]
    commands = [queued[place].command for place in new]
    served = await run_with_lock(services, commands, LOCK_TIMEOUT_S) if new else ()
    for place, outcome in zip(new, served or [locked_refusal(slot_id)] * len(new), strict=True):
        outcomes[place] = outcome
    # What is refused behind a place that could not be written rests on that place.
    return outcomes[: _first_retry_index(outcomes, services.now())]


def _first_retry_index(outcomes: Sequence[object], now: datetime) -> int:
    unserved = (place for place, outcome in enumerate(outcomes) if _must_retry(outcome, now))
    return next(unserved, len(outcomes))


def _must_retry(outcome: object, now: datetime) -> bool:
    opens_soon = isinstance(outcome, NotYetOpen) and outcome.opens_at < now + MAX_CLOCK_SKEW
    return opens_soon or isinstance(outcome, Locked)


async def _serve_one_by_one(services: Services, queued: Sequence[_QueuedCommand]) -> list[object]:
    outcomes = await _settled_outcomes(services, queued)
    for place, outcome in enumerate(outcomes):
        if outcome is None:
            outcomes[place] = await execute_booking(services, queued[place].command, LOCK_TIMEOUT_S)
        if _must_retry(outcomes[place], services.now()):
            return outcomes[:place]
    return outcomes


async def _settled_outcomes(services: Services, queued: Sequence[_QueuedCommand]) -> list[object]:
    """Outcomes that there are before anything is decided: of keys that were answered, by whoever
    served them before, and of people who are gone or banned. None of the others.
    """
    kept = await asyncio.gather(
        *(find_replay(services.idempotency_records, visitor.idempotency_key) for visitor in queued)
    )
    return [answer or _user_refusal(visitor) for answer, visitor in zip(kept, queued, strict=True)]


def _user_refusal(queued_command: _QueuedCommand) -> UserNotFound | UserBanned | None:
    if queued_command.user is None:
        return UserNotFound(queued_command.queued_booking.requested_by)
    return UserBanned(queued_command.user.id) if queued_command.user.banned else None


async def _record_refusals(
    services: Services, queued: Sequence[_QueuedCommand], outcomes: Sequence[object]
) -> None:
    """Keep the refusals: what was granted was kept with what it wrote."""
    now = services.now()
    refusals = [
        to_record(visitor.idempotency_key, strip_slots(outcome), now)
        for visitor, outcome in zip(queued, outcomes, strict=True)
        if not isinstance(outcome, BookingWritten | KeyReused | RequestLost)
    ]
    if refusals:  # those whose keys were answered meanwhile stay as they were answered
        await services.idempotency_records.save_all(refusals)
    for visitor, outcome in zip(queued, outcomes, strict=True):
        if not visitor.is_on_behalf:
            BOOKINGS_TOTAL.labels(outcome_label(outcome)).inc()
