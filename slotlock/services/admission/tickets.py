"""Reads tickets: queued ones from Redis, answered ones from MongoDB, all others are lost."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from slotlock.domain.admission.tickets import RequestLost, Ticket, TicketRef, TicketStatus
from slotlock.domain.booking.availability import is_visible
from slotlock.domain.booking.promotion import as_of
from slotlock.domain.booking.refusals import KeyReused
from slotlock.domain.booking.slot import Slot
from slotlock.domain.users.user import Caller, UserId
from slotlock.infrastructure.mongo.client import is_unavailable
from slotlock.infrastructure.mongo.idempotency_records import IdempotencyRecord
from slotlock.infrastructure.mongo.slots.slot_query import SlotQuery
from slotlock.infrastructure.redis.admission.queue import QueuePosition
from slotlock.infrastructure.redis.auto_pipeline import RedisUnavailableError
from slotlock.services.commands.outcome_snapshots import restore_slots, stripped_slot_ids
from slotlock.services.container import Services
from slotlock.services.idempotency_key import lost_record, record_id


async def find_ticket(services: Services, ref: TicketRef, caller: Caller) -> Ticket | None:
    """Return a ticket, or None if it belongs to somebody else or is too old."""
    if ref.requested_by != caller.user_id or not ref.is_known_at(services.now()):
        return None
    return await load_ticket(services, ref)


async def load_tickets(
    services: Services, refs: Iterable[TicketRef]
) -> Sequence[Ticket | BaseException]:
    """Return each ticket, or the error why it could not be read. The reads are batched."""
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
        return Ticket(ref, TicketStatus.ANSWERED, outcome=KeyReused(""))
    if isinstance(record.outcome, RequestLost):
        return Ticket(ref, TicketStatus.LOST)
    outcome = await replay_outcome(services, record.outcome, ref.requested_by)
    return Ticket(ref, TicketStatus.ANSWERED, outcome=outcome)


async def replay_outcome(services: Services, outcome: Any, user_id: UserId) -> Any:
    """Add the present slots to an outcome that was stored without them.

    Returns SlotNotFound if the user may not see such a slot any more.
    """
    missing = stripped_slot_ids(outcome)
    if not missing:
        return outcome
    now = services.now()
    queries = (SlotQuery(slot_id, now, [user_id]) for slot_id in missing)
    slots = await asyncio.gather(*map(services.slots.find, queries))
    visible = [slot for slot in slots if slot and await _is_visible_to(services, slot, user_id)]
    return restore_slots(outcome, {slot.id: as_of(slot, now) for slot in visible})


async def _is_visible_to(services: Services, slot: Slot, user_id: UserId) -> bool:
    if is_visible(slot, None) or slot.booking_of(user_id):
        return True
    # The slot was unpublished meanwhile. A ticket names its user only by id, so load the role.
    user = (await services.users.find_many([user_id])).get(user_id)
    return user is not None and user.role.is_organizer
