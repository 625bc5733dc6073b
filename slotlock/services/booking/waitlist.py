"""Joining and leaving the waiting list of a slot."""

import logging
from datetime import timedelta

from slotlock.domain.booking import waitlist
from slotlock.domain.booking.booking import SlotId, WaitlistEntry
from slotlock.domain.booking.outcomes import JoinWaitlistOutcome, LeaveWaitlistOutcome
from slotlock.domain.booking.refusals import SlotNotFound
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.client import is_unavailable
from slotlock.infrastructure.mongo.ids import new_waitlist_entry_id
from slotlock.services.booking.changes import BOOKING_ACTIONS_TOTAL
from slotlock.services.commands.decisions import SlotCommand, on_slot
from slotlock.services.commands.executor import execute
from slotlock.services.commands.outcome_labels import outcome_label
from slotlock.services.container import Services

log = logging.getLogger("slotlock")

REMOVAL_TIMEOUT_S = 5.0
# What was on its way when somebody was banned is over long before: the longest wait is 20 s.
RECENT_BANS = timedelta(minutes=10)
MAX_RECENT_BANS = 1_000


async def join(
    services: Services, slot_id: SlotId, user_id: UserId, wait_s: float
) -> JoinWaitlistOutcome:
    """Wait for a place in a slot that is full."""
    waiting = WaitlistEntry(new_waitlist_entry_id(), slot_id, user_id, services.now())
    request: SlotCommand[JoinWaitlistOutcome] = SlotCommand(
        on_slot(
            slot_id, lambda slot, now: waitlist.join(slot, waiting, now), SlotNotFound(slot_id)
        ),
        user_ids=(user_id,),
    )
    outcome: JoinWaitlistOutcome = await execute(services, [slot_id], request, wait_s)  # type: ignore[assignment]
    BOOKING_ACTIONS_TOTAL.labels("join", outcome_label(outcome)).inc()
    return outcome


async def leave(
    services: Services, slot_id: SlotId, user_id: UserId, wait_s: float
) -> LeaveWaitlistOutcome:
    """Wait no longer."""
    return await _leave(services, slot_id, user_id, user_id, wait_s)


async def remove_from_all(services: Services, user_id: UserId, organizer_id: UserId) -> None:
    """Take somebody who was banned out of every line."""
    for slot_id, _ in await services.slots.find_waitlisted([user_id]):
        await _leave(services, slot_id, user_id, organizer_id, REMOVAL_TIMEOUT_S)


async def remove_recently_banned(services: Services) -> None:
    """Take those out of every line who joined it while they were banned, or could not leave it."""
    banned = dict(
        await services.users.bans.find_banned_since(services.now() - RECENT_BANS, MAX_RECENT_BANS)
    )
    for slot_id, user_id in await services.slots.find_waitlisted(list(banned)) if banned else ():
        try:
            await _leave(services, slot_id, user_id, banned[user_id], 0.0)
        except Exception as error:
            if is_unavailable(error):
                raise
            # A slot that cannot be read keeps nobody in another's line.
            log.warning("the turn of a banned person in slot %s stays", slot_id, exc_info=error)


async def _leave(
    services: Services, slot_id: SlotId, user_id: UserId, actor_id: UserId, wait_s: float
) -> LeaveWaitlistOutcome:
    request: SlotCommand[LeaveWaitlistOutcome] = SlotCommand(
        on_slot(
            slot_id,
            lambda slot, now: waitlist.leave(slot, user_id, now, actor_id),
            SlotNotFound(slot_id),
        ),
        user_ids=(user_id,),
    )
    outcome: LeaveWaitlistOutcome = await execute(services, [slot_id], request, wait_s)  # type: ignore[assignment]
    BOOKING_ACTIONS_TOTAL.labels("leave", outcome_label(outcome)).inc()
    return outcome


async def position(services: Services, entry: WaitlistEntry) -> int | None:
    """How many are served before and with this person; None when they wait no longer."""
    line = await services.slots.waitlist_ids(entry.slot_id)
    return line.index(entry.id) + 1 if entry.id in line else None
