"""Reads tickets: queued ones from Redis, answered ones from MongoDB, all others are lost."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace

from slotlock.domain.admission.tickets import RequestLost, Ticket, TicketRef, TicketStatus
from slotlock.domain.booking.decision import CommandResult
from slotlock.domain.booking.refusals import KeyReused
from slotlock.domain.users.user import Caller
from slotlock.infrastructure.mongo.client import is_unavailable
from slotlock.infrastructure.mongo.idempotency.records import IdempotencyRecord
from slotlock.infrastructure.redis.admission.queue import QueuePosition
from slotlock.infrastructure.redis.auto_pipeline import RedisUnavailableError
from slotlock.services.booking.book import BookSlotCommand
from slotlock.services.commands.current_slot import with_current_slot
from slotlock.services.commands.idempotency import recorded_result
from slotlock.services.container import Services
from slotlock.services.idempotency_key import lost_record, record_id


async def find_ticket(services: Services, ref: TicketRef, caller: Caller) -> Ticket | None:
    """Return a ticket, or None if it belongs to another user or is too old."""
    if ref.requested_by != caller.user_id or not ref.is_known_at(services.now()):
        return None
    return await load_ticket(services, ref)


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
        return Ticket(ref, TicketStatus.LOST)
    result = await with_current_slot(services, recorded_result(record), ref.requested_by)
    final = BookSlotCommand.check_outcome(result.outcome)
    return Ticket(ref, TicketStatus.ANSWERED, result=CommandResult(final, result.slots))
