"""What the rules of the domain decide of planned operations, one after the other, without servers.

The ids of what an operation creates are its tokens, so that several orders of the same operations
can be compared with reality.
"""

from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field, fields
from datetime import datetime
from functools import partial
from typing import Any

from slotlock.domain.booking.booking import (
    Booking,
    BookingId,
    SlotId,
    WaitlistEntry,
    WaitlistEntryId,
)
from slotlock.domain.booking.booking_outcomes import BookingAlreadyDone, BookingWritten, NoneBooked
from slotlock.domain.booking.booking_refusals import BookingNotFound, NotTeammate
from slotlock.domain.booking.decision import BookingChangeRequest, BookingRule, LoadedState
from slotlock.domain.booking.rules.book import BookingRequest, SlotClaim
from slotlock.domain.booking.rules.booking_changes import cancel, confirm, expired_refusal, extend
from slotlock.domain.booking.slot import SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.booking.user_contexts import UserContext, UserContexts
from slotlock.domain.slots.editing import cancel_slot, edit
from slotlock.domain.slots.series import SlotEdit
from slotlock.domain.slots.slot_outcomes import SlotsSaved
from slotlock.domain.teams import membership
from slotlock.domain.teams.team import Team, TeamId, shared_with
from slotlock.domain.teams.team_outcomes import NotInvited, TeamNotFound, TeamSaved
from slotlock.domain.users.user import Caller, Role, UserId
from slotlock.services.batch_decision import decide_batch
from slotlock.services.booking.book import BookSlotCommand, BookSlotsCommand
from slotlock.services.booking.booking_changes import BookingChangeCommand
from slotlock.services.booking.move import MoveBooking
from slotlock.services.booking.waitlist import JoinWaitlist, LeaveWaitlist
from slotlock.services.slot_command import SlotCommand
from slotlock.services.slots.edit_command import EditSlots
from tests.support.domain.step_sequences import as_reloaded
from tests.support.model.execution import changes_of, normalize_outcome, normalize_team
from tests.support.model.operations import NormalizedOutcome, PlannedOperation
from tests.support.model.stored_state import booking_snapshot

CHANGES: dict[str, BookingRule[..., Any]] = {each.name: each for each in (confirm, extend, cancel)}


class _Same(dict[str, str]):
    """Has the token of every id, which is the id itself."""

    def __missing__(self, key: str) -> str:
        return key


SAME: Mapping[str, str] = _Same()


