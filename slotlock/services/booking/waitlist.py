"""Joining and leaving the waiting list of a slot."""

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import ClassVar

from slotlock.domain.booking.booking import SlotId, WaitlistEntry, WaitlistEntryId
from slotlock.domain.booking.booking_outcomes import JoinWaitlistOutcome, LeaveWaitlistOutcome
from slotlock.domain.booking.booking_refusals import SlotNotFound
from slotlock.domain.booking.decision import CommandResult, Decision, LoadedState, refuse
from slotlock.domain.booking.rules import waitlist
from slotlock.domain.booking.rules.expiry import as_of
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.shared.pagination import Position
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.client import after_write, is_unavailable
from slotlock.infrastructure.mongo.ids import new_waitlist_entry_id
from slotlock.services.booking.booking_changes import BOOKING_ACTIONS_TOTAL
from slotlock.services.booking.permissions import account_refusal
from slotlock.services.commands.executor import execute
from slotlock.services.container import Services
from slotlock.services.slot_command import SlotCommand

log = logging.getLogger("slotlock")

REMOVAL_TIMEOUT_S = 5.0
# A request that was sent before its user was banned is over by then: the longest wait is 20 s.
RECENT_BANS = timedelta(minutes=10)
MAX_RECENT_BANS = 1_000


@value_object
class WaitlistPage:
    """Some entries of a slot's waiting list, from a position on, and the length of the list."""

    slot: SlotState
    entries: tuple[WaitlistEntry, ...]
    first_position: int
    length: int

    @property
    def has_more(self) -> bool:
        """Whether more entries follow."""
        return self.first_position - 1 + len(self.entries) < self.length


@value_object
class JoinWaitlist(SlotCommand[JoinWaitlistOutcome]):
    """Append a user to the waiting list of a slot."""

    name: ClassVar[str] = "join"

    entry: WaitlistEntry
    is_drawn: bool = False

    @property
    def slot_ids(self) -> tuple[SlotId, ...]:
        return (self.entry.slot_id,)

    @property
    def user_ids(self) -> tuple[UserId, ...]:
        return (self.entry.user_id,)

    def apply(self, state: LoadedState, now: datetime) -> Decision[JoinWaitlistOutcome]:
        slot = state.slots.get(self.entry.slot_id)
        if slot is None:
            return refuse(SlotNotFound(self.entry.slot_id))
        return waitlist.join(slot, state.users, self.entry, now, is_drawn=self.is_drawn)


@value_object
class LeaveWaitlist(SlotCommand[LeaveWaitlistOutcome]):
    """Remove a user from the waiting list of a slot."""

    name: ClassVar[str] = "leave"

    slot_id: SlotId
    user_id: UserId
    removed_by: UserId

    @property
    def slot_ids(self) -> tuple[SlotId, ...]:
        return (self.slot_id,)

    @property
    def user_ids(self) -> tuple[UserId, ...]:
        return (self.user_id,)

    def apply(self, state: LoadedState, now: datetime) -> Decision[LeaveWaitlistOutcome]:
        slot = state.slots.get(self.slot_id)
        if slot is None:
            return refuse(SlotNotFound(self.slot_id))
        return waitlist.leave(slot, self.user_id, now, self.removed_by)


async def join(
    services: Services,
    slot_id: SlotId,
    user_id: UserId,
    wait_s: float,
    *,
    waitlisted_by: UserId | None = None,
) -> CommandResult[JoinWaitlistOutcome]:
    """Put a user on the waiting list of a full slot.

    `waitlisted_by` is the guardian or organizer who does it; None for the user.
    """
    if waitlisted_by is not None:
        user = (await services.users.find_many([user_id])).get(user_id)
        if refusal := account_refusal(user_id, user):
            return CommandResult(refusal)
    entry = WaitlistEntry(
        new_waitlist_entry_id(),
        slot_id,
        user_id,
        services.now(),
        waitlisted_by=waitlisted_by,
    )
    result = await execute(services, JoinWaitlist(entry), wait_s)
    BOOKING_ACTIONS_TOTAL.labels(JoinWaitlist.name, type(result.outcome).__name__).inc()
    return result


