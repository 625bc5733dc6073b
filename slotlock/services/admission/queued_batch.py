"""Decides a batch of queued requests for one slot, in order of arrival, and stores the outcomes."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import groupby

from prometheus_client import Histogram

from slotlock.domain.admission.tickets import RequestLost
from slotlock.domain.booking.booking import MadeAs, SlotId
from slotlock.domain.booking.booking_outcomes import BookingWritten
from slotlock.domain.booking.booking_refusals import (
    KeyReused,
    Locked,
    NotYetOpen,
    UserBanned,
    UserNotFound,
)
from slotlock.domain.booking.decision import CommandResult
from slotlock.domain.notifications.mail_kinds import ticket_mail
from slotlock.domain.notifications.outbox import OutboxEntry
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.user import Caller, Role, User, UserId
from slotlock.infrastructure.mongo.idempotency.records import IdempotencyRecord
from slotlock.infrastructure.redis.admission.admission_queue import QueuedBooking
from slotlock.infrastructure.redis.admission.partitions import StreamEntry
from slotlock.infrastructure.telemetry import tracing
from slotlock.services.booking.book import BOOKINGS_TOTAL, BookSlotCommand, execute_booking
from slotlock.services.booking.permissions import (
    BookingPermissions,
    account_refusal,
    with_known_dependents,
)
from slotlock.services.commands.commit import locked_refusal
from slotlock.services.commands.executor import run_with_lock
from slotlock.services.commands.idempotency import to_record, to_replay
from slotlock.services.container import Services
from slotlock.services.idempotency_key import IdempotencyKey, record_id
from slotlock.services.notifications.recipients import to_recipients

MAX_QUEUED_BATCH_SIZE = 500
# The process that accepted a request may have a clock ahead of this one. A campaign that opens
# within this time was open there.
MAX_CLOCK_SKEW = timedelta(seconds=2)
# Afterwards, the batch is loaded again and retried.
LOCK_TIMEOUT_S = 5.0

QUEUE_WAIT_SECONDS = Histogram(
    "slotlock_queue_wait_seconds",
    "Time from enqueueing to the outcome",
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0),
)


@value_object
class _QueuedRequest:
    """A queued request as a command. `refusal` is set if its sender may not book any more.

    It is decided alone if only a team or the lead of the slot can permit it.
    """

    entry: StreamEntry
    command: BookSlotCommand
    key: IdempotencyKey
    refusal: UserNotFound | UserBanned | None
    is_alone: bool

    @property
    def overrides(self) -> bool:
        return self.command.request.made_as is MadeAs.ORGANIZER


async def serve_batch(
    services: Services,
    slot_id: SlotId,
    entries: Sequence[StreamEntry],
    max_size: int = MAX_QUEUED_BATCH_SIZE,
) -> list[StreamEntry]:
    """Decide the first of these entries and return those whose outcomes are stored.

    The result is always a prefix: no request is decided before an earlier one has its outcome.
    """
    if not tracing.is_on:
        return await _serve_first(services, slot_id, entries[:max_size])
    first = entries[:max_size]
    traceparents = [entry.request.traceparent for entry in first if entry.request is not None]
    with tracing.tickets_span(traceparents):
        return await _serve_first(services, slot_id, first)


async def _serve_first(
    services: Services, slot_id: SlotId, entries: Sequence[StreamEntry]
) -> list[StreamEntry]:
    requests = await _load_requests(services, entries)
    served: list[StreamEntry] = []
    # The permission by a team is checked anew for each request, within the write. What an organizer
    # overrides may refuse a member before them, who is tried again.
    for (is_alone, _), group in groupby(requests, lambda each: (each.is_alone, each.overrides)):
        run = list(group)
        if is_alone:
            results = await _serve_individually(services, run)
        else:
            results = await _serve_together(services, slot_id, run)
        decided = run[: len(results)]
        await _store_refusals(services, decided, [result.outcome for result in results])
        served += [request.entry for request in decided]
        if len(decided) < len(run):
            break
    now = services.now()
    for entry in served:
        waited = now - entry.requested_at
        QUEUE_WAIT_SECONDS.observe(max(waited.total_seconds(), 0.0))
    return served


async def _load_requests(
    services: Services, entries: Sequence[StreamEntry]
) -> list[_QueuedRequest]:
    bookings = [entry.request for entry in entries if entry.request is not None]
    concerned = {id_ for each in bookings for id_ in (each.requested_by, each.user_id)}
    users = await services.users.find_many(concerned)
    return [
        _to_request(entry, booking, users) for entry, booking in zip(entries, bookings, strict=True)
    ]


def _to_request(
    entry: StreamEntry, booking: QueuedBooking, users: Mapping[UserId, User]
) -> _QueuedRequest:
    sender, user = users.get(booking.requested_by), users.get(booking.user_id)
    user_id, key_hash, requested_at = booking.requested_by, booking.key, entry.requested_at
    id_ = record_id(user_id, key_hash)
    key = IdempotencyKey(user_id, "", key_hash, booking.request_hash, id_, requested_at)
    # A sender who was deleted is refused, so that their role does not matter.
    role = sender.role if sender is not None else Role.MEMBER
    caller = Caller(booking.requested_by, role, "", entry.requested_at)
    caller = with_known_dependents(caller, [user] if user else [])
    refusal = account_refusal(booking.requested_by, sender)
    is_alone = False
    if booking.user_id != booking.requested_by:
        is_alone = not (caller.is_organizer or booking.user_id in caller.acts_for)
        if not is_alone:
            refusal = refusal or account_refusal(booking.user_id, user)
    command = _to_command(caller, booking, key)
    return _QueuedRequest(entry, command, key, refusal, is_alone)


def _to_command(caller: Caller, booking: QueuedBooking, key: IdempotencyKey) -> BookSlotCommand:
    command = BookSlotCommand.create(
        caller, booking.slot_id, booking.user_id, booking.hold, key, is_queued=True
    )
    return command.permitted(BookingPermissions(caller, {}))


async def _serve_together(
    services: Services, slot_id: SlotId, requests: Sequence[_QueuedRequest]
) -> list[CommandResult[object]]:
    """Decide all requests in one write. Returns results up to the first that must be retried."""
    known = await _find_known_results(services, requests)
    commands = [each.command for each, result in zip(requests, known, strict=True) if not result]
    decided: Iterable[CommandResult[object]] = ()
    if commands:
        executed = await run_with_lock(services, commands, LOCK_TIMEOUT_S)
        decided = executed or [CommandResult(locked_refusal(slot_id)) for _ in commands]
    remaining, now = iter(decided), services.now()
    results: list[CommandResult[object]] = []
    for result in known:
        final = result or next(remaining)
        # A stored outcome is final. Those after one that is retried assume that its place is taken.
        if result is None and _must_retry(final.outcome, now):
            break
        results.append(final)
    return results


def _must_retry(outcome: object, now: datetime) -> bool:
    opens_soon = isinstance(outcome, NotYetOpen) and outcome.opens_at < now + MAX_CLOCK_SKEW
    return opens_soon or isinstance(outcome, Locked)


async def _serve_individually(
    services: Services, requests: Sequence[_QueuedRequest]
) -> list[CommandResult[object]]:
    """Decide each request in its own write. Returns results up to the first to be retried."""
    results: list[CommandResult[object]] = []
    known = await _find_known_results(services, requests)
    for request, result in zip(requests, known, strict=True):
        final = result or await execute_booking(services, request.command, LOCK_TIMEOUT_S)
        if result is None and _must_retry(final.outcome, services.now()):
            break
        results.append(final)
    return results


async def _find_known_results(
    services: Services, requests: Sequence[_QueuedRequest]
) -> list[CommandResult[object] | None]:
    """Find the results that need no decision, of refused senders too. None for the others."""
    records = await services.idempotency_records.find_many(
        request.key.record_id for request in requests
    )
    return [
        _known_result(request, record) for request, record in zip(requests, records, strict=True)
    ]


def _known_result(
    request: _QueuedRequest, record: IdempotencyRecord | None
) -> CommandResult[object] | None:
    if record is not None:
        return to_replay(request.key, record)
    return CommandResult(request.refusal) if request.refusal else None


def _mails_about(
    requests: Sequence[_QueuedRequest], outcomes: Sequence[object], now: datetime
) -> list[OutboxEntry]:
    """Return the mails about users who waited for long."""
    mails = (
        ticket_mail(
            request.command.slot_id,
            request.command.request.user_id,
            request.key.record_id,
            request.entry.requested_at,
            outcome,
            now,
            request.command.caller.user_id,
        )
        for request, outcome in zip(requests, outcomes, strict=True)
    )
    return [mail for mail in mails if mail is not None]


async def _store_refusals(
    services: Services, requests: Sequence[_QueuedRequest], outcomes: Sequence[object]
) -> None:
    """Store the refusals. An accepted outcome was stored together with its booking.

    A full slot refuses many requests: their records are smaller without the slot.
    """
    now = services.now()
    refusals = [
        to_record(request.key, outcome, now)
        for request, outcome in zip(requests, outcomes, strict=True)
        if not isinstance(outcome, BookingWritten | KeyReused | RequestLost)
    ]
    if refusals:  # outcomes that were stored meanwhile are not replaced
        await services.idempotency_records.save_all(refusals)
    if services.sends_mail:
        mails = await to_recipients(services, _mails_about(requests, outcomes, now))
        await services.outbox.insert(mails, now)
    counts = Counter(
        type(outcome).__name__
        for request, outcome in zip(requests, outcomes, strict=True)
        if not request.is_alone  # execute_booking has counted the others
    )
    for label, count in counts.items():
        BOOKINGS_TOTAL.labels(label).inc(count)
