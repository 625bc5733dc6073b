"""Execution of planned operations by real services, and their outcomes in terms of tokens."""

from collections.abc import Mapping
from dataclasses import fields
from datetime import timedelta
from typing import Any

from slotlock.domain.booking.booking import Booking, BookingId, SlotId, WaitlistEntry
from slotlock.domain.booking.booking_outcomes import (
    AllBooked,
    Booked,
    BookingMoved,
    WaitlistJoined,
)
from slotlock.domain.booking.decision import BookingChangeRequest, CommandResult
from slotlock.domain.booking.rules.booking_changes import cancel, confirm, extend
from slotlock.domain.slots.slot_patch import SlotPatch
from slotlock.domain.teams.team import Team, TeamId
from slotlock.domain.teams.team_outcomes import TeamSaved
from slotlock.domain.users.user import Caller, UserId
from slotlock.services import teams
from slotlock.services.booking import book, waitlist
from slotlock.services.booking.booking_changes import change_booking
from slotlock.services.booking.move import move
from slotlock.services.slots import editing
from slotlock.services.workers import hold_sweeper
from tests.support.domain.builders import build_patch
from tests.support.model.operations import (
    MORNING,
    NormalizedEntry,
    NormalizedOutcome,
    PlannedOperation,
)
from tests.support.model.service_pair import ServicePair


async def execute_operation(
    pair: ServicePair, service_index: int, operation: PlannedOperation, ids: dict[str, str]
) -> CommandResult[object]:
    """Execute an operation and return its result. `ids` maps tokens to ids."""
    result = await _execute(pair, service_index, operation, ids)
    return result if isinstance(result, CommandResult) else CommandResult(result)


async def _execute(
    pair: ServicePair, service_index: int, operation: PlannedOperation, ids: dict[str, str]
) -> object:
    match operation.kind:
        case "sweep":
            return await hold_sweeper.sweep(pair.services[service_index])
        case "lose_locks":
            pair.delete_locks()
            return None
        case "flush":
            return pair.redis.flushall()
        case "team_create" | "team_invite" | "team_accept" | "team_leave":
            return await _execute_on_team(pair, service_index, operation, ids)
        case "edit" | "postpone" | "cancel_slot":
            return await _execute_edit(pair, service_index, operation)
        case "book" | "book_all" | "join" | "leave":
            return await _execute_on_slot(pair, service_index, operation)
        case _:
            return await _execute_on_booking(pair, service_index, operation, ids)


async def _execute_on_slot(
    pair: ServicePair, service_index: int, operation: PlannedOperation
) -> Any:
    services, slot_id, caller = (
        pair.services[service_index],
        SlotId(operation.slot_id),
        _caller(pair, operation),
    )
    options = book.BookingOptions(operation.hold, operation.wait_s, operation.key)
    match operation.kind:
        case "book":
            return await book.book_slot(
                services, caller, slot_id, UserId(operation.user_id), options
            )
        case "book_all":
            claims = [(SlotId(slot), UserId(user)) for slot, user in operation.claims]
            return await book.book_slots(services, caller, claims, options)
        case "join":
            return await waitlist.join(services, slot_id, caller.user_id, operation.wait_s)
        case _:
            return await waitlist.leave(services, slot_id, caller.user_id, operation.wait_s)


async def _execute_on_booking(
    pair: ServicePair, service_index: int, operation: PlannedOperation, ids: dict[str, str]
) -> Any:
    services, booking_id = (
        pair.services[service_index],
        BookingId(ids.get(operation.booking, operation.booking)),
    )
    caller = _caller(pair, operation)
    request = BookingChangeRequest(
        SlotId(operation.slot_id), booking_id, caller, operation.wait_s, operation.key
    )
    match operation.kind:
        case "confirm":
            return await change_booking(services, confirm, request)
        case "extend":
            return await change_booking(services, extend, request)
        case "cancel":
            return await change_booking(services, cancel, request)
        case _:
            return await move(services, request, SlotId(operation.target_slot_id))


