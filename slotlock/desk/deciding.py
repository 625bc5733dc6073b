"""What a request asks, and what becomes of the slots when several are decided in turn: pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any, Generic, TypeVar

from slotlock.desk.once import Slip
from slotlock.desk.telling import as_told
from slotlock.domain.bookings import BookingId, SlotId
from slotlock.domain.notes import Note
from slotlock.domain.people import UserId
from slotlock.domain.settling import serve_lines, settle_all, written
from slotlock.domain.slots import Slot
from slotlock.domain.teams import TeamSeen
from slotlock.stores.answers import KeptAnswer
from slotlock.stores.guards import Guard
from slotlock.stores.writes import Change

Outcome = TypeVar("Outcome")

Slots = Mapping[SlotId, Slot]
# From the slots that there are, to the same as they shall be and what is answered.
Rule = Callable[[Slots, datetime], tuple[Slots, Outcome]]


@dataclass(frozen=True, slots=True)
class Request(Generic[Outcome]):
    """What somebody wants done, and whom and what it concerns."""

    rule: Rule[Outcome]
    people: tuple[UserId, ...] = ()
    booking_ids: tuple[BookingId, ...] = ()
    slip: Slip | None = None
    teams: tuple[TeamSeen, ...] = ()
    guards: tuple[Guard, ...] = ()
    heads: int = 1
    # Of an organiser who changes the slots themselves: what is noted of each.
    note: Callable[[Change], Note | None] | None = None


def at(
    slot_id: SlotId,
    rule: Callable[[Slot, datetime], tuple[Slot, Outcome]],
    otherwise: Outcome,
) -> Rule[Outcome]:
    """A rule on one slot, and the answer when there is no such slot."""

    def on_one(slots: Slots, now: datetime) -> tuple[Slots, Outcome]:
        slot = slots.get(slot_id)
        if slot is None:
            return slots, otherwise
        after, outcome = rule(slot, now)
        return {**slots, slot_id: after}, outcome

    return on_one


@dataclass(frozen=True, slots=True)
class Decided:
    """What shall be written, the outcome of each request, and whether it was granted anything."""

    changes: tuple[Change, ...]
    outcomes: list[Any]
    granted: list[bool]


def decide(looked_at: Slots, requests: Sequence[Request[Any]], now: datetime) -> Decided:
    """Settle, then apply each request's rule in turn; a place it frees is the next in line's."""
    slots: Slots = settle_all(looked_at, now)
    outcomes, granted = [], []
    for request in requests:
        after, outcome = request.rule(slots, now)
        granted.append(after != slots)
        outcomes.append(outcome)
        slots = serve_lines(after, now)
    changes = tuple(
        Change(before, written(before, slots[slot_id], now))
        for slot_id, before in looked_at.items()
        if replace(slots[slot_id], known=before.known) != before
    )
    told = {**slots, **{change.after.id: change.after for change in changes}}
    return Decided(changes, [_retold(outcome, told) for outcome in outcomes], granted)


def _retold(outcome: Any, slots: Slots) -> Any:
    # Every answer tells of the slots as they stand after the whole batch.
    if isinstance(outcome, tuple):
        return tuple(_retold(each, slots) for each in outcome)
    if not hasattr(outcome, "__dataclass_fields__"):
        return outcome
    new: dict[str, Any] = {}
    for each in fields(outcome):
        value = getattr(outcome, each.name)
        if isinstance(value, Slot):
            new[each.name] = slots.get(value.id, value)
        elif isinstance(value, tuple):
            new[each.name] = _retold(value, slots)
    return replace(outcome, **new) if new else outcome


def kept_answers(
    requests: Sequence[Request[Any]], decided: Decided, now: datetime
) -> tuple[KeptAnswer, ...]:
    return tuple(
        kept_under(slip, as_told(outcome, request.people), now)
        for request, outcome, granted in zip(
            requests, decided.outcomes, decided.granted, strict=True
        )
        if granted and (slip := request.slip)
    )


def kept_under(slip: Slip, outcome: Any, now: datetime) -> KeptAnswer:
    """An answer as it is kept under a slip's key."""
    return KeptAnswer(slip.key_id, slip.fingerprint, outcome, now, slip.asked_at)


def notes(requests: Sequence[Request[Any]], changes: Sequence[Change]) -> tuple[Note, ...]:
    """What is noted of the changes."""
    asking = [request.note for request in requests if request.note is not None]
    found = (note(change) for note in asking for change in changes)
    return tuple(each for each in found if each is not None)
