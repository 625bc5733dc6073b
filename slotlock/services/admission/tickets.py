"""Looking at tickets: in line by what Redis knows, answered by what MongoDB keeps, else lost."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from slotlock.domain.booking.availability import is_visible
from slotlock.domain.booking.promotion import as_of
from slotlock.domain.booking.refusals import KeyReused
from slotlock.domain.booking.slot import Slot
from slotlock.domain.booking.tickets import RequestLost, Ticket, TicketRef, TicketStatus
from slotlock.domain.users.user import Caller, UserId
from slotlock.infrastructure.mongo.client import is_unavailable
from slotlock.infrastructure.mongo.idempotency_records import IdempotencyRecord
from slotlock.infrastructure.mongo.slots.slot_query import SlotQuery
from slotlock.infrastructure.redis.admission.queue import QueuePosition
from slotlock.infrastructure.redis.auto_pipeline import RedisUnavailableError
from slotlock.services.commands.idempotency_key import lost_record, record_id
from slotlock.services.commands.outcome_snapshots import restore_slots, stripped_slot_ids
from slotlock.services.container import Services


async def find_ticket(services: Services, ref: TicketRef, caller: Caller) -> Ticket | None:
    """The ticket as it stands; None for anybody but who asked for it, and when it is too old."""
    if ref.requested_by != caller.user_id or not ref.is_known_at(services.now()):
        return None
    return await load_ticket(services, ref)


async def load_tickets(
    services: Services, refs: Iterable[TicketRef]
) -> Sequence[Ticket | BaseException]:
    """The tickets as they stand, or why one cannot be read. What concerns many travels together."""
    reads = (load_ticket(services, ref) for ref in refs)
    return await asyncio.gather(*reads, return_exceptions=True)


async def load_ticket(services: Services, ref: TicketRef) -> Ticket:
    """A ticket as it stands.

    The line is asked first: outcomes are written before a request leaves it, so that what is
    neither there nor answered afterwards is lost. That is written down before it is told, for then
    nobody who may still have the request can grant it.
    """
    try:
        standing = await services.admission_queue.find(ref.slot_id, ref.requested_by, ref.key_hash)
    except RedisUnavailableError:
        return await _find_answered(services, ref) or Ticket(ref, TicketStatus.QUEUED)
    if standing is not None and standing.matches(ref.key_hash, ref.request_hash):
        return await queued_ticket(services, ref, standing)
    kept = await _find_answered(services, ref)
    if kept is not None:
        return kept
    # Also where its key stands in line for something else, which that will not be granted.
    mark = lost_record(record_id(ref.requested_by, ref.key_hash), ref.request_hash, services.now())
    await services.idempotency_records.save(mark)
    return await _find_answered(services, ref) or Ticket(ref, TicketStatus.LOST)


async def queued_ticket(
    services: Services, ref: TicketRef, queue_position: QueuePosition
) -> Ticket:
    """The ticket of who stands in line, under the id asked for: after it was lost and asked for
    again, a later one stands there.

    It may have been answered all the same, by other means or before it came back into the line, and
    what was answered stays so. While MongoDB is away it is told where it stands.
    """
    try:
        kept = await _find_answered(services, ref)
    except Exception as error:
        if not is_unavailable(error):
            raise
        kept = None
    return kept or replace(queue_position.ticket, ref=ref)


async def _find_answered(services: Services, ref: TicketRef) -> Ticket | None:
    kept = await services.idempotency_records.find(record_id(ref.requested_by, ref.key_hash))
    return None if kept is None else await answered_ticket(services, ref, kept)


async def answered_ticket(services: Services, ref: TicketRef, record: IdempotencyRecord) -> Ticket:
    """The ticket with the answer that is kept under its key."""
    if not record.request_hash.startswith(ref.request_hash):
        return Ticket(ref, TicketStatus.ANSWERED, outcome=KeyReused(""))
    if isinstance(record.outcome, RequestLost):
        return Ticket(ref, TicketStatus.LOST)
    outcome = await replay_outcome(services, record.outcome, ref.requested_by)
    return Ticket(ref, TicketStatus.ANSWERED, outcome=outcome)


async def replay_outcome(services: Services, outcome: Any, user_id: UserId) -> Any:
    """A kept answer with the slots, as they are now, that it was kept without; SlotNotFound when
    its reader may not see them any more.
    """
    missing = stripped_slot_ids(outcome)
    if not missing:
        return outcome
    now = services.now()
    looks = (SlotQuery(slot_id, now, [user_id]) for slot_id in missing)
    found = await asyncio.gather(*map(services.slots.find, looks))
    seen = [slot for slot in found if slot and await _is_visible_to(services, slot, user_id)]
    return restore_slots(outcome, {slot.id: as_of(slot, now) for slot in seen})


async def _is_visible_to(services: Services, slot: Slot, user_id: UserId) -> bool:
    if is_visible(slot, None) or slot.booking_of(user_id):
        return True
    # Hidden since: for organisers, and who watches a ticket is known by their id alone.
    user = (await services.users.find_many([user_id])).get(user_id)
    return user is not None and user.role.is_organizer
