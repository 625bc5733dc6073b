"""Mutations that change one existing booking: confirm, extend, cancel and move."""

from collections.abc import Mapping
from dataclasses import replace
from inspect import Parameter, Signature, signature
from types import MappingProxyType
from typing import Annotated, Any, TypeVar, get_args

import strawberry
from strawberry import argument, field

from slotlock.domain.booking.booking import BookingRef
from slotlock.domain.booking.booking_outcomes import BookingAlreadyDone
from slotlock.domain.booking.booking_refusals import (
    BookingNotFound,
    BookingRefusal,
    SlotNotFound,
)
from slotlock.domain.booking.decision import BookingChangeRequest, BookingRule
from slotlock.domain.booking.rules import booking_changes
from slotlock.domain.users.user import Caller
from slotlock.graphql.booking.booking_results import MOVE_BOOKING
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.arguments import (
    DEFAULT_WAIT_MS,
    KEY_DESCRIPTION,
    WAIT_DESCRIPTION,
    IdempotencyKeyArgument,
    WaitMsArgument,
    require_valid_key,
    to_wait_seconds,
)
from slotlock.graphql.core.outcomes import Result, ResultView, refuse_id
from slotlock.services.booking.booking_changes import change_booking
from slotlock.services.booking.move import move

Outcome = TypeVar("Outcome")

BookingIdArgument = Annotated[strawberry.ID, argument(description="The id of the booking.")]


def booking_mutation(
    rule: BookingRule[..., Outcome],
    union: tuple[str, str],
    description: str,
    *,
    arguments: Mapping[str, object] = MappingProxyType({}),
    leaders_only: bool = False,
    takes_key: bool = True,
) -> Any:
    """Return the mutation for a change of one booking; `union` is its name and its description.

    `arguments` are those of the rule, each as `Annotated[type, argument(description=...)]`; one
    that can be null may be left out. They belong to the request of an idempotency key. With
    `leaders_only`, the mutation is for organizers and for those who lead the slot.

    Raises:
        TypeError: the rule has other arguments, or a key cannot have its outcome.
    """
    signature(rule.decide).bind(*[None] * 4, **arguments)
    if takes_key and set(get_args(rule.outcomes)).isdisjoint(get_args(BookingAlreadyDone)):
        raise TypeError(f"the outcome of {rule.name} belongs to BookingAlreadyDone")
    result: Result[Outcome] = Result(*union, rule.outcomes)

    async def change(
        info: Info,
        booking_id: BookingIdArgument,
        wait_ms: WaitMsArgument = DEFAULT_WAIT_MS,
        idempotency_key: IdempotencyKeyArgument = None,
        **sent: Any,
    ) -> object:
        caller = info.context.caller
        if leaders_only:
            ref = ids.parse_booking_id(booking_id)
            caller = await info.context.require_leader(ref and ref[0])
        request = _to_request(booking_id, caller, wait_ms, idempotency_key)
        if request is None:
            return refuse_id(BookingNotFound, booking_id)
        changed = await change_booking(info.context.services, rule, request, **sent)
        view = ResultView(changed.caller or caller, changed.slots)
        return result.present(changed.outcome, view)

    # Strawberry reads the arguments of the field from the signature.
    info, booking_id, wait_ms, key, _ = signature(change).parameters.values()
    own = (_to_parameter(*each) for each in arguments.items())
    parameters = (info, booking_id, *own, wait_ms, *((key,) if takes_key else ()))
    resolver: Any = change
    resolver.__signature__ = Signature(
        [each.replace(kind=Parameter.KEYWORD_ONLY) for each in parameters],
        return_annotation=object,
    )
    return field(resolver=resolver, description=description, graphql_type=result.type)


def _to_parameter(name: str, annotation: Any) -> Parameter:
    can_be_null = isinstance(None, get_args(annotation)[0])
    default = None if can_be_null else Parameter.empty
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


@strawberry.input(description="The booking to move and its new slot.")
class MoveBookingInput:
    booking_id: strawberry.ID = field(description="The booking to move.")
    slot_id: strawberry.ID = field(description="The slot to move the booking to.")
    wait_ms: int = field(default=DEFAULT_WAIT_MS, description=WAIT_DESCRIPTION)
    idempotency_key: str | None = field(default=None, description=KEY_DESCRIPTION)


MoveBookingArgument = Annotated[
    MoveBookingInput, argument(description="The booking and its new slot.")
]


@strawberry.type
class BookingChangeMutations:
    confirm_booking = booking_mutation(
        booking_changes.confirm,
        ("ConfirmBookingResult", "The confirmed booking, or a refusal."),
        "Confirm a hold before it expires, so that it becomes a booking.",
    )
    extend_hold = booking_mutation(
        booking_changes.extend,
        ("ExtendHoldResult", "The extended hold, or a refusal."),
        "Extend a hold by the hold time of its slot, starting now. A hold lasts at most 60 minutes "
        "in total. Offers from the waiting list cannot be extended.",
    )
    cancel_booking = booking_mutation(
        booking_changes.cancel,
        ("CancelBookingResult", "The cancelled booking, or a refusal."),
        "Cancel a booking. Members can cancel their own bookings, those of their `dependents`, and "
        "those that they made for others, until the cut-off; organizers can cancel every booking "
        "at any time.",
    )

    @MOVE_BOOKING.mutation(
        "Move a booking to another slot. The user has one of the two places at any "
        "time, never both and never none."
    )
    async def move_booking(self, info: Info, input: MoveBookingArgument) -> object:
        caller = info.context.caller
        request = _to_request(input.booking_id, caller, input.wait_ms, input.idempotency_key)
        if request is None:
            return refuse_id(BookingNotFound, input.booking_id)
        if (slot_id := ids.parse_slot_id(input.slot_id)) is None:
            return refuse_id(SlotNotFound, input.slot_id)
        result = await move(info.context.services, request, slot_id)
        view = ResultView(result.caller or caller, result.slots)
        if isinstance(result.outcome, BookingRefusal):  # whose message says whom it is about
            ref = BookingRef(request.slot_id, request.booking_id)
            if found := await info.context.loaders.bookings.load(ref):
                view = replace(view, booked_for=found[0].user_id)
        return MOVE_BOOKING.present(result.outcome, view)


def _to_request(
    booking_global_id: str, caller: Caller, wait_ms: int, key: str | None
) -> BookingChangeRequest | None:
    """Return the request for a booking, or None for a malformed id. Errors: BAD_USER_INPUT."""
    wait_s, key = to_wait_seconds(wait_ms), require_valid_key(key)
    parsed_id = ids.parse_booking_id(booking_global_id)
    return BookingChangeRequest(*parsed_id, caller, wait_s, key) if parsed_id else None
