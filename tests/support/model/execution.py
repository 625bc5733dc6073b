"""A planned act at a real desk, and its answer told in tokens, as the model tells it."""

from dataclasses import fields
from datetime import timedelta
from typing import Any

from slotlock.domain.booking.booking import Booking, BookingId, SlotId, WaitlistEntry
from slotlock.domain.teams.team import Team, TeamId
from slotlock.domain.users.user import Caller, UserId
from slotlock.services import teams
from slotlock.services.booking import book, waitlist
from slotlock.services.booking.changes import BookingChangeRequest, cancel, confirm, extend, move
from slotlock.services.slots import editing
from slotlock.services.workers import hold_sweeper
from tests.support.model.operations import (
    MORNING,
    NormalizedEntry,
    NormalizedOutcome,
    PlannedOperation,
)
from tests.support.model.service_pair import ServicePair


async def execute_operation(
    pair: ServicePair, service_index: int, operation: PlannedOperation, ids: dict[str, str]
) -> Any:
    """What comes of an act at one of the desks. `ids`: those of the tokens so far."""
    match operation.kind:
        case "sweep":
            return await hold_sweeper.sweep(pair.services[service_index])
        case "lose_locks":
            return pair.delete_locks()
        case "flush":
            return pair.redis.flushall()
        case "team_create" | "team_invite" | "team_accept" | "team_leave":
            return await _execute_on_team(pair, service_index, operation, ids)
        case "edit" | "postpone" | "call_off":
            return await _execute_edit(pair, service_index, operation)
        case "book" | "book_all" | "join" | "leave":
            return await _execute_on_slot(pair, service_index, operation)
        case _:
            return await _execute_on_booking(pair, service_index, operation, ids)


async def _execute_on_slot(
    pair: ServicePair, service_index: int, operation: PlannedOperation
) -> Any:
    desk, slot_id, caller = (
        pair.services[service_index],
        SlotId(operation.slot_id),
        _caller(pair, operation),
    )
    wish = book.BookingOptions(operation.hold, operation.wait_s, operation.key)
    match operation.kind:
        case "book":
            return await book.book(desk, caller, slot_id, UserId(operation.user_id), wish)
        case "book_all":
            claims = [(SlotId(slot), UserId(person)) for slot, person in operation.claims]
            return await book.book_all(desk, caller, claims, wish)
        case "join":
            return await waitlist.join(desk, slot_id, caller.user_id, operation.wait_s)
        case _:
            return await waitlist.leave(desk, slot_id, caller.user_id, operation.wait_s)


async def _execute_on_booking(
    pair: ServicePair, service_index: int, operation: PlannedOperation, ids: dict[str, str]
) -> Any:
    desk, known = (
        pair.services[service_index],
        BookingId(ids.get(operation.booking, operation.booking)),
    )
    caller = _caller(pair, operation)
    errand = BookingChangeRequest(
        SlotId(operation.slot_id), known, caller, operation.wait_s, operation.key
    )
    match operation.kind:
        case "confirm":
            return await confirm(desk, errand)
        case "extend":
            return await extend(desk, errand)
        case "cancel":
            return await cancel(desk, errand)
        case _:
            return await move(desk, errand, SlotId(operation.target_slot_id))


async def _execute_edit(pair: ServicePair, service_index: int, operation: PlannedOperation) -> Any:
    desk, slot_id, me = (
        pair.services[service_index],
        SlotId(operation.slot_id),
        UserId(operation.caller_id),
    )
    if operation.kind == "call_off":
        return await editing.cancel(desk, slot_id, me)
    start = MORNING + timedelta(minutes=operation.number)
    times = {"start": start, "end": start + timedelta(hours=1)}
    changes = times if operation.kind == "postpone" else {"capacity": operation.number}
    return await editing.edit(desk, slot_id, changes, me)


async def _execute_on_team(
    pair: ServicePair, service_index: int, operation: PlannedOperation, ids: dict[str, str]
) -> Any:
    desk, me = pair.services[service_index], UserId(operation.caller_id)
    team_id = TeamId(ids.get(operation.booking, operation.booking))
    match operation.kind:
        case "team_create":
            return await teams.create(desk, "A team", me)
        case "team_invite":
            return await teams.invite(desk, team_id, pair.emails[operation.user_id], me)
        case "team_accept":
            return await teams.accept(desk, team_id, me)
        case _:
            return await teams.leave(desk, team_id, me)


def _caller(pair: ServicePair, operation: PlannedOperation) -> Caller:
    return next(person for person in pair.callers if person.user_id == operation.caller_id)


def record_tokens(operation: PlannedOperation, outcome: Any, tokens: dict[str, str]) -> None:
    """Note the ids of what came of an act: `tokens` tells the token of an id."""
    match type(outcome).__name__:
        case "Booked" | "BookingMoved":
            tokens.setdefault(outcome.booking.id, operation.token)
        case "WaitlistJoined":
            tokens.setdefault(outcome.entry.id, operation.token)
        case "AllBooked":
            for place, each in enumerate(outcome.booked):
                tokens.setdefault(each.booking.id, f"{operation.token}.{place}")
        case "TeamSaved" if operation.kind == "team_create":
            tokens[outcome.team.id] = operation.token


def normalize_outcome(outcome: Any, tokens: dict[str, str], pair: ServicePair) -> NormalizedOutcome:
    """An outcome in tokens. Which booking stands in the way of another is left out."""
    people = {email: user_id for user_id, email in pair.emails.items()}

    def to_token(value: Any) -> object:
        if isinstance(value, Booking):
            return normalize_booking(value, tokens)
        return tokens[value.id] if isinstance(value, WaitlistEntry) else value

    name = type(outcome).__name__
    if isinstance(team := getattr(outcome, "team", None), Team):
        members = tuple(str(member.user_id) for member in team.members)
        invited = tuple(people[invitation.email] for invitation in team.invitations)
        return (name, tokens[team.id], members, invited)
    if name == "NoneBooked":
        return (name, tuple(each and type(each).__name__ for each in outcome.refusals))
    if name == "AllBooked":
        return (name, tuple(normalize_booking(each.booking, tokens) for each in outcome.booked))
    if name == "LimitReached" or not hasattr(outcome, "__dataclass_fields__"):
        return (name,)
    interesting = ("booking", "old_booking", "entry", "position")
    values = [getattr(outcome, f.name) for f in fields(outcome) if f.name in interesting]
    return (name, *map(to_token, values))


def normalize_booking(booking: Booking, tokens: dict[str, str]) -> tuple[object, ...]:
    """All that there is to say of a booking."""
    log = tuple(
        NormalizedEntry(
            e.at, e.by, e.action.value, e.status.value, e.held_until, tuple(e.overridden_limits)
        )
        for e in booking.history
    )
    return (tokens[booking.id], str(booking.user_id), log)
