"""Joining and leaving the waiting list of a slot."""

import logging
from datetime import timedelta

from slotlock.desk.act import act
from slotlock.desk.booked import ACTS
from slotlock.desk.deciding import Request, at
from slotlock.desk.desk import Desk
from slotlock.domain import waitlist as rules
from slotlock.domain.bookings import SlotId, Waiting
from slotlock.domain.outcomes import JoinOutcome, LeaveOutcome
from slotlock.domain.people import UserId
from slotlock.domain.refusals import SlotNotFound
from slotlock.stores.ids import new_wait_id
from slotlock.stores.mongo import is_away

log = logging.getLogger("slotlock")

BANNED_WAIT_S = 5.0
# What was on its way when somebody was banned is over long before: the longest wait is 20 s.
BANNED_LATELY = timedelta(minutes=10)
MOST_BANNED = 1_000


async def join(desk: Desk, slot_id: SlotId, user_id: UserId, wait_s: float) -> JoinOutcome:
    """Wait for a place in a slot that is full."""
    waiting = Waiting(new_wait_id(), slot_id, user_id, desk.now())
    request: Request[JoinOutcome] = Request(
        at(slot_id, lambda slot, now: rules.join(slot, waiting, now), SlotNotFound(slot_id)),
        people=(user_id,),
    )
    outcome: JoinOutcome = await act(desk, [slot_id], request, wait_s)  # type: ignore[assignment]
    ACTS.labels("join", type(outcome).__name__).inc()
    return outcome


async def leave(desk: Desk, slot_id: SlotId, user_id: UserId, wait_s: float) -> LeaveOutcome:
    """Wait no longer."""
    return await _leave(desk, slot_id, user_id, user_id, wait_s)


async def leave_all(desk: Desk, user_id: UserId, by: UserId) -> None:
    """Take somebody who was banned out of every line."""
    for slot_id, _ in await desk.slots.waited_for_by([user_id]):
        await _leave(desk, slot_id, user_id, by, BANNED_WAIT_S)


async def finish_leaving(desk: Desk) -> None:
    """Take those out of every line who joined it while they were banned, or could not leave it."""
    banned = dict(await desk.users.bans.since(desk.now() - BANNED_LATELY, MOST_BANNED))
    for slot_id, user_id in await desk.slots.waited_for_by(list(banned)) if banned else ():
        try:
            await _leave(desk, slot_id, user_id, banned[user_id], 0.0)
        except Exception as error:
            if is_away(error):
                raise
            # A slot that cannot be read keeps nobody in another's line.
            log.warning("the turn of a banned person in slot %s stays", slot_id, exc_info=error)


async def _leave(
    desk: Desk, slot_id: SlotId, user_id: UserId, by: UserId, wait_s: float
) -> LeaveOutcome:
    request: Request[LeaveOutcome] = Request(
        at(slot_id, lambda slot, now: rules.leave(slot, user_id, now, by), SlotNotFound(slot_id)),
        people=(user_id,),
    )
    outcome: LeaveOutcome = await act(desk, [slot_id], request, wait_s)  # type: ignore[assignment]
    ACTS.labels("leave", type(outcome).__name__).inc()
    return outcome


async def position(desk: Desk, waiting: Waiting) -> int | None:
    """How many are served before and with this person; None when they wait no longer."""
    line = await desk.slots.line(waiting.slot_id)
    return line.index(waiting.id) + 1 if waiting.id in line else None
