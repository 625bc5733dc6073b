"""Getting a place, or several."""

from typing import Annotated, assert_never

import strawberry
from strawberry import argument, field

from slotlock.domain.booking import outcomes
from slotlock.domain.booking import refusals as refused
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.users.user import Caller, UserId
from slotlock.graphql.booking.refusals import (
    KeyReused,
    UserNotFound,
    to_booking_refusal,
    to_on_behalf_refusal,
)
from slotlock.graphql.booking.results import Booked, BookSlotResult, to_book_slot_result
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.arguments import (
    KEY_DESCRIPTION,
    WAIT_DESCRIPTION,
    require_valid_key,
    to_wait_seconds,
)
from slotlock.graphql.core.errors import ErrorCode, GraphQLRequestError
from slotlock.graphql.core.refusals import Locked, Refusal, RefusalCode, SlotNotFound
from slotlock.graphql.slots import types
from slotlock.services.booking import book
from slotlock.services.booking.book import BookingOptions

MAX_CLAIMS = 50
# Ids that can name nothing stand for nothing: no slot and no person is made with these.
UNKNOWN_SLOT_ID = SlotId("0" * 24)
UNKNOWN_USER_ID = UserId("0" * 24)

USER_ID_DESCRIPTION = (
    "Whose place it will be; the caller's by default. Members book for members of their teams too, "
    "organisers for anyone."
)
HOLD_DESCRIPTION = (
    "Whether to hold the place until `heldUntil` instead, to be confirmed by `confirmBooking`."
)


@strawberry.input(description="What to book.")
class BookSlotInput:
    slot_id: strawberry.ID = field(description="The slot.")
    wait_ms: int = field(default=0, description=WAIT_DESCRIPTION)
    idempotency_key: str | None = field(default=None, description=KEY_DESCRIPTION)
    user_id: strawberry.ID | None = field(default=None, description=USER_ID_DESCRIPTION)
    hold: bool = field(default=False, description=HOLD_DESCRIPTION)


@strawberry.input(description="One place to book.")
class ClaimInput:
    slot_id: strawberry.ID = field(description="The slot.")
    user_id: strawberry.ID | None = field(default=None, description=USER_ID_DESCRIPTION)


@strawberry.input(description="What to book, all or none.")
class BookSlotsInput:
    claims: list[ClaimInput] = field(description="The places, 1 to 50.")
    wait_ms: int = field(default=0, description=WAIT_DESCRIPTION)
    idempotency_key: str | None = field(default=None, description=KEY_DESCRIPTION)
    hold: bool = field(default=False, description="Whether to hold the places instead.")


@strawberry.type(description="All the places are theirs, for good or as holds.")
class AllBooked:
    bookings: list[types.Booking] = field(description="The bookings, in the order of the claims.")


@strawberry.type(description="Why one claim was refused.")
class ClaimRefusal:
    claim: int = field(description="Which claim, counted from 0.")
    slot_id: strawberry.ID = field(description="The slot that was asked for.")
    refusal: Refusal = field(description="Why.")


@strawberry.type(description="At least one claim was refused, so nothing was booked.")
class ClaimsRefused(Refusal):
    refusals: list[ClaimRefusal] = field(description="The claims that were refused.")


BookSlotsResult = Annotated[
    AllBooked | ClaimsRefused | Locked | KeyReused,
    strawberry.union("BookSlotsResult", description="What came of booking several places."),
]


@strawberry.type
class BookingMutations:
    @field(description="Book or hold a place. Exactly one person gets each place.")
    async def book_slot(
        self,
        info: Info,
        input: Annotated[BookSlotInput, argument(description="What to book.")],  # noqa: A002
    ) -> BookSlotResult:
        caller = info.context.caller
        wish = BookingOptions(
            input.hold, to_wait_seconds(input.wait_ms), require_valid_key(input.idempotency_key)
        )
        slot_id = ids.parse_slot_id(input.slot_id)
        user_id = _parse_user_id(input.user_id, caller)
        if slot_id is None:
            return SlotNotFound.for_id(input.slot_id)
        if user_id is None:
            return UserNotFound.for_id(input.user_id or "")
        return to_book_slot_result(
            await book.book(info.context.services, caller, slot_id, user_id, wish), caller
        )

    @field(description="Book or hold several places for several people: all of them or none.")
    async def book_slots(
        self,
        info: Info,
        input: Annotated[BookSlotsInput, argument(description="What to book.")],  # noqa: A002
    ) -> BookSlotsResult:
        caller = info.context.caller
        if not 1 <= len(input.claims) <= MAX_CLAIMS:
            raise GraphQLRequestError(
                ErrorCode.BAD_USER_INPUT, f"There are 1 to {MAX_CLAIMS} claims."
            )
        wish = BookingOptions(
            input.hold, to_wait_seconds(input.wait_ms), require_valid_key(input.idempotency_key)
        )
        claims = [
            (
                ids.parse_slot_id(claim.slot_id) or UNKNOWN_SLOT_ID,
                _parse_user_id(claim.user_id, caller) or UNKNOWN_USER_ID,
            )
            for claim in input.claims
        ]
        own = ids.user_global_id(caller.user_id)
        if len({(claim.slot_id, claim.user_id or own) for claim in input.claims}) < len(claims):
            raise GraphQLRequestError(ErrorCode.BAD_USER_INPUT, "Each claim can be made once.")
        outcome = await book.book_all(info.context.services, caller, claims, wish)
        return _to_book_slots_result(outcome, input.claims, caller)


def _parse_user_id(global_id: str | None, caller: Caller) -> UserId | None:
    return caller.user_id if global_id is None else ids.parse_user_id(global_id)


def _to_book_slots_result(
    outcome: outcomes.BookAllOutcome, claims: list[ClaimInput], viewer: Caller
) -> BookSlotsResult:
    match outcome:
        case outcomes.AllBooked():
            return AllBooked(
                bookings=[Booked.from_domain(one, viewer).booking for one in outcome.booked]
            )
        case outcomes.NoneBooked():
            return ClaimsRefused(
                code=RefusalCode.CLAIMS_REFUSED,
                message="Not every place could be booked, so none was.",
                refusals=[
                    ClaimRefusal(
                        claim=index,
                        slot_id=claim.slot_id,
                        refusal=_to_claim_refusal(why, claim, viewer),
                    )
                    for index, (claim, why) in enumerate(zip(claims, outcome.refusals, strict=True))
                    if why is not None
                ],
            )
        case refused.Locked():
            return Locked.from_domain(outcome)
        case refused.KeyReused():
            return KeyReused.from_domain(outcome)
        case _:
            assert_never(outcome)


def _to_claim_refusal(
    outcome: refused.BookingRefusal | refused.OnBehalfRefusal, claim: ClaimInput, viewer: Caller
) -> Refusal:
    match outcome:
        case refused.SlotNotFound():
            return SlotNotFound.for_id(claim.slot_id)
        case refused.UserNotFound() | refused.NotTeammate() if outcome.user_id == UNKNOWN_USER_ID:
            return UserNotFound.for_id(claim.user_id or "")
        case refused.UserNotFound() | refused.NotTeammate() | refused.UserBanned():
            return to_on_behalf_refusal(outcome)
        case _:
            return to_booking_refusal(outcome, viewer)
