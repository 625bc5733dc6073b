"""Reads tickets: queued ones from Redis, answered ones from MongoDB, all others are lost.

A request is cancelled in MongoDB, under the key of its ticket, as its outcome is stored there.
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from slotlock.domain.admission.tickets import (
    TICKET_TTL,
    CancelTicketOutcome,
    RequestLost,
    Ticket,
    TicketCancelled,
    TicketNotFound,
    TicketNotQueued,
    TicketRef,
    TicketStatus,
)
from slotlock.domain.booking.booking_outcomes import Booked
from slotlock.domain.booking.booking_refusals import AlreadyBooked, KeyReused
from slotlock.domain.booking.decision import CommandResult
from slotlock.domain.shared.pagination import Page
from slotlock.domain.users.user import Caller
from slotlock.infrastructure.mongo.client import is_unavailable
from slotlock.infrastructure.mongo.idempotency.records import IdempotencyRecord
from slotlock.infrastructure.redis.admission.admission_queue import QueuePosition
from slotlock.infrastructure.redis.auto_pipeline import RedisUnavailableError
from slotlock.services.booking.book import BookSlotCommand
from slotlock.services.booking.permissions import is_guardian
from slotlock.services.commands.current_slot import with_current_slot
from slotlock.services.commands.idempotency import recorded_result
from slotlock.services.container import Services
from slotlock.services.idempotency_key import (
    IdempotencyKey,
    cancelled_record,
    lost_record,
    record_id,
)


async def find_ticket(services: Services, ref: TicketRef, caller: Caller) -> Ticket | None:
    """Return a ticket, or None if it belongs to another user or is too old."""
    if ref.requested_by != caller.user_id or not ref.is_known_at(services.now()):
        return None
    return await load_ticket(services, ref)


async def list_tickets(
    services: Services, caller: Caller, first: int, after: TicketRef | None
) -> Page[Ticket]:
    """Return the next tickets of the caller that can still be read, the newest first.

    Raises:
        RedisUnavailableError: the index of tickets cannot be read.
    """
    refs = await services.ticket_index.find(caller.user_id, services.now() - TICKET_TTL)
    if after is not None:
        refs = [ref for ref in refs if _order(ref) < _order(after)]
    tickets = await load_tickets(services, refs[:first])
    if errors := [ticket for ticket in tickets if isinstance(ticket, BaseException)]:
        raise errors[0]
    return Page(tuple(t for t in tickets if isinstance(t, Ticket)), len(refs) > first)


async def count_tickets(services: Services, caller: Caller) -> int:
    """Return how many tickets `list_tickets` lists, at most 1,000.

    Raises:
        RedisUnavailableError: the index of tickets cannot be read.
    """
    return await services.ticket_index.count(caller.user_id, services.now() - TICKET_TTL)


def _order(ref: TicketRef) -> tuple[datetime, str]:
    return ref.requested_at, f"{ref.slot_id}{ref.key_hash}{ref.request_hash}"


async def load_tickets(
    services: Services, refs: Iterable[TicketRef]
) -> Sequence[Ticket | BaseException]:
    """Return each ticket, or the error that prevented its read. The reads are batched."""
    reads = (load_ticket(services, ref) for ref in refs)
    return await asyncio.gather(*reads, return_exceptions=True)


async def load_ticket(services: Services, ref: TicketRef) -> Ticket:
    """Return the present state of a ticket.

    The queue is read first. Outcomes are stored before a request leaves the queue, so a request
    that is not queued and has no outcome is lost. That is stored before it is reported: a worker
    that still has the request must not book it any more.
    """
    try:
        position = await services.admission_queue.find(ref.slot_id, ref.requested_by, ref.key_hash)
    except RedisUnavailableError:
        return await _find_answered(services, ref) or Ticket(ref, TicketStatus.QUEUED)
    if position is not None and position.matches(ref.key_hash, ref.request_hash):
        return await queued_ticket(services, ref, position)
    answered = await _find_answered(services, ref)
    if answered is not None:
        return answered
    # Also if the key is queued with other arguments: that request will end as KeyReused.
    id_ = record_id(ref.requested_by, ref.key_hash)
    await services.idempotency_records.save(lost_record(id_, ref.request_hash, services.now()))
    return await _find_answered(services, ref) or Ticket(ref, TicketStatus.LOST)


async def queued_ticket(
    services: Services, ref: TicketRef, queue_position: QueuePosition
) -> Ticket:
    """Return the ticket of a queued request, under the id that was asked for.

    After a loss, the request may be queued again under a newer id. If it has an outcome already,
    that one is final. While MongoDB is unavailable, the position is returned.
    """
    try:
        answered = await _find_answered(services, ref)
    except Exception as error:
        if not is_unavailable(error):
            raise
        answered = None
    return answered or replace(queue_position.ticket, ref=ref)


async def _find_answered(services: Services, ref: TicketRef) -> Ticket | None:
    record = await services.idempotency_records.find(record_id(ref.requested_by, ref.key_hash))
    return None if record is None else await answered_ticket(services, ref, record)


async def answered_ticket(services: Services, ref: TicketRef, record: IdempotencyRecord) -> Ticket:
    """Return the ticket with the outcome that is stored under its key."""
    if not record.request_hash.startswith(ref.request_hash):
        return Ticket(ref, TicketStatus.ANSWERED, result=CommandResult(KeyReused("")))
    if isinstance(record.outcome, RequestLost):
        was_cancelled = record.outcome.was_cancelled
        return Ticket(ref, TicketStatus.CANCELLED if was_cancelled else TicketStatus.LOST)
    result = await with_current_slot(services, recorded_result(record), ref.requested_by)
    final = BookSlotCommand.check_outcome(result.outcome)
    ticket = Ticket(ref, TicketStatus.ANSWERED, result=CommandResult(final, result.slots))
    if not isinstance(final, Booked | AlreadyBooked):
        return replace(ticket, is_own=_is_own(ref))
    user_id = final.booking.user_id
    if user_id == ref.requested_by or not await is_guardian(services, ref.requested_by, user_id):
        return ticket
    return replace(ticket, acts_for=frozenset([user_id]))


def _is_own(ref: TicketRef) -> bool:
    """Return whether the request was for its caller, which only its hash says."""
    parts = (BookSlotCommand.name, ref.slot_id, ref.requested_by)
    keys = (
        IdempotencyKey.for_request(ref.requested_by, "", *parts, hold) for hold in (True, False)
    )
    return any(key.short_request_hash == ref.request_hash for key in keys)


async def cancel_ticket(services: Services, ref: TicketRef, caller: Caller) -> CancelTicketOutcome:
    """Cancel the request of a ticket, unless it has an outcome.

    A key has one record. If the mark comes first, a queue worker that has the request can no longer
    book it. If the outcome comes first, nothing is cancelled. The queue is cleared afterwards: a
    queue worker also drops a marked request that Redis still has, or has again after a failover.
    """
    now = services.now()
    if ref.requested_by != caller.user_id or not ref.is_known_at(now):
        return TicketNotFound(ref)
    await services.idempotency_records.save(cancelled_record(ref, now))
    ticket = await _find_answered(services, ref) or Ticket(ref, TicketStatus.CANCELLED)
    if ticket.status is not TicketStatus.CANCELLED:
        return TicketNotQueued(ticket)
    await services.admission_queue.remove_cancelled(ref)
    return TicketCancelled(ticket)
