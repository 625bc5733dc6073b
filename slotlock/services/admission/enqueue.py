"""Requests a booking through the admission queue: the client gets a ticket now, the outcome later.

The id of a ticket is the idempotency key of its request, which the client sent or this module made.
The outcome is stored under the key, so a request has one effect however often it is delivered.
"""

import random
import secrets
from enum import Enum, auto
from functools import cache
from typing import Self

from prometheus_client import Counter

from slotlock.domain.admission.tickets import RequestBookingOutcome, RequestLost, Ticket, TicketRef
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.booking_outcomes import Booked
from slotlock.domain.booking.booking_refusals import (
    BookingRefusal,
    KeyReused,
    Locked,
    OnBehalfRefusal,
    QueueFull,
)
from slotlock.domain.booking.decision import CommandResult
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.user import Caller, UserId
from slotlock.infrastructure.redis.admission.admission_queue import QueuedBooking, QueuePosition
from slotlock.infrastructure.redis.auto_pipeline import RedisUnavailableError
from slotlock.infrastructure.redis.keys import idempotency_lock
from slotlock.infrastructure.telemetry import tracing
from slotlock.infrastructure.telemetry.buffered_metrics import BufferedCounter
from slotlock.services.admission.tickets import answered_ticket, queued_ticket
from slotlock.services.booking.book import (
    BookingOptions,
    BookSlotCommand,
    execute_booking,
)
from slotlock.services.booking.permissions import check_booking_permissions
from slotlock.services.commands.idempotency import KEY_LOCK_TIMEOUT_S
from slotlock.services.container import Services
from slotlock.services.idempotency_key import IdempotencyKey

# The spread keeps refused clients from retrying together.
RETRY_AFTER_MS = (1_000, 5_000)
# How long a request waits for the slot's lock if there is no queue, because Redis is unavailable.
IMMEDIATE_TIMEOUT_S = 5.0

BOOKING_REQUESTS_TOTAL = Counter(
    "slotlock_queue_requests_total", "Responses to requestBooking by outcome", ["outcome"]
)


class PriorTicket(Enum):
    """The state of an earlier request with the same key that has no stored outcome."""

    # There was none, or it is still queued.
    NONE = auto()
    # Redis lost it, and its ticket reported so.
    LOST = auto()


@value_object
class _TicketRequest:
    command: BookSlotCommand
    key: IdempotencyKey
    has_client_key: bool

    @classmethod
    def create(
        cls, caller: Caller, slot_id: SlotId, user_id: UserId, options: BookingOptions
    ) -> Self:
        # The same parts as in `book`: bookSlot with this key replays the outcome of the ticket.
        parts = (BookSlotCommand.name, slot_id, user_id, options.hold)
        key_text = options.key or secrets.token_hex(16)
        key = IdempotencyKey.for_request(caller.user_id, key_text, *parts)
        command = BookSlotCommand.create(
            caller, slot_id, user_id, options.hold, key, is_queued=True
        )
        return cls(command, key, has_client_key=bool(options.key))

    @property
    def queued_booking(self) -> QueuedBooking:
        command = self.command
        return QueuedBooking(
            command.slot_id,
            command.request.user_id,
            command.caller.user_id,
            command.request.hold,
            self.key.key_hash,
            self.key.request_hash,
            tracing.traceparent(),
        )

    @property
    def hashes(self) -> tuple[UserId, str, str]:
        """The user, the hash of the key and the hash of the request."""
        return self.key.user_id, self.key.key_hash, self.key.short_request_hash

    def has_position(self, position: QueuePosition) -> bool:
        return position.matches(self.key.key_hash, self.key.short_request_hash)


async def request_booking(
    services: Services, caller: Caller, slot_id: SlotId, user_id: UserId, options: BookingOptions
) -> CommandResult[RequestBookingOutcome]:
    """Return a ticket for the request, or the reason why it is refused immediately.

    The same key, or another request of the caller for the same booking, returns the existing
    ticket. While Redis is unavailable there is no queue, and the request is executed now.
    """
    request = _TicketRequest.create(caller, slot_id, user_id, options)
    result = await _find_or_create_ticket(services, request)
    _outcome_counter(type(result.outcome).__name__).inc()
    return result


@cache
def _outcome_counter(label: str) -> BufferedCounter:
    return BufferedCounter(BOOKING_REQUESTS_TOTAL.labels(label))


async def _find_or_create_ticket(
    services: Services, request: _TicketRequest
) -> CommandResult[RequestBookingOutcome]:
    if not request.has_client_key:
        return await _enqueue_or_execute(services, request, PriorTicket.NONE)
    prior = await _find_prior(services, request)
    if not isinstance(prior, PriorTicket):
        return CommandResult(prior)
    result = await _enqueue_or_execute(services, request, prior)
    if isinstance(result.outcome, KeyReused):
        return result
    # The same key may have been sent twice at once, or answered since the first read.
    latest = await _find_prior(services, request)
    return result if isinstance(latest, PriorTicket) else CommandResult(latest)


async def _find_prior(
    services: Services, request: _TicketRequest
) -> Ticket | KeyReused | PriorTicket:
    """Find the answered ticket of the key, or why there is none."""
    key = request.key
    record = await services.idempotency_records.find(key.record_id)
    if record is None:
        return PriorTicket.NONE
    if not key.matches(record):
        return KeyReused(key.key)
    if isinstance(record.outcome, RequestLost) and not record.outcome.was_cancelled:
        return PriorTicket.LOST
    requested_at = record.requested_at or record.at
    ref = TicketRef(
        request.command.slot_id, key.user_id, key.key_hash, key.short_request_hash, requested_at
    )
    return await answered_ticket(services, ref, record)


