"""Mutations that book or hold places: one, several at once, or those of a series."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

import strawberry
from strawberry import argument, field

from slotlock.domain.booking import booking_outcomes, booking_refusals
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.users.user import Caller, UserId
from slotlock.graphql.booking.booking_results import (
    BOOK_SERIES,
    BOOK_SLOT,
    BOOK_SLOTS,
    ClaimRefusal,
    ClaimsRefused,
)
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.arguments import (
    KEY_DESCRIPTION,
    WAIT_DESCRIPTION,
    require_valid_key,
    to_wait_seconds,
)
from slotlock.graphql.core.enums import SeriesMode
from slotlock.graphql.core.errors import bad_input
from slotlock.graphql.core.outcomes import ResultView, code_and_message, refuse_id
from slotlock.graphql.core.refusals import Refusal
from slotlock.graphql.limits.operation_kinds import OperationKind
from slotlock.services.booking import book, book_series
from slotlock.services.booking.book import BookingOptions
from slotlock.services.booking.book_series import SeriesRequest

MAX_CLAIMS = 50
# Stand for malformed ids. No slot and no user ever gets them.
UNKNOWN_SLOT_ID = SlotId("0" * 24)
UNKNOWN_USER_ID = UserId("0" * 24)

USER_ID_DESCRIPTION = (
    "The user to book for; the caller by default. Members can book for members of their teams, "
    "guardians for their `dependents`, leaders in their slots for `bookableUsers`, organizers for "
    "everyone."
)


@strawberry.input(description="The place to book or hold.")
class BookSlotInput:
    slot_id: strawberry.ID = field(description="The slot to book.")
    wait_ms: int = field(default=0, description=WAIT_DESCRIPTION)
    idempotency_key: str | None = field(default=None, description=KEY_DESCRIPTION)
    user_id: strawberry.ID | None = field(default=None, description=USER_ID_DESCRIPTION)
    hold: bool = field(
        default=False,
        description="Whether to hold the place until `heldUntil` instead of booking it. "
        "`confirmBooking` then books it.",
    )


@strawberry.input(description="One place to book or hold.")
class ClaimInput:
    slot_id: strawberry.ID = field(description="The slot to book.")
    user_id: strawberry.ID | None = field(default=None, description=USER_ID_DESCRIPTION)


@strawberry.input(description="The places to book or hold, all or none.")
class BookSlotsInput:
    claims: list[ClaimInput] = field(description="The places, 1 to 50.")
    wait_ms: int = field(default=0, description=WAIT_DESCRIPTION)
    idempotency_key: str | None = field(default=None, description=KEY_DESCRIPTION)
    hold: bool = field(
        default=False,
        description="Whether to hold the places until `heldUntil` instead of booking them. "
        "`confirmBooking` then books each.",
    )


@strawberry.input(description="The series to book.")
class BookSeriesInput:
    series_id: strawberry.ID = field(
        description="The series. Its slots that have started, were cancelled or are drafts are "
        "left out."
    )
    mode: SeriesMode = field(
        default=SeriesMode.ALL_OR_NONE,
        description="Whether to book all slots or none, or those that can be booked.",
    )
    wait_ms: int = field(default=0, description=WAIT_DESCRIPTION)
    idempotency_key: str | None = field(default=None, description=KEY_DESCRIPTION)
    user_id: strawberry.ID | None = field(default=None, description=USER_ID_DESCRIPTION)
    hold: bool = field(
        default=False,
        description="Whether to hold the places until `heldUntil` instead of booking them. "
        "`confirmBooking` then books each.",
    )


BookSlotArgument = Annotated[BookSlotInput, argument(description="The place to book or hold.")]
BookSlotsArgument = Annotated[BookSlotsInput, argument(description="The places to book or hold.")]
BookSeriesArgument = Annotated[BookSeriesInput, argument(description="The series to book.")]


@strawberry.type
class BookingMutations:
    @BOOK_SLOT.mutation("Book or hold a place in a slot. Each place goes to exactly one user.")
    async def book_slot(self, info: Info, input: BookSlotArgument) -> object:
        caller = info.context.caller
        options = to_booking_options(input)
        if (slot_id := ids.parse_slot_id(input.slot_id)) is None:
            return refuse_id(booking_refusals.SlotNotFound, input.slot_id)
        if (user_id := parse_booked_user_id(input.user_id, caller)) is None:
            return refuse_id(booking_refusals.UserNotFound, input.user_id or "")
        result = await book.book_slot(info.context.services, caller, slot_id, user_id, options)
        view = ResultView(result.caller or caller, result.slots, user_id)
        return BOOK_SLOT.present(result.outcome, view)

    @BOOK_SLOTS.mutation("Book or hold several places for one or more users: all of them, or none.")
    async def book_slots(self, info: Info, input: BookSlotsArgument) -> object:
        caller = info.context.caller
        _require_valid_claims(input.claims, caller)
        options = to_booking_options(input)
        claims = [
            (
                ids.parse_slot_id(claim.slot_id) or UNKNOWN_SLOT_ID,
                parse_booked_user_id(claim.user_id, caller) or UNKNOWN_USER_ID,
            )
            for claim in input.claims
        ]
        result = await book.book_slots(info.context.services, caller, claims, options)
        outcome, view = result.outcome, ResultView(result.caller or caller, result.slots)
        if isinstance(outcome, booking_outcomes.NoneBooked):
            return _present_claims(outcome, input.claims, view)
        return BOOK_SLOTS.present(outcome, view)

    @BOOK_SERIES.mutation(
        "Book or hold a place in every slot of a series that has not started, at most "
        "100: in all of them or none, or in those that can be booked."
    )
    async def book_series(self, info: Info, input: BookSeriesArgument) -> object:
        context = info.context
        caller = context.caller
        options = to_booking_options(input)
        if (series_id := ids.parse_series_id(input.series_id)) is None:
            return refuse_id(booking_refusals.SeriesNotFound, input.series_id)
        if (user_id := parse_booked_user_id(input.user_id, caller)) is None:
            return refuse_id(booking_refusals.UserNotFound, input.user_id or "")

        async def charge(slot_count: int) -> None:
            # The mutation itself was charged before it began.
            if slot_count > 1:
                await context.charge(OperationKind.WRITE, slot_count - 1)

        request = SeriesRequest(series_id, user_id, input.mode)
        result = await book_series.book_series(context.services, caller, request, options, charge)
        view = ResultView(result.caller or caller, result.slots, user_id)
        return BOOK_SERIES.present(result.outcome, view)


def to_booking_options(
    input: BookSlotInput | BookSlotsInput | BookSeriesInput,
) -> BookingOptions:
    """Validate the options of an input. Errors: BAD_USER_INPUT."""
    wait_s = to_wait_seconds(input.wait_ms) if input.wait_ms else 0.0
    key = input.idempotency_key
    return BookingOptions(input.hold, wait_s, None if key is None else require_valid_key(key))


def parse_booked_user_id(global_id: str | None, caller: Caller) -> UserId | None:
    """Return the user to book for, the caller by default; None for a malformed id."""
    return caller.user_id if global_id is None else ids.parse_user_id(global_id)


def _require_valid_claims(claims: Sequence[ClaimInput], caller: Caller) -> None:
    if not 1 <= len(claims) <= MAX_CLAIMS:
        raise bad_input("claims", f"`claims` must have 1 to {MAX_CLAIMS} items.")
    own_id = ids.user_global_id(caller.user_id)
    if len({(claim.slot_id, claim.user_id or own_id) for claim in claims}) < len(claims):
        raise bad_input("claims", "Each claim must be different.")


def _present_claims(
    outcome: booking_outcomes.NoneBooked, claims: Sequence[ClaimInput], view: ResultView
) -> ClaimsRefused:
    """Show which claims were refused, with the ids that the client sent."""
    refused = [
        ClaimRefusal(
            claim=index,
            slot_id=claim.slot_id,
            refusal=_present_claim_refusal(refusal, claim, view),
        )
        for index, (claim, refusal) in enumerate(zip(claims, outcome.refusals, strict=True))
        if refusal is not None
    ]
    return ClaimsRefused(**code_and_message(outcome, view), refusals=refused)


def _present_claim_refusal(
    refusal: booking_refusals.BookingRefusal | booking_refusals.OnBehalfRefusal,
    claim: ClaimInput,
    view: ResultView,
) -> Refusal:
    match refusal:
        case booking_refusals.SlotNotFound(slot_id=slot_id) if slot_id == UNKNOWN_SLOT_ID:
            return refuse_id(booking_refusals.SlotNotFound, claim.slot_id)
        case (
            booking_refusals.UserNotFound(user_id=user_id)
            | booking_refusals.NotTeammate(user_id=user_id)
        ) if user_id == UNKNOWN_USER_ID:
            return refuse_id(booking_refusals.UserNotFound, claim.user_id or "")
        case _:
            booked_for = parse_booked_user_id(claim.user_id, view.viewer) if view.viewer else None
            refused: Refusal = BOOK_SLOT.present(refusal, replace(view, booked_for=booked_for))
            return refused
