"""Plans of operations that are likely to have an effect, from a few drawn numbers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from slotlock.domain.booking.booking import BookingStatus
from slotlock.domain.teams.team import TeamId
from slotlock.domain.users.user import UserId
from tests.support.model.checker import ModelChecker
from tests.support.model.operations import MORNING, PlannedOperation

BOOKING_OPERATIONS = {"confirm", "extend", "cancel", "move"}
OPERATIONS_WITH_KEY = {"book", "book_all", *BOOKING_OPERATIONS}
LOCK_WAIT_S = 5.0
UNKNOWN_ID = "0" * 24
RECENT_COUNT = 6

Item = TypeVar("Item")


@dataclass(frozen=True)
class DrawnNumbers:
    """The numbers that Hypothesis draws. They do not depend on the state, so they can shrink."""

    kind: int = 0
    caller: int = 0
    slot: int = 0
    user: int = 0
    booking: int = 0
    target_slot: int = 0
    key: int = 0
    claims: int = 2
    service_index: int = 0
    hold: bool = False
    waits: bool = False


OPERATION_KINDS = (
    *("book",) * 5,
    *("book_all",) * 2,
    *("confirm", "cancel", "move", "join") * 3,
    *("extend", "leave", "edit", "sweep", "flush", "lose_locks"),
    *("postpone", "team_invite", "team_accept", "team_leave"),
)


def pick(items: Sequence[Item], index: int) -> Item:
    """Return the item at an index modulo the number of items."""
    return items[index % len(items)]


def plan_operation(
    checker: ModelChecker, kind: str, drawn: DrawnNumbers, *, allow_unknown_slots: bool = True
) -> PlannedOperation:
    """Plan an operation of this kind from the numbers and the state of the model.

    Without `allow_unknown_slots` a booking never moves to an unknown slot. The order of two
    concurrent refusals is not defined, because neither writes anything.
    """
    if kind in BOOKING_OPERATIONS and not _has_bookings(checker):
        kind = "book"
    members = [caller.user_id for caller in checker.pair.callers[:-1]]
    organizer = checker.pair.organizer.user_id
    caller_id = organizer if drawn.caller % 5 == 0 else pick(members, drawn.caller)
    slots = list(checker.model.slots)
    operation = PlannedOperation(
        kind,
        checker.new_token(),
        caller_id,
        caller_id == organizer,
        slot_id=pick(slots, drawn.slot) if drawn.slot != 19 else UNKNOWN_ID,
        wait_s=LOCK_WAIT_S if drawn.waits else 0.0,
        key=f"key {drawn.key}"
        if kind in OPERATIONS_WITH_KEY and drawn.key < RECENT_COUNT
        else None,
    )
    if kind == "book":
        user_id = pick([*[caller_id] * 6, *members], drawn.user)
        return replace(operation, user_id=user_id, hold=drawn.hold)
    if kind == "book_all":
        claims = _claims(checker, caller_id, drawn)
        return replace(operation, slot_id="", claims=claims, hold=drawn.hold)
    if kind in BOOKING_OPERATIONS:
        planned = _with_booking(checker, operation, organizer, drawn)
        return (
            planned
            if allow_unknown_slots or planned.target_slot_id != UNKNOWN_ID
            else replace(planned, target_slot_id=planned.slot_id)
        )
    if kind.startswith("team_"):
        teams = list(checker.model.teams) or [TeamId(UNKNOWN_ID)]
        return replace(
            operation,
            slot_id="",
            user_id=pick(members, drawn.user),
            booking=pick(teams, drawn.booking),
        )
    if kind in ("edit", "postpone", "cancel_slot"):
        slot_id = pick(slots, drawn.slot)
        start = (checker.model.slots[slot_id].slot.start - MORNING).total_seconds()
        number = (
            int(start) // 60 + 30 * (drawn.target_slot % 9)
            if kind == "postpone"
            else 1 + drawn.target_slot % 3
        )
        return replace(
            operation, caller_id=organizer, as_organizer=True, slot_id=slot_id, number=number
        )
    return operation


def _has_bookings(checker: ModelChecker) -> bool:
    return bool(checker.model.ended_bookings) or any(
        slot.bookings for slot in checker.model.slots.values()
    )


def _claims(
    checker: ModelChecker, caller_id: str, drawn: DrawnNumbers
) -> tuple[tuple[str, str], ...]:
    slots, users = list(checker.model.slots), [caller.user_id for caller in checker.pair.callers]
    teammates = [
        member.user_id
        for team in checker.model.teams.values()
        if team.has_member(UserId(caller_id))
        for member in team.members
    ]
    candidates = [caller_id, *teammates] if drawn.user % 4 else users
    return tuple(
        (
            pick(slots, drawn.slot + index * (1 + drawn.target_slot % 2)),
            pick(candidates, drawn.booking + index * (drawn.target_slot % 3)),
        )
        for index in range(1 + drawn.claims % 3)
    )


def _with_booking(
    checker: ModelChecker, operation: PlannedOperation, organizer: str, drawn: DrawnNumbers
) -> PlannedOperation:
    live = [each for slot in checker.model.slots.values() for each in slot.bookings]
    held = [each for each in live if each.status is BookingStatus.HELD]
    if operation.kind in ("confirm", "extend") and drawn.target_slot % 4:
        live = held or live
    ended = list(checker.model.ended_bookings.values())[-RECENT_COUNT:]
    # Mostly a live booking, sometimes an ended one.
    booking = (
        pick(live or ended, drawn.booking)
        if drawn.booking % 7 != 5
        else pick(ended or live, drawn.booking)
    )
    caller_id = pick(
        [booking.user_id, booking.user_id, organizer, operation.caller_id], drawn.caller
    )
    target_slot_id = (
        pick([*checker.model.slots, UNKNOWN_ID], drawn.target_slot)
        if operation.kind == "move"
        else ""
    )
    return replace(
        operation,
        caller_id=caller_id,
        as_organizer=caller_id == organizer,
        slot_id=booking.slot_id,
        booking=booking.id,
        target_slot_id=target_slot_id,
    )
