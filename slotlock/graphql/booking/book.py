"""Mutations that book or hold places: one, or several at once."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Annotated, Self

import strawberry
from strawberry import argument, field

from slotlock.domain.booking import outcomes, refusals
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.users.user import Caller, UserId
from slotlock.graphql.booking.refusals.present import present_booking_refusal
from slotlock.graphql.booking.results import Booked, BookSlotResult, present_book_outcome
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.arguments import (
    KEY_DESCRIPTION,
    WAIT_DESCRIPTION,
    require_valid_key,
    to_wait_seconds,
)
from slotlock.graphql.core.errors import bad_input
from slotlock.graphql.core.refusals import KeyReused, Refusal, RefusalCode
from slotlock.graphql.core.result_view import ResultView
from slotlock.graphql.slots.refusals import Locked, SlotNotFound
from slotlock.graphql.slots.types import Booking
from slotlock.graphql.users.refusals import UserNotFound
from slotlock.services.booking import book
from slotlock.services.booking.book import BookingOptions

MAX_CLAIMS = 50
# Stand for malformed ids. No slot and no user ever gets them.
UNKNOWN_SLOT_ID = SlotId("0" * 24)
UNKNOWN_USER_ID = UserId("0" * 24)

USER_ID_DESCRIPTION = (
    "The user to book for; the caller by default. Members can book for members of their teams, "
    "organizers for everyone."
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


@strawberry.type(description="Every place was booked or held.")
class AllBooked:
    bookings: list[Booking] = field(description="The bookings in the order of the claims.")

    @classmethod
    def from_domain(cls, outcome: outcomes.AllBooked, view: ResultView) -> Self:
        """Show the bookings."""
        return cls(bookings=[Booked.from_domain(one, view).booking for one in outcome.booked])


@strawberry.type(description="The refusal of one claim.")
class ClaimRefusal:
    claim: int = field(
        description="The index of the claim in the request, starting at 0. `bookSeries` claims the "
        "slots in the order of their start."
    )
    slot_id: strawberry.ID = field(description="The slot that the claim named.")
    refusal: Refusal = field(description="The reason why the claim was refused.")

    @classmethod
    def from_domain(cls, index: int, refusal: refusals.BookingRefusal, view: ResultView) -> Self:
        """Show why a slot was refused."""
        slot_id = ids.slot_global_id(refusal.slot_id)
        return cls(claim=index, slot_id=slot_id, refusal=present_booking_refusal(refusal, view))


@strawberry.type(description="At least one claim was refused, so nothing was booked.")
class ClaimsRefused(Refusal):
    refusals: list[ClaimRefusal] = field(description="The refused claims.")

    @classmethod
    def from_domain(
        cls, outcome: outcomes.NoneBooked, view: ResultView, claims: Sequence[ClaimInput]
    ) -> Self:
        """Show which claims were refused, with the ids that the client sent."""
        return cls.create(
            ClaimRefusal(
                claim=index,
                slot_id=claim.slot_id,
                refusal=_present_claim_refusal(refusal, claim, view),
            )
            for index, (claim, refusal) in enumerate(zip(claims, outcome.refusals, strict=True))
            if refusal is not None
        )

    @classmethod
    def create(cls, refused: Iterable[ClaimRefusal]) -> Self:
        """Show that nothing was booked because of these claims."""
        return cls(
            code=RefusalCode.CLAIMS_REFUSED,
            message="Nothing was booked because at least one place is not available.",
            refusals=list(refused),
        )


def _present_claim_refusal(
    refusal: refusals.BookingRefusal | refusals.OnBehalfRefusal,
    claim: ClaimInput,
    view: ResultView,
) -> Refusal:
    match refusal:
        case refusals.SlotNotFound(slot_id=slot_id) if slot_id == UNKNOWN_SLOT_ID:
            return SlotNotFound.for_id(claim.slot_id)
        case refusals.UserNotFound(user_id=user_id) | refusals.NotTeammate(user_id=user_id) if (
            user_id == UNKNOWN_USER_ID
        ):
            return UserNotFound.for_id(claim.user_id or "")
        case _:
            booked_for = parse_booked_user_id(claim.user_id, view.viewer) if view.viewer else None
            return present_booking_refusal(refusal, replace(view, booked_for=booked_for))


BookSlotsResult = Annotated[
    AllBooked | ClaimsRefused | Locked | KeyReused,
    strawberry.union("BookSlotsResult", description="The new bookings, or a refusal."),
]

BookSlotArgument = Annotated[BookSlotInput, argument(description="The place to book or hold.")]
BookSlotsArgument = Annotated[BookSlotsInput, argument(description="The places to book or hold.")]


@strawberry.type
class BookingMutations:
    @field(
        description="Book or hold a place in a slot. Each place goes to exactly one user.",
        graphql_type=BookSlotResult,
    )
    async def book_slot(self, info: Info, input: BookSlotArgument) -> Booked | Refusal:  # noqa: A002
        caller = info.context.caller
        options = to_booking_options(input)
        slot_id = ids.parse_slot_id(input.slot_id)
        if slot_id is None:
            return SlotNotFound.for_id(input.slot_id)
        user_id = parse_booked_user_id(input.user_id, caller)
        if user_id is None:
            return UserNotFound.for_id(input.user_id or "")
        result = await book.book_slot(info.context.services, caller, slot_id, user_id, options)
        return present_book_outcome(result.outcome, ResultView(caller, result.slots, user_id))

    @field(
        description="Book or hold several places for one or more users: all of them, or none.",
        graphql_type=BookSlotsResult,
    )
    async def book_slots(self, info: Info, input: BookSlotsArgument) -> AllBooked | Refusal:  # noqa: A002
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
        outcome, view = result.outcome, ResultView(caller, result.slots)
        match outcome:
            case outcomes.AllBooked():
                return AllBooked.from_domain(outcome, view)
            case outcomes.NoneBooked():
                return ClaimsRefused.from_domain(outcome, view, input.claims)
            case _:
                return present_booking_refusal(outcome, view)


def to_booking_options(input: BookSlotInput | BookSlotsInput) -> BookingOptions:  # noqa: A002
    """Validate the options of an input. Errors: BAD_USER_INPUT."""
    return BookingOptions(
        input.hold, to_wait_seconds(input.wait_ms), require_valid_key(input.idempotency_key)
    )


def parse_booked_user_id(global_id: str | None, caller: Caller) -> UserId | None:
    """Return the user to book for, the caller by default; None for a malformed id."""
    return caller.user_id if global_id is None else ids.parse_user_id(global_id)


def _require_valid_claims(claims: Sequence[ClaimInput], caller: Caller) -> None:
    if not 1 <= len(claims) <= MAX_CLAIMS:
        raise bad_input("claims", f"`claims` must have 1 to {MAX_CLAIMS} items.")
    own_id = ids.user_global_id(caller.user_id)
    if len({(claim.slot_id, claim.user_id or own_id) for claim in claims}) < len(claims):
        raise bad_input("claims", "Each claim must be different.")