async def _enqueue_or_execute(
    services: Services, request: _TicketRequest, prior: PriorTicket
) -> CommandResult[RequestBookingOutcome]:
    try:
        return await _enqueue(services, request, prior)
    except RedisUnavailableError as error:
        may_be_queued = error.sent or request.has_client_key
    result = await _execute_now(services, request)
    if may_be_queued and not isinstance(result.outcome, Ticket | KeyReused):
        return await _refuse_finally(services, request, result)
    return result


async def _refuse_finally(
    services: Services, request: _TicketRequest, refusal: CommandResult[RequestBookingOutcome]
) -> CommandResult[RequestBookingOutcome]:
    """Return the refusal of a request that may be queued: no worker books it any more.

    Its ticket says that it was lost. If it was answered before, the answer is returned.
    """
    await _mark_lost(services, request)
    latest = await _find_prior(services, request)
    return refusal if isinstance(latest, PriorTicket) else CommandResult(latest)


async def _enqueue(
    services: Services, request: _TicketRequest, prior: PriorTicket
) -> CommandResult[RequestBookingOutcome]:
    refusal = await _preview_refusal(services, request.command)
    if refusal is not None:
        return await _refuse(services, request, refusal)
    if request.has_client_key:
        if not await services.key_reservations.reserve(*request.hashes):
            return CommandResult(KeyReused(request.key.key))
        if used := await _wait_for_other_use(services, request):
            await services.key_reservations.release(*request.hashes)
            return CommandResult(used)
    if prior is PriorTicket.LOST:
        # Only now: a request that is refused above stays lost, so that no worker books it.
        await services.idempotency_records.delete_lost(
            request.key.record_id, request.key.short_request_hash
        )
    # If this fails, the key stays reserved: the request may be queued, and can be sent again.
    position = await services.admission_queue.enqueue(request.queued_booking, services.now())
    if position is None or not request.has_position(position):
        if request.has_client_key:
            await services.key_reservations.release(*request.hashes)
        if prior is PriorTicket.LOST:
            await _mark_lost(services, request)
    if position is None:
        return _queue_full(request)
    return CommandResult(await _ticket_at(services, position, request))


async def _wait_for_other_use(
    services: Services, request: _TicketRequest
) -> Ticket | KeyReused | None:
    """Wait while another operation, such as `bookSlot`, has the lock of the reserved key.

    Such an operation looks for a reservation after it has the lock. One that found none has it, or
    has stored its outcome, which is returned.
    """
    name = idempotency_lock(request.key.record_id)
    if not await services.locks.is_held(name):
        return None
    if lease := await services.locks.acquire(name, wait_s=KEY_LOCK_TIMEOUT_S):
        await services.locks.release(lease)
    prior = await _find_prior(services, request)
    return None if isinstance(prior, PriorTicket) else prior


async def _refuse(
    services: Services,
    request: _TicketRequest,
    refusal: CommandResult[BookingRefusal | OnBehalfRefusal],
) -> CommandResult[RequestBookingOutcome]:
    """Return the refusal, or the ticket of the same booking if it is queued already."""
    key, reserved = request.key, None
    if request.has_client_key:
        reserved = await services.key_reservations.find(key.user_id, key.key_hash)
        if reserved not in (None, key.short_request_hash):
            return CommandResult(KeyReused(key.key))
    position = await services.admission_queue.find_by_booking(request.queued_booking)
    if position is not None:
        return CommandResult(await _ticket_at(services, position, request))
    if reserved:  # by a request whose client got no answer, and that may still reach the queue
        return await _refuse_finally(services, request, refusal)
    return refusal


async def _mark_lost(services: Services, request: _TicketRequest) -> None:
    await services.idempotency_records.save(request.key.lost_record(services.now()))


async def _preview_refusal(
    services: Services, command: BookSlotCommand
) -> CommandResult[BookingRefusal | OnBehalfRefusal] | None:
    """Return why the request would be refused now, since waiting would be in vain."""
    permissions = await check_booking_permissions(services, command.caller, command.named_claims)
    caller = permissions.caller
    if permissions.refusals:
        return CommandResult(command.not_permitted(permissions.refusals), caller=caller)
    result = await services.previews.decide(command.permitted(permissions))
    if result is None or not isinstance(result.outcome, BookingRefusal):
        return None
    return CommandResult(result.outcome, result.slots, caller)


async def _ticket_at(
    services: Services, position: QueuePosition, request: _TicketRequest
) -> Ticket | KeyReused:
    if request.has_position(position):
        services.ticket_index.add(position.ref)
        return position.ticket
    if position.ref.key_hash == request.key.key_hash:
        return KeyReused(request.key.key)
    # The caller queued the same booking under another key, which may have an outcome by now.
    return await queued_ticket(services, position.ref, position)


async def _execute_now(
    services: Services, request: _TicketRequest
) -> CommandResult[RequestBookingOutcome]:
    executed = await execute_booking(services, request.command, IMMEDIATE_TIMEOUT_S)
    outcome = request.command.check_outcome(executed.outcome)
    match outcome:
        case Booked():
            # The record says when it was requested: the same key must return the same ticket.
            ticket = await _find_prior(services, request)
            if not isinstance(ticket, PriorTicket):
                return CommandResult(ticket)
            raise LookupError("a booking was written without its idempotency record")
        case Locked():
            return _queue_full(request)
        case _:
            return CommandResult(outcome, executed.slots)


def _queue_full(request: _TicketRequest) -> CommandResult[RequestBookingOutcome]:
    retry_after_ms = random.randint(*RETRY_AFTER_MS)  # noqa: S311
    return CommandResult(QueueFull(request.command.slot_id, retry_after_ms))