@dataclass
class Oracle:
    """All slots and teams, and what has ended."""

    slots: dict[SlotId, SlotState] = field(default_factory=dict)
    ended_bookings: dict[BookingId, Booking] = field(default_factory=dict)
    ended_entries: list[WaitlistEntryId] = field(default_factory=list)
    teams: dict[TeamId, Team] = field(default_factory=dict)
    outcomes_by_key: dict[tuple[str, str], tuple[object, NormalizedOutcome]] = field(
        default_factory=dict
    )

    def copy(self) -> "Oracle":
        """Return another one with the same state, whose values never change."""
        return Oracle(*(copy(getattr(self, each.name)) for each in fields(self)))

    def snapshot(self) -> dict[str, object]:
        """Return the whole state in a form that can be compared with the stored state."""
        return {
            **booking_snapshot(self.slots, self.ended_bookings, SAME),
            "ended_waitlist_entries": sorted(self.ended_entries),
            "teams": {id_: normalize_team(team, SAME) for id_, team in self.teams.items()},
            "idempotency_records": len(self.outcomes_by_key),
        }

    def apply(self, operation: PlannedOperation, now: datetime) -> NormalizedOutcome:
        """Apply an operation and return its outcome."""
        key = (operation.caller_id, operation.key or "")
        if operation.key and key in self.outcomes_by_key:
            request, recorded = self.outcomes_by_key[key]
            return recorded if request == operation.request else ("KeyReused",)
        is_about_team = operation.kind.startswith("team_")
        outcome = (self._change_team if is_about_team else self._change_slots)(operation, now)
        normalized = normalize_outcome(outcome, SAME, SAME)
        if operation.key and isinstance(outcome, BookingWritten | BookingAlreadyDone):
            self.outcomes_by_key[key] = (operation.request, normalized)
        return normalized

    def decide(
        self,
        slot_ids: Iterable[SlotId],
        now: datetime,
        *commands: SlotCommand[object],
        ends_waitlists: bool = False,
    ) -> tuple[object, ...]:
        """Decide commands on these slots, write what they change, and return the outcomes."""
        loaded = {id_: self.slots[id_] for id_ in slot_ids if id_ in self.slots}
        asking = {user_id for command in commands for user_id in command.user_ids}
        known = LoadedState(loaded, self._users(asking))
        decided = decide_batch(known, commands, now, ends_waitlists=ends_waitlists)
        for after in (update.after for update in decided.updates):
            self.slots[after.id] = as_reloaded(after)
            self.ended_bookings |= {each.id: each for each in after.change.ended}
            self.ended_entries += [each.entry.id for each in after.change.ended_entries]
        return tuple(decision.outcome for decision in decided.decisions)

    def _users(self, asking: Iterable[UserId]) -> UserContexts:
        """Return the contexts of users, with their bookings in slots that are not cancelled."""
        states = self.slots.values()
        waiting = (each.user_id for state in states for each in state.waitlist)
        known = UserContexts({each: UserContext(each) for each in (*asking, *waiting)})
        for state in states:
            if state.slot.status is not SlotStatus.CANCELLED:
                known = known.with_bookings(state.slot, state.bookings)
        return known

    def _change_slots(self, operation: PlannedOperation, now: datetime) -> object:
        role = Role.ORGANIZER if operation.as_organizer else Role.MEMBER
        caller = Caller(UserId(operation.caller_id), role, "session", now)
        command = self._command(operation, caller, now)
        if isinstance(command, NotTeammate | NoneBooked):
            return command
        missing = BookingNotFound(SlotId(operation.slot_id), BookingId(operation.booking))
        outcome = self.decide(command.slot_ids, now, command)[0] if command else missing
        if isinstance(outcome, SlotsSaved):
            return outcome.saved[0]
        ended = self.ended_bookings.get(missing.booking_id)
        if ended is None or not ended.is_managed_by(caller) or outcome != missing:
            return outcome
        change = CHANGES.get(operation.kind)
        return (change.ended_outcome if change else expired_refusal)(ended) or missing

    def _command(
        self, operation: PlannedOperation, caller: Caller, now: datetime
    ) -> SlotCommand[object] | NotTeammate | NoneBooked | None:
        """Return the command, or why there is none: None if the booking to move is not found."""
        slot_id, user_id, token = SlotId(operation.slot_id), caller.user_id, operation.token
        change = BookingChangeRequest(slot_id, BookingId(operation.booking), caller)
        request = partial(self._request, operation, caller)
        match operation.kind:
            case "book":
                refusal = self._not_permitted(operation, operation.user_id)
                return refusal or BookSlotCommand(caller, slot_id, request(operation.user_id))
            case "book_all":
                refusals = [self._not_permitted(operation, user) for _, user in operation.claims]
                if any(refusals):
                    return NoneBooked(tuple(refusals))
                claims = (
                    SlotClaim(SlotId(claimed_id), request(user, f".{number}"))
                    for number, (claimed_id, user) in enumerate(operation.claims)
                )
                return BookSlotsCommand(caller, tuple(claims))
            case "move":
                booking = self.slots[slot_id].booking_by_id(change.booking_id)
                if booking is None or not booking.is_managed_by(caller):
                    return None
                target_id = SlotId(operation.target_slot_id)
                return MoveBooking(change, target_id, request(booking.user_id))
            case "join":
                return JoinWaitlist(WaitlistEntry(WaitlistEntryId(token), slot_id, user_id, now))
            case "leave":
                return LeaveWaitlist(slot_id, user_id, user_id)
            case "edit" | "postpone" | "cancel_slot":
                return EditSlots(user_id, _edit_of(operation), (self.slots[slot_id].slot,), (), ())
            case kind:
                rule = CHANGES[kind].decide
                return BookingChangeCommand(
                    change, lambda slot, users, at: rule(slot, users, change, at)
                )

    def _request(
        self, operation: PlannedOperation, caller: Caller, user: str, number: str = ""
    ) -> BookingRequest:
        new_id = BookingId(operation.token + number)
        if any(state.booking_by_id(new_id) for state in self.slots.values()):
            new_id = BookingId(f"{new_id} again")  # the same operation is another request
        request = BookingRequest(UserId(user), new_id, caller.user_id, operation.hold)
        return request.made_by(caller)

    def _not_permitted(self, operation: PlannedOperation, user: str) -> NotTeammate | None:
        caller_id, user_id = UserId(operation.caller_id), UserId(user)
        teammates, _ = shared_with(self.teams.values(), caller_id, [user_id])
        permitted = operation.as_organizer or user_id in (caller_id, *teammates)
        return None if permitted else NotTeammate(user_id)

    def _change_team(self, operation: PlannedOperation, now: datetime) -> object:
        caller_id, team_id = UserId(operation.caller_id), TeamId(operation.booking)
        if operation.kind == "team_create":
            created = membership.create(TeamId(operation.token), "A team", caller_id, 0, now)
            assert isinstance(created, TeamSaved)
            self.teams[created.team.id] = created.team
            return created
        team = self.teams.pop(team_id, None)
        if team is None:
            return NotInvited() if operation.kind == "team_accept" else TeamNotFound(team_id)
        decided: Any
        match operation.kind:  # the address of a user is the id
            case "team_invite":
                members = {str(each.user_id): each.user_id for each in team.members}
                decided = membership.invite(team, caller_id, operation.user_id, members, 0, now)
            case "team_accept":
                decided = membership.accept(team, caller_id, caller_id, 0, now)
            case _:
                decided = membership.leave(team, caller_id)
        if decided.team:
            self.teams[team_id] = decided.team
        return decided.outcome


def _edit_of(operation: PlannedOperation) -> SlotEdit:
    if operation.kind == "cancel_slot":
        return lambda state, now: cancel_slot(state, UserId(operation.caller_id), now)
    changes = changes_of(operation)
    return lambda state, now: edit(state, changes, now)
