"""Looking at tickets: in line by what Redis knows, answered by what MongoDB keeps, else lost."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from slotlock.desk.desk import Desk
from slotlock.desk.once import key_id_of, lost_mark
from slotlock.desk.telling import slots_missing, with_slots
from slotlock.domain.availability import visible
from slotlock.domain.people import Caller, UserId
from slotlock.domain.refusals import KeyReused
from slotlock.domain.settling import seen_at
from slotlock.domain.slots import Slot
from slotlock.domain.tickets import RequestLost, Ticket, TicketRef, TicketStatus
from slotlock.stores.answers import KeptAnswer
from slotlock.stores.mongo import is_away
from slotlock.stores.queue import Standing
from slotlock.stores.redis import RedisAwayError
from slotlock.stores.slots import Look


async def find_ticket(desk: Desk, ref: TicketRef, caller: Caller) -> Ticket | None:
    """The ticket as it stands; None for anybody but who asked for it, and when it is too old."""
    if ref.asked_by != caller.user_id or not ref.known_at(desk.now()):
        return None
    return await read_ticket(desk, ref)


async def read_tickets(desk: Desk, refs: Iterable[TicketRef]) -> Sequence[Ticket | BaseException]:
    """The tickets as they stand, or why one cannot be read. What concerns many travels together."""
    reads = (read_ticket(desk, ref) for ref in refs)
    return await asyncio.gather(*reads, return_exceptions=True)


async def read_ticket(desk: Desk, ref: TicketRef) -> Ticket:
    """A ticket as it stands.

    The line is asked first: outcomes are written before a request leaves it, so that what is
    neither there nor answered afterwards is lost. That is written down before it is told, for then
    nobody who may still have the request can grant it.
    """
    try:
        standing = await desk.queue.find(ref.slot_id, ref.asked_by, ref.key)
    except RedisAwayError:
        return await _kept(desk, ref) or Ticket(ref, TicketStatus.QUEUED)
    if standing is not None and standing.is_for(ref.key, ref.question):
        return await standing_ticket(desk, ref, standing)
    kept = await _kept(desk, ref)
    if kept is not None:
        return kept
    # Also where its key stands in line for something else, which that will not be granted.
    mark = lost_mark(key_id_of(ref.asked_by, ref.key), ref.question, desk.now())
    await desk.answers.keep(mark)
    return await _kept(desk, ref) or Ticket(ref, TicketStatus.LOST)


async def standing_ticket(desk: Desk, ref: TicketRef, standing: Standing) -> Ticket:
    """The ticket of who stands in line, under the id asked for: after it was lost and asked for
    again, a later one stands there.

    It may have been answered all the same, by other means or before it came back into the line, and
    what was answered stays so. While MongoDB is away it is told where it stands.
    """
    try:
        kept = await _kept(desk, ref)
    except Exception as error:
        if not is_away(error):
            raise
        kept = None
    return kept or replace(standing.ticket, ref=ref)


async def _kept(desk: Desk, ref: TicketRef) -> Ticket | None:
    kept = await desk.answers.find(key_id_of(ref.asked_by, ref.key))
    return None if kept is None else await answered(desk, ref, kept)


async def answered(desk: Desk, ref: TicketRef, kept: KeptAnswer) -> Ticket:
    """The ticket with the answer that is kept under its key."""
    if not kept.fingerprint.startswith(ref.question):
        return Ticket(ref, TicketStatus.ANSWERED, outcome=KeyReused(""))
    if isinstance(kept.outcome, RequestLost):
        return Ticket(ref, TicketStatus.LOST)
    outcome = await told_again(desk, kept.outcome, ref.asked_by)
    return Ticket(ref, TicketStatus.ANSWERED, outcome=outcome)


async def told_again(desk: Desk, outcome: Any, asked_by: UserId) -> Any:
    """A kept answer with the slots, as they are now, that it was kept without; SlotNotFound when
    its reader may not see them any more.
    """
    missing = slots_missing(outcome)
    if not missing:
        return outcome
    now = desk.now()
    looks = (Look(slot_id, now, [asked_by]) for slot_id in missing)
    found = await asyncio.gather(*map(desk.slots.look, looks))
    seen = [slot for slot in found if slot and await _is_seen(desk, slot, asked_by)]
    return with_slots(outcome, {slot.id: seen_at(slot, now) for slot in seen})


async def _is_seen(desk: Desk, slot: Slot, user_id: UserId) -> bool:
    if visible(slot, None) or slot.booking_of(user_id):
        return True
    # Hidden since: for organisers, and who watches a ticket is known by their id alone.
    user = (await desk.users.by_ids([user_id])).get(user_id)
    return user is not None and user.role.organises
