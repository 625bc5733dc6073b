"""Getting a place: for oneself, for a team-mate, for anybody as an organiser; one or several."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from prometheus_client import Counter

from slotlock.desk.act import act
from slotlock.desk.booked import ACTS
from slotlock.desk.deciding import Request, at
from slotlock.desk.desk import Desk
from slotlock.desk.once import Slip, once
from slotlock.desk.tickets import told_again
from slotlock.domain import booking as rules
from slotlock.domain.bookings import SlotId
from slotlock.domain.outcomes import BookAllOutcome, BookOutcome, NoneBooked
from slotlock.domain.people import Caller, UserId
from slotlock.domain.refusals import (
    Locked,
    NotTeammate,
    PartyRefusal,
    PersonBanned,
    PersonNotFound,
    SlotNotFound,
)
from slotlock.domain.teams import TeamSeen
from slotlock.stores.ids import new_booking_id

BOOKINGS = Counter(
    "slotlock_bookings_total", "Answers to bookSlot, and of tickets, by outcome", ["outcome"]
)
# Somebody joining or leaving a team meanwhile makes what was seen of it stale.
TEAM_TRIES = 3

Outcome = TypeVar("Outcome")


@dataclass(frozen=True, slots=True)
class Wish:
    """How a place is wanted: as a hold, after waiting for so long, under this key."""

    hold: bool = False
    wait_s: float = 0.0
    key: str | None = None

    def slip(self, caller: Caller, *asked: Any) -> Slip | None:
        """The slip of the key that came with the wish, if one did."""
        return Slip.of(caller.user_id, self.key, *asked, self.hold) if self.key else None


@dataclass(frozen=True, slots=True)
class Asking:
    """A place in one slot for one person, and who asks for it."""

    caller: Caller
    slot_id: SlotId
    user_id: UserId
    hold: bool
    slip: Slip | None = None

    def request(self, teams: tuple[TeamSeen, ...] = ()) -> Request[BookOutcome]:
        """What the desk shall do."""
        party = _party(self.caller, self.user_id, self.hold)
        otherwise: BookOutcome = SlotNotFound(self.slot_id)
        return Request(
            at(self.slot_id, lambda slot, now: rules.book(slot, party, now), otherwise),
            people=(self.user_id, self.caller.user_id),
            slip=self.slip,
            teams=teams,
        )


@dataclass(frozen=True, slots=True)
class Allowed:
    """Whom the caller may book for, and the teams that say so."""

    refusals: dict[UserId, PartyRefusal]
    teams: tuple[TeamSeen, ...] = ()


async def book(
    desk: Desk, caller: Caller, slot_id: SlotId, user_id: UserId, wish: Wish
) -> BookOutcome:
    """Book or hold a place for one person."""
    slip = wish.slip(caller, "book", slot_id, user_id)
    return await book_for(desk, Asking(caller, slot_id, user_id, wish.hold, slip), wish.wait_s)


async def book_for(desk: Desk, asking: Asking, wait_s: float) -> BookOutcome:
    """Book or hold a place as somebody asks for it."""

    async def tried(allowed: Allowed, wait_s: float) -> BookOutcome:
        if refusal := allowed.refusals.get(asking.user_id):
            return refusal
        return await act(desk, [asking.slot_id], asking.request(allowed.teams), wait_s)

    run = _allowed_first(desk, asking.caller, [asking.user_id], tried)
    kept = await once(desk, asking.slip, asking.slot_id, wait_s, run)
    # The key may be a ticket's, which was refused.
    outcome: BookOutcome = await told_again(desk, kept, asking.caller.user_id)
    BOOKINGS.labels(type(outcome).__name__).inc()
    return outcome


async def book_all(
    desk: Desk, caller: Caller, claims: Sequence[tuple[SlotId, UserId]], wish: Wish
) -> BookAllOutcome:
    """Book or hold a place for every claim, or none at all."""

    async def tried(allowed: Allowed, wait_s: float) -> BookAllOutcome:
        if allowed.refusals:
            return NoneBooked(tuple(allowed.refusals.get(user_id) for _, user_id in claims))
        wanted = [rules.Claim(slot, _party(caller, user_id, wish.hold)) for slot, user_id in claims]
        request = Request(
            lambda slots, now: rules.book_all(slots, wanted, now),
            people=(*people, caller.user_id),
            slip=slip,
            teams=allowed.teams,
            heads=len(claims),
        )
        return await act(desk, slot_ids, request, wait_s)

    people = tuple({user_id for _, user_id in claims})
    slot_ids = sorted({slot_id for slot_id, _ in claims})
    slip = wish.slip(caller, "bookAll", *claims)
    run = _allowed_first(desk, caller, people, tried)
    outcome: BookAllOutcome = await once(desk, slip, slot_ids[0], wish.wait_s, run)
    ACTS.labels("bookAll", type(outcome).__name__).inc()
    return outcome


def _party(caller: Caller, user_id: UserId, hold: bool) -> rules.Party:
    organised = caller.organises and user_id != caller.user_id
    return rules.Party(user_id, new_booking_id(), caller.user_id, hold, organised)


def _allowed_first(
    desk: Desk,
    caller: Caller,
    people: Sequence[UserId],
    tried: Callable[[Allowed, float], Awaitable[Outcome]],
) -> Callable[[float], Awaitable[Outcome | Locked]]:
    # Who left a team before the booking was written was not booked for.
    async def run(wait_s: float) -> Outcome | Locked:
        until = asyncio.get_running_loop().time() + wait_s
        for _ in range(TEAM_TRIES):
            allowed = await allowed_parties(desk, caller, people)
            left = max(until - asyncio.get_running_loop().time(), 0.0)
            outcome = await tried(allowed, left)
            if not (allowed.teams and isinstance(outcome, Locked)):
                break
        return outcome

    return run


async def allowed_parties(desk: Desk, caller: Caller, people: Sequence[UserId]) -> Allowed:
    """Whom of these people the caller may book for now."""
    others = {user_id for user_id in people if user_id != caller.user_id}
    if not others:
        return Allowed({})
    mates: Collection[UserId] = others
    teams: tuple[TeamSeen, ...] = ()
    if not caller.organises:
        mates, teams = await desk.teams.shared(caller.user_id, others)
    refusals: dict[UserId, PartyRefusal] = {i: NotTeammate(i) for i in others if i not in mates}
    known = await desk.users.by_ids(mates)
    refusals |= {user_id: PersonNotFound(user_id) for user_id in mates if user_id not in known}
    refusals |= {user.id: PersonBanned(user.id) for user in known.values() if user.banned}
    return Allowed(refusals, teams)
