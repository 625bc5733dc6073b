"""Looking at tickets: in line by what Redis knows, answered by what MongoDB keeps, else lost."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from slotlock.desk.desk import Desk
from slotlock.desk.once import key_id_of
from slotlock.desk.telling import slots_missing, with_slots
from slotlock.domain.people import Caller, UserId
from slotlock.domain.refusals import KeyReused
from slotlock.domain.settling import seen_at
from slotlock.domain.tickets import RequestLost, Ticket, TicketRef, TicketStatus
from slotlock.stores.answers import KeptAnswer
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
    if standing is not None and standing.ref.question == ref.question:
        # What is aside may have been answered: by other means, or before it came back. Asked for
        # again after it was lost, it stands there as a later ticket: told under the id asked for.
        standing_now = replace(standing.ticket, ref=ref)
        return (standing.set_aside and await _kept(desk, ref)) or standing_now
    kept = await _kept(desk, ref)
    if kept is not None:
        return kept
    lost = Ticket(ref, TicketStatus.LOST)
    if standing is not None:  # its key was used again for something else, which is not lost
        return lost
    key_id = key_id_of(ref.asked_by, ref.key)
    await desk.answers.keep(KeptAnswer(key_id, "", RequestLost(), desk.now()))
    return await _kept(desk, ref) or lost


async def _kept(desk: Desk, ref: TicketRef) -> Ticket | None:
    kept = await desk.answers.find(key_id_of(ref.asked_by, ref.key))
    return None if kept is None else await answered(desk, ref, kept)


async def answered(desk: Desk, ref: TicketRef, kept: KeptAnswer) -> Ticket:
    """The ticket with the answer that is kept under its key."""
    if isinstance(kept.outcome, RequestLost):
        return Ticket(ref, TicketStatus.LOST)
    if not kept.fingerprint.startswith(ref.question):
        return Ticket(ref, TicketStatus.ANSWERED, outcome=KeyReused(""))
    outcome = await told_again(desk, kept.outcome, ref.asked_by)
    return Ticket(ref, TicketStatus.ANSWERED, outcome=outcome)


async def told_again(desk: Desk, outcome: Any, asked_by: UserId) -> Any:
    """A kept answer with the slots, as they are now, that it was kept without."""
    missing = slots_missing(outcome)
    if not missing:
        return outcome
    now = desk.now()
    looks = (Look(slot_id, now, [asked_by]) for slot_id in missing)
    found = await asyncio.gather(*map(desk.slots.look, looks))
    return with_slots(outcome, {slot.id: seen_at(slot, now) for slot in found if slot is not None})