async def _execute_edit(pair: ServicePair, service_index: int, operation: PlannedOperation) -> Any:
    services, slot_id, caller_id = (
        pair.services[service_index],
        SlotId(operation.slot_id),
        UserId(operation.caller_id),
    )
    if operation.kind == "cancel_slot":
        return await editing.cancel(services, slot_id, caller_id)
    return await editing.edit(services, slot_id, changes_of(operation), caller_id)


def changes_of(operation: PlannedOperation) -> SlotPatch:
    """Return the changes that an operation makes to a slot."""
    if operation.kind == "edit":
        return build_patch(capacity=operation.number)
    start = MORNING + timedelta(minutes=operation.number)
    return build_patch(start=start, end=start + timedelta(hours=1), allow_past=True)


async def _execute_on_team(
    pair: ServicePair, service_index: int, operation: PlannedOperation, ids: dict[str, str]
) -> Any:
    services, caller_id = pair.services[service_index], UserId(operation.caller_id)
    team_id = TeamId(ids.get(operation.booking, operation.booking))
    match operation.kind:
        case "team_create":
            return await teams.create(services, "A team", caller_id)
        case "team_invite":
            return await teams.invite(services, team_id, pair.emails[operation.user_id], caller_id)
        case "team_accept":
            return await teams.accept(services, team_id, caller_id)
        case _:
            return await teams.leave(services, team_id, caller_id)


def _caller(pair: ServicePair, operation: PlannedOperation) -> Caller:
    return next(caller for caller in pair.callers if caller.user_id == operation.caller_id)


def record_tokens(operation: PlannedOperation, outcome: Any, tokens: dict[str, str]) -> None:
    """Record the token of every id that the operation created. `tokens` maps ids to tokens."""
    match outcome:
        case Booked() | BookingMoved():
            tokens.setdefault(outcome.booking.id, operation.token)
        case WaitlistJoined():
            tokens.setdefault(outcome.entry.id, operation.token)
        case AllBooked():
            for index, each in enumerate(outcome.booked):
                tokens.setdefault(each.booking.id, f"{operation.token}.{index}")
        case TeamSaved() if operation.kind == "team_create":
            tokens[outcome.team.id] = operation.token


def normalize_outcome(
    outcome: Any, tokens: Mapping[str, str], user_ids: Mapping[str, str]
) -> NormalizedOutcome:
    """Return an outcome with tokens for ids. Conflicting bookings are left out.

    `user_ids` maps addresses to users.
    """

    def to_token(value: Any) -> object:
        if isinstance(value, Booking):
            return normalize_booking(value, tokens)
        return tokens[value.id] if isinstance(value, WaitlistEntry) else value

    name = type(outcome).__name__
    if isinstance(team := getattr(outcome, "team", None), Team):
        return (name, tokens[team.id], *normalize_team(team, user_ids))
    if name == "NoneBooked":
        return (name, tuple(each and type(each).__name__ for each in outcome.refusals))
    if name == "AllBooked":
        return (name, tuple(normalize_booking(each.booking, tokens) for each in outcome.booked))
    if name == "LimitReached" or not hasattr(outcome, "__dataclass_fields__"):
        return (name,)
    compared = ("booking", "old_booking", "entry", "position")
    values = [getattr(outcome, f.name) for f in fields(outcome) if f.name in compared]
    return (name, *map(to_token, values))


def normalize_booking(booking: Booking, tokens: Mapping[str, str]) -> tuple[object, ...]:
    """Return a booking as the model represents it."""
    history = tuple(
        NormalizedEntry(
            e.at, e.by, e.action.value, e.status.value, e.held_until, tuple(e.overridden_limits)
        )
        for e in booking.history
    )
    return (tokens[booking.id], str(booking.user_id), history)


def normalize_team(
    team: Team, user_ids: Mapping[str, str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the members of a team, and whom they have invited. `user_ids` maps addresses."""
    members = tuple(str(member.user_id) for member in team.members)
    return members, tuple(user_ids[invitation.email] for invitation in team.invitations)
