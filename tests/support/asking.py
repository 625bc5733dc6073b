"""A planned act at a real desk, and its answer told in tokens, as the model tells it."""

from dataclasses import fields
from datetime import timedelta
from typing import Any

from slotlock.desk import booked, booking, keeping, sweeping, teams, waitlist
from slotlock.domain.bookings import Booking, BookingId, SlotId, Waiting
from slotlock.domain.people import Caller, UserId
from slotlock.domain.teams import Team, TeamId
from tests.support.acts import MORNING, Act, Answer, LogEntry
from tests.support.desks import House


async def ask(house: House, place: int, act: Act, ids: dict[str, str]) -> Any:
    """What comes of an act at one of the desks. `ids`: those of the tokens so far."""
    match act.verb:
        case "sweep":
            return await sweeping.sweep(house.desks[place])
        case "lose_locks":
            return house.lose_locks()
        case "flush":
            return house.redis.flushall()
        case "team_create" | "team_invite" | "team_accept" | "team_leave":
            return await _ask_of_team(house, place, act, ids)
        case "edit" | "postpone" | "call_off":
            return await _ask_to_keep(house, place, act)
        case "book" | "book_all" | "join" | "leave":
            return await _ask_for_place(house, place, act)
        case _:
            return await _ask_of_booking(house, place, act, ids)


async def _ask_for_place(house: House, place: int, act: Act) -> Any:
    desk, slot_id, caller = house.desks[place], SlotId(act.slot), _caller(house, act)
    wish = booking.Wish(act.hold, act.wait_s, act.key)
    match act.verb:
        case "book":
            return await booking.book(desk, caller, slot_id, UserId(act.person), wish)
        case "book_all":
            claims = [(SlotId(slot), UserId(person)) for slot, person in act.claims]
            return await booking.book_all(desk, caller, claims, wish)
        case "join":
            return await waitlist.join(desk, slot_id, caller.user_id, act.wait_s)
        case _:
            return await waitlist.leave(desk, slot_id, caller.user_id, act.wait_s)


async def _ask_of_booking(house: House, place: int, act: Act, ids: dict[str, str]) -> Any:
    desk, known = house.desks[place], BookingId(ids.get(act.booking, act.booking))
    caller = _caller(house, act)
    errand = booked.Errand(SlotId(act.slot), known, caller, act.wait_s, act.key)
    match act.verb:
        case "confirm":
            return await booked.confirm(desk, errand)
        case "extend":
            return await booked.extend(desk, errand)
        case "cancel":
            return await booked.cancel(desk, errand)
        case _:
            return await booked.move(desk, errand, SlotId(act.to))


async def _ask_to_keep(house: House, place: int, act: Act) -> Any:
    desk, slot_id, me = house.desks[place], SlotId(act.slot), UserId(act.by)
    if act.verb == "call_off":
        return await keeping.call_off(desk, slot_id, me)
    start = MORNING + timedelta(minutes=act.number)
    times = {"start": start, "end": start + timedelta(hours=1)}
    changes = times if act.verb == "postpone" else {"capacity": act.number}
    return await keeping.edit(desk, slot_id, changes, me)


async def _ask_of_team(house: House, place: int, act: Act, ids: dict[str, str]) -> Any:
    desk, me = house.desks[place], UserId(act.by)
    team_id = TeamId(ids.get(act.booking, act.booking))
    match act.verb:
        case "team_create":
            return await teams.create(desk, "A team", me)
        case "team_invite":
            return await teams.invite(desk, team_id, house.emails[act.person], me)
        case "team_accept":
            return await teams.accept(desk, team_id, me)
        case _:
            return await teams.leave(desk, team_id, me)


def _caller(house: House, act: Act) -> Caller:
    return next(person for person in house.people if person.user_id == act.by)


def bind(act: Act, outcome: Any, tokens: dict[str, str]) -> None:
    """Note the ids of what came of an act: `tokens` tells the token of an id."""
    match type(outcome).__name__:
        case "Booked" | "BookingMoved":
            tokens.setdefault(outcome.booking.id, act.token)
        case "WaitlistJoined":
            tokens.setdefault(outcome.waiting.id, act.token)
        case "AllBooked":
            for place, each in enumerate(outcome.booked):
                tokens.setdefault(each.booking.id, f"{act.token}.{place}")
        case "TeamKept" if act.verb == "team_create":
            tokens[outcome.team.id] = act.token


def told(outcome: Any, tokens: dict[str, str], house: House) -> Answer:
    """An outcome in tokens. Which booking stands in the way of another is left out."""
    people = {email: user_id for user_id, email in house.emails.items()}

    def tell(value: Any) -> object:
        if isinstance(value, Booking):
            return shown(value, tokens)
        return tokens[value.id] if isinstance(value, Waiting) else value

    name = type(outcome).__name__
    if isinstance(team := getattr(outcome, "team", None), Team):
        members = tuple(str(member.user_id) for member in team.members)
        invited = tuple(people[invitation.email] for invitation in team.invitations)
        return (name, tokens[team.id], members, invited)
    if name == "NoneBooked":
        return (name, tuple(each and type(each).__name__ for each in outcome.refusals))
    if name == "AllBooked":
        return (name, tuple(shown(each.booking, tokens) for each in outcome.booked))
    if name == "LimitReached" or not hasattr(outcome, "__dataclass_fields__"):
        return (name,)
    interesting = ("booking", "old_booking", "waiting", "position")
    values = [getattr(outcome, f.name) for f in fields(outcome) if f.name in interesting]
    return (name, *map(tell, values))


def shown(booking: Booking, tokens: dict[str, str]) -> tuple[object, ...]:
    """All that there is to say of a booking."""
    log = tuple(
        LogEntry(e.at, e.by, e.deed.value, e.after.value, e.held_until, tuple(e.overrode))
        for e in booking.log
    )
    return (tokens[booking.id], str(booking.user_id), log)
