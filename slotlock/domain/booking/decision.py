"""The input and the decision of a booking rule, and the result of its command."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from inspect import get_annotations
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, Union, get_args

from slotlock.domain.booking.booking import Booking, BookingId, SlotId
from slotlock.domain.booking.booking_refusals import UserBanned
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.booking.user_contexts import NO_CONTEXTS, UserContexts
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.user import Caller, UserId

Arguments = ParamSpec("Arguments")
Outcome = TypeVar("Outcome")
Outcome_co = TypeVar("Outcome_co", covariant=True)


@value_object
class LoadedState:
    """The slots and the user contexts that were loaded for a decision."""

    slots: Mapping[SlotId, SlotState]
    users: UserContexts = NO_CONTEXTS

    def with_slots(self, changed: Sequence[SlotState]) -> "LoadedState":
        """Return the state with these slots changed, and their new bookings known to the others."""
        if not changed:
            return self
        slots, users = dict(self.slots), self.users
        for after in changed:
            slot_id = after.slot.id
            before = slots[slot_id]
            slots[slot_id] = after
            if users.by_user and after.slot.depends_on_other_bookings:
                known_ids = {booking.id for booking in before.change.added}
                added = [each for each in after.change.added if each.id not in known_ids]
                users = users.with_bookings(after.slot, added)
        return LoadedState(slots, users)


@value_object
class Decision(Generic[Outcome_co]):
    """The outcome of one request and the slots that it changes.

    An accepted request may change nothing: confirming a confirmed booking is accepted again.
    """

    outcome: Outcome_co
    accepted: bool
    changed_slots: tuple[SlotState, ...] = ()


def accept(outcome: Outcome, *changed_slots: SlotState) -> Decision[Outcome]:
    """Return the decision that grants a request and changes these slots."""
    return Decision(outcome, True, changed_slots)


def refuse(outcome: Outcome) -> Decision[Outcome]:
    """Return the decision that refuses a request and changes nothing."""
    return Decision(outcome, False)


@value_object
class CommandResult(Generic[Outcome_co]):
    """The outcome of a command, and the slots that it names as they were afterwards.

    `caller` has the relations to others that permitted the command, if they were loaded.
    """

    outcome: Outcome_co
    slots: Mapping[SlotId, SlotState] = field(default_factory=dict)
    caller: Caller | None = None


@value_object
class BookingChangeRequest:
    """An existing booking, and the user who wants to change it.

    The caller waits for the slot for so many seconds, and repeats a request under its `key`.
    `not_banned` are other users whose accounts were read for the request.
    """

    slot_id: SlotId
    booking_id: BookingId
    caller: Caller
    wait_s: float = 0.0
    key: str | None = None
    not_banned: frozenset[UserId] = frozenset()


# The rule of a change of one existing booking, with the slot and the contexts that it reads.
Rule = Callable[
    Concatenate[SlotState, UserContexts, BookingChangeRequest, datetime, Arguments],
    Decision[Outcome],
]


@value_object
class BookingRule(Generic[Arguments, Outcome_co]):
    """A change of one existing booking, as `booking_rule` declares it.

    `name` is a label of metrics, and belongs to the idempotency key. `outcomes` is their union.
    `ended_outcome` returns the outcome for a booking that ended earlier; None if it is not found.
    `by_leaders` is set for a rule that is for those who lead the slot, not for all who manage the
    booking. A rule that `gives_place` is the one that refuses it to banned users.
    """

    name: str
    decide: Rule[Arguments, Outcome_co]
    ended_outcome: Callable[[Booking], object]
    outcomes: Any
    by_leaders: bool
    gives_place: bool


def booking_rule(
    name: str,
    *,
    if_ended: Callable[[Booking], object],
    by_leaders: bool = False,
) -> Callable[[Rule[Arguments, Outcome]], BookingRule[Arguments, Outcome]]:
    """Declare the decorated rule: `@booking_rule("cancel", if_ended=...)`.

    Raises:
        TypeError: `if_ended` returns an outcome that the rule does not have.
    """

    def declare(decide: Rule[Arguments, Outcome]) -> BookingRule[Arguments, Outcome]:
        (outcomes,) = get_args(get_annotations(decide)["return"])
        of_ended = get_annotations(if_ended)["return"]
        if Union[outcomes, of_ended, None] != Union[outcomes, None]:  # noqa: UP007
            raise TypeError(f"{name} has other outcomes than {of_ended}")
        gives_place = UserBanned in get_args(outcomes)
        return BookingRule(name, decide, if_ended, outcomes, by_leaders, gives_place)

    return declare
