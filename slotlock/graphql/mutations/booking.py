"""Getting a place, or several."""

from typing import Annotated, assert_never

import strawberry
from strawberry import argument, field

from slotlock.desk import booking as desk
from slotlock.desk.booking import Wish
from slotlock.domain import outcomes
from slotlock.domain import refusals as refused
from slotlock.domain.bookings import SlotId
from slotlock.domain.people import Caller, UserId
from slotlock.graphql import ids
from slotlock.graphql.arguments import KEY, WAIT, checked_key, checked_wait
from slotlock.graphql.context import Info
from slotlock.graphql.errors import Code, RefusedError
from slotlock.graphql.types import slots as types
from slotlock.graphql.types.booking_refusals import (
    KeyReused,
    PersonNotFound,
    party_refusal,
    place_refusal,
)
from slotlock.graphql.types.booking_results import Booked, BookSlotResult, booked
from slotlock.graphql.types.refusals import (
    Locked,
    Refusal,
    RefusalCode,
    SlotNotFound,
)

MAX_CLAIMS = 50
# Ids that can name nothing stand for nothing: no slot and no person is made with these.
NO_SLOT = SlotId("0" * 24)
NOBODY = UserId("0" * 24)

FOR_WHOM = (
    "Whose place it will be; the caller's by default. Members book for members of their teams too, "
    "organisers for anyone."
)
HOLD = "Whether to hold the place until `heldUntil` instead, to be confirmed by `confirmBooking`."


@strawberry.input(description="What to book.")
class BookSlotInput:
    slot_id: strawberry.ID = field(description="The slot.")
    wait_ms: int = field(default=0, description=WAIT)
    idempotency_key: str | None = field(default=None, description=KEY)
    user_id: strawberry.ID | None = field(default=None, description=FOR_WHOM)
    hold: bool = field(default=False, description=HOLD)


@strawberry.input(description="One place to book.")
class ClaimInput:
    slot_id: strawberry.ID = field(description="The slot.")
    user_id: strawberry.ID | None = field(default=None, description=FOR_WHOM)


@strawberry.input(description="What to book, all or none.")
class BookSlotsInput:
    claims: list[ClaimInput] = field(description="The places, 1 to 50.")
    wait_ms: int = field(default=0, description=WAIT)
    idempotency_key: str | None = field(default=None, description=KEY)
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
        wish = Wish(input.hold, checked_wait(input.wait_ms), checked_key(input.idempotency_key))
        slot_id = ids.slot_id_of(input.slot_id)
        user_id = _user_id(input.user_id, caller)
        if slot_id is None:
            return SlotNotFound.of(input.slot_id)
        if user_id is None:
            return PersonNotFound.of(input.user_id or "")
        return booked(await desk.book(info.context.desk, caller, slot_id, user_id, wish), caller)

    @field(description="Book or hold several places for several people: all of them or none.")
    async def book_slots(
        self,
        info: Info,
        input: Annotated[BookSlotsInput, argument(description="What to book.")],  # noqa: A002
    ) -> BookSlotsResult:
        caller = info.context.caller
        if not 1 <= len(input.claims) <= MAX_CLAIMS:
            raise RefusedError(Code.BAD_USER_INPUT, f"There are 1 to {MAX_CLAIMS} claims.")
        wish = Wish(input.hold, checked_wait(input.wait_ms), checked_key(input.idempotency_key))
        claims = [
            (ids.slot_id_of(claim.slot_id) or NO_SLOT, _user_id(claim.user_id, caller) or NOBODY)
            for claim in input.claims
        ]
        own = ids.user_gid(caller.user_id)
        if len({(claim.slot_id, claim.user_id or own) for claim in input.claims}) < len(claims):
            raise RefusedError(Code.BAD_USER_INPUT, "Each claim can be made once.")
        outcome = await desk.book_all(info.context.desk, caller, claims, wish)
        return _all_booked(outcome, input.claims, caller)


def _user_id(gid: str | None, caller: Caller) -> UserId | None:
    return caller.user_id if gid is None else ids.user_id_of(gid)


def _all_booked(
    outcome: outcomes.BookAllOutcome, claims: list[ClaimInput], caller: Caller
) -> BookSlotsResult:
    match outcome:
        case outcomes.AllBooked():
            return AllBooked(bookings=[Booked.of(one, caller).booking for one in outcome.booked])
        case outcomes.NoneBooked():
            return ClaimsRefused(
                code=RefusalCode.CLAIMS_REFUSED,
                message="Not every place could be booked, so none was.",
                refusals=[
                    ClaimRefusal(
                        claim=index, slot_id=claim.slot_id, refusal=_refused(why, claim, caller)
                    )
                    for index, (claim, why) in enumerate(zip(claims, outcome.refusals, strict=True))
                    if why is not None
                ],
            )
        case refused.Locked():
            return Locked.of(outcome)
        case refused.KeyReused():
            return KeyReused.of(outcome)
        case _:
            assert_never(outcome)


def _refused(
    why: refused.PlaceRefusal | refused.PartyRefusal, claim: ClaimInput, caller: Caller
) -> Refusal:
    match why:
        case refused.SlotNotFound():
            return SlotNotFound.of(claim.slot_id)
        case refused.PersonNotFound() | refused.NotTeammate() if why.user_id == NOBODY:
            return PersonNotFound.of(claim.user_id or "")
        case refused.PersonNotFound() | refused.NotTeammate() | refused.PersonBanned():
            return party_refusal(why)
        case _:
            return place_refusal(why, caller)
