"""From a few drawn numbers to an act that is likely to get somewhere."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from tests.support.acts import MORNING, Act
from tests.support.play import Play

ON_BOOKINGS = {"confirm", "extend", "cancel", "move"}
KEYED = {"book", "book_all", *ON_BOOKINGS}
LONG_WAIT_S = 5.0
NOWHERE = "0" * 24
RECENT = 6

Item = TypeVar("Item")


@dataclass(frozen=True)
class Numbers:
    """What Hypothesis draws: its shape never depends on what happened, so that it can shrink."""

    verb: int = 0
    by: int = 0
    slot: int = 0
    person: int = 0
    booking: int = 0
    to: int = 0
    key: int = 0
    claims: int = 2
    desk: int = 0
    hold: bool = False
    waits: bool = False


VERBS = (
    *("book",) * 5,
    *("book_all",) * 2,
    *("confirm", "cancel", "move", "join") * 3,
    *("extend", "leave", "edit", "sweep", "flush", "lose_locks"),
    *("postpone", "team_invite", "team_accept", "team_leave"),
)


def pick(items: Sequence[Item], number: int) -> Item:
    """One of the items."""
    return items[number % len(items)]


def plan(play: Play, verb: str, n: Numbers, *, anywhere: bool = True) -> Act:
    """The act of this kind that the numbers stand for, as things are now.

    `anywhere`: also to a slot that there is not. Two refusals of one act at once may come in an
    order of their own, since neither writes anything.
    """
    if verb in ON_BOOKINGS and not _any_booking(play):
        verb = "book"
    members = [caller.user_id for caller in play.house.people[:-1]]
    organiser = play.house.organiser.user_id
    by = organiser if n.by % 5 == 0 else pick(members, n.by)
    slots = list(play.model.slots)
    act = Act(
        verb,
        play.new_token(),
        by,
        by == organiser,
        slot=pick(slots, n.slot) if n.slot != 19 else NOWHERE,
        wait_s=LONG_WAIT_S if n.waits else 0.0,
        key=f"key {n.key}" if verb in KEYED and n.key < RECENT else None,
    )
    if verb == "book":
        return replace(act, person=pick([*[by] * 6, *members], n.person), hold=n.hold)
    if verb == "book_all":
        return replace(act, slot="", claims=_claims(play, by, n), hold=n.hold)
    if verb in ON_BOOKINGS:
        planned = _on_booking(play, act, organiser, n)
        return planned if anywhere or planned.to != NOWHERE else replace(planned, to=planned.slot)
    if verb.startswith("team_"):
        teams = list(play.model.teams) or [NOWHERE]
        return replace(act, slot="", person=pick(members, n.person), booking=pick(teams, n.booking))
    if verb in ("edit", "postpone", "call_off"):
        slot_id = pick(slots, n.slot)
        start = (play.model.slots[slot_id].start - MORNING).total_seconds()
        number = int(start) // 60 + 30 * (n.to % 9) if verb == "postpone" else 1 + n.to % 3
        return replace(act, by=organiser, organises=True, slot=slot_id, number=number)
    return act


def _any_booking(play: Play) -> bool:
    return bool(play.model.ended) or any(slot.places for slot in play.model.slots.values())


def _claims(play: Play, by: str, n: Numbers) -> tuple[tuple[str, str], ...]:
    slots, people = list(play.model.slots), [caller.user_id for caller in play.house.people]
    mates = [m for team in play.model.teams.values() if by in team.members for m in team.members]
    whom = [by, *mates] if n.person % 4 else people
    return tuple(
        (pick(slots, n.slot + place * (1 + n.to % 2)), pick(whom, n.booking + place * (n.to % 3)))
        for place in range(1 + n.claims % 3)
    )


def _on_booking(play: Play, act: Act, organiser: str, n: Numbers) -> Act:
    live = [(slot.id, p) for slot in play.model.slots.values() for p in slot.places]
    held = [each for each in live if each[1].status == "held"]
    if act.verb in ("confirm", "extend") and n.to % 4:
        live = held or live
    ended = list(play.model.ended.values())[-RECENT:]
    # Mostly one that lives, now and then one that is over.
    found = pick(live or ended, n.booking) if n.booking % 7 != 5 else pick(ended or live, n.booking)
    slot_id, place = found
    by = pick([place.user, place.user, organiser, act.by], n.by)
    to = pick([*play.model.slots, NOWHERE], n.to) if act.verb == "move" else ""
    return replace(act, by=by, organises=by == organiser, slot=slot_id, booking=place.token, to=to)
