"""Standing in the admission queue: a ticket at once, the answer later.

The ticket of a request is its idempotency key, the sender's or one made for it: the answer is kept
under it, so that a request is handled once however often it is delivered.
"""

import random
import secrets

from prometheus_client import Counter

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.outcomes import Booked
from slotlock.domain.booking.refusals import (
    BookingRefusal,
    KeyReused,
    Locked,
    OnBehalfRefusal,
    QueueFull,
)
from slotlock.domain.booking.tickets import RequestBookingOutcome, RequestLost, Ticket, TicketRef
from slotlock.domain.users.user import Caller, UserId
from slotlock.infrastructure.mongo.idempotency_records import IdempotencyRecord
from slotlock.infrastructure.redis.admission.queue import QueuedBooking, QueuePosition
from slotlock.infrastructure.redis.auto_pipeline import RedisUnavailableError
from slotlock.services.admission.tickets import answered_ticket, queued_ticket
from slotlock.services.booking.book import (
    BookingOptions,
    BookSlotCommand,
    check_booking_permissions,
    execute_booking,
)
from slotlock.services.commands.executor import preview
from slotlock.services.commands.idempotency_key import IdempotencyKey
from slotlock.services.commands.outcome_labels import outcome_label
from slotlock.services.container import Services

# The spread keeps those refused together from returning so.
RETRY_AFTER_MS = (1_000, 5_000)
# How long somebody waits for their turn when there is no queue to stand in.
IMMEDIATE_TIMEOUT_S = 5.0

BOOKING_REQUESTS_TOTAL = Counter(
    "slotlock_queue_requests_total", "Answers to requestBooking by outcome", ["outcome"]
)


async def request_booking(
    services: Services, caller: Caller, slot_id: SlotId, user_id: UserId, options: BookingOptions
) -> RequestBookingOutcome:
    """A ticket for a place in the line in front of a slot, or why it is refused at once.

    The same key, or another request of the caller's for the same place, gives the ticket that
    there is. While Redis is away there is no line, and the request is served now.
    """
    key = BookingOptions(options.hold, key=options.key or secrets.token_hex(16))
    slip = key.to_idempotency_key(caller, "book", slot_id, user_id)
    assert slip is not None  # noqa: S101 - there is a key
    asking = BookSlotCommand.create(caller, slot_id, user_id, options.hold, slip)
    kept = await services.idempotency_records.find(slip.record_id) if options.key else None
    outcome: RequestBookingOutcome | None = await _existing_ticket(services, slip, slot_id, kept)
    if outcome is None:
        outcome = await _enqueue_or_serve(
            services, asking, slip, was_lost=kept is not None, is_new_key=options.key is None
        )
    if options.key and not isinstance(outcome, KeyReused):
        # Sent before or twice at once, it may have been answered since that look.
        kept = await services.idempotency_records.find(slip.record_id)
        outcome = await _existing_ticket(services, slip, slot_id, kept) or outcome
    BOOKING_REQUESTS_TOTAL.labels(outcome_label(outcome)).inc()
    return outcome


async def _enqueue_or_serve(
    services: Services,
    command: BookSlotCommand,
    idempotency_key: IdempotencyKey,
    *,
    was_lost: bool,
    is_new_key: bool,
) -> RequestBookingOutcome:
    try:
        return await _enqueue(services, command, idempotency_key, was_lost=was_lost)
    except RedisUnavailableError as error:
        outcome = await _serve_immediately(services, command, idempotency_key)
        elsewhere = error.sent or not is_new_key
    if elsewhere and not isinstance(outcome, Ticket | KeyReused):
        # It may stand in line all the same, by this send or an earlier one, and must not be granted
        # after it was refused.
        await services.idempotency_records.save(idempotency_key.lost_record(services.now()))
    return outcome


async def _existing_ticket(
    services: Services,
    idempotency_key: IdempotencyKey,
    slot_id: SlotId,
    record: IdempotencyRecord | None,
) -> Ticket | KeyReused | None:
    """The answered ticket of a key that was used before; one that is lost is asked again."""
    if record is not None and not idempotency_key.matches(record):
        return KeyReused(idempotency_key.key)
    if record is None or isinstance(record.outcome, RequestLost):
        return None
    asked_at = record.requested_at or record.at
    return await answered_ticket(
        services,
        TicketRef(
            slot_id,
            idempotency_key.user_id,
            idempotency_key.key_hash,
            idempotency_key.short_request_hash,
            asked_at,
        ),
        record,
    )


async def _enqueue(
    services: Services, command: BookSlotCommand, idempotency_key: IdempotencyKey, *, was_lost: bool
) -> RequestBookingOutcome:
    request = QueuedBooking(
        command.slot_id,
        command.request.user_id,
        command.caller.user_id,
        command.request.hold,
        idempotency_key.key_hash,
        idempotency_key.request_hash,
    )
    refusal = await _preview_refusal(services, command)
    if refusal is not None:
        # Whoever stands in line already is told where, and hears the answer there.
        standing = await services.admission_queue.find_by_claim(request)
        return (
            refusal if standing is None else await _ticket_for(services, standing, idempotency_key)
        )
    if was_lost:  # not sooner: whoever is refused now stays lost, and is granted by nobody
        await services.idempotency_records.delete_lost(
            idempotency_key.record_id, idempotency_key.short_request_hash
        )
    standing = await services.admission_queue.enqueue(request)
    if was_lost and (
        standing is None
        or not standing.matches(idempotency_key.key_hash, idempotency_key.short_request_hash)
    ):
        await services.idempotency_records.save(idempotency_key.lost_record(services.now()))
    if standing is None:
        return QueueFull(command.slot_id, _retry_after_ms())
    return await _ticket_for(services, standing, idempotency_key)


async def _preview_refusal(
    services: Services, command: BookSlotCommand
) -> BookingRefusal | OnBehalfRefusal | None:
    """Why it would be refused now, for what will not be granted need not wait."""
    user_id = command.request.user_id
    permissions = await check_booking_permissions(services, command.caller, [user_id])
    if refusal := permissions.refusals.get(user_id):
        return refusal
    (decision,) = (await preview(services, command)).decisions
    return decision.outcome if isinstance(decision.outcome, BookingRefusal) else None


async def _ticket_for(
    services: Services, queue_position: QueuePosition, idempotency_key: IdempotencyKey
) -> Ticket | KeyReused:
    if queue_position.matches(idempotency_key.key_hash, idempotency_key.short_request_hash):
        return queue_position.ticket
    if queue_position.ref.key_hash == idempotency_key.key_hash:
        return KeyReused(idempotency_key.key)
    # Under another key of theirs, which may have been answered by other means.
    return await queued_ticket(services, queue_position.ref, queue_position)


async def _serve_immediately(
    services: Services, command: BookSlotCommand, idempotency_key: IdempotencyKey
) -> RequestBookingOutcome:
    executed = await execute_booking(services, command, IMMEDIATE_TIMEOUT_S)
    outcome = command.check_outcome(executed)
    match outcome:
        case Booked():
            # As it was kept, for the same key gives the same ticket.
            kept = await services.idempotency_records.find(idempotency_key.record_id)
            ticket = await _existing_ticket(services, idempotency_key, command.slot_id, kept)
            assert ticket is not None  # noqa: S101 - it was kept with the booking
            return ticket
        case Locked():
            return QueueFull(command.slot_id, _retry_after_ms())
        case _:
            return outcome


def _retry_after_ms() -> int:
    return random.randint(*RETRY_AFTER_MS)  # noqa: S311