async def leave(
    services: Services,
    slot_id: SlotId,
    user_id: UserId,
    wait_s: float,
    *,
    removed_by: UserId | None = None,
) -> CommandResult[LeaveWaitlistOutcome]:
    """Take a user off the waiting list; `removed_by` does it, by default the user."""
    return await _leave(services, LeaveWaitlist(slot_id, user_id, removed_by or user_id), wait_s)


async def remove(services: Services, slot_id: SlotId, user_id: UserId, removed_by: UserId) -> None:
    """Remove a user from the waiting list of a slot on behalf of another user."""
    await _leave(services, LeaveWaitlist(slot_id, user_id, removed_by), REMOVAL_TIMEOUT_S)


async def remove_from_all(services: Services, user_id: UserId, organizer_id: UserId) -> None:
    """Remove a user from every waiting list, after the write of the ban.

    Raises:
        CommitUnknownError: MongoDB is unavailable now, and the user is banned.
    """
    with after_write():
        for slot_id, _ in await services.waitlists.find_waiting([user_id]):
            await remove(services, slot_id, user_id, organizer_id)


async def remove_recently_banned(services: Services) -> None:
    """Remove users who joined a waiting list while they were being banned, or were locked out."""
    banned_by = dict(
        await services.bans.find_banned_since(services.now() - RECENT_BANS, MAX_RECENT_BANS)
    )
    if not banned_by:
        return
    for slot_id, user_id in await services.waitlists.find_waiting(list(banned_by)):
        command = LeaveWaitlist(slot_id, user_id, banned_by[user_id])
        try:
            await _leave(services, command, 0.0)
        except Exception as error:
            if is_unavailable(error):
                raise
            # One unreadable slot must not stop the removal from the others.
            log.warning(
                "could not remove a banned user from the waitlist of slot_%s",
                slot_id,
                exc_info=error,
            )


async def _leave(
    services: Services, command: LeaveWaitlist, wait_s: float
) -> CommandResult[LeaveWaitlistOutcome]:
    result = await execute(services, command, wait_s)
    BOOKING_ACTIONS_TOTAL.labels(command.name, type(result.outcome).__name__).inc()
    return result


async def page(
    services: Services, slot_id: SlotId, first: int, after: Position | None
) -> WaitlistPage | None:
    """Return a page of a slot's waiting list, in the order it is served; None without a slot."""
    slot = await services.slots.find_with_roster(slot_id)
    if slot is None:
        return None
    begin = 0 if after is None else _index_after(slot.waitlist, after)
    entries = slot.waitlist[begin : begin + first]
    return WaitlistPage(as_of(slot, services.now()), entries, begin + 1, slot.waitlist_length)


def _index_after(entries: Sequence[WaitlistEntry], position: Position) -> int:
    """Return where a list continues after an entry, which may have left it."""
    for index, entry in enumerate(entries):
        if entry.id == position.id:
            return index + 1
    return sum((entry.since, entry.id) < (position.start, position.id) for entry in entries)


async def find_entry(
    services: Services, slot_id: SlotId, entry_id: WaitlistEntryId
) -> tuple[WaitlistEntry, SlotState] | None:
    """Return an entry of any user with its slot; None if the user does not wait any more."""
    slot = await services.slots.find_with_roster(slot_id)
    found = (entry for entry in slot.waitlist if entry.id == entry_id) if slot else iter(())
    entry = next(found, None)
    return (entry, as_of(slot, services.now())) if slot and entry else None


async def position(services: Services, entry: WaitlistEntry) -> int | None:
    """Return the position in the waiting list, from 1; None if the user does not wait any more."""
    entry_ids = await services.waitlists.find_ids(entry.slot_id)
    return entry_ids.index(entry.id) + 1 if entry.id in entry_ids else None
