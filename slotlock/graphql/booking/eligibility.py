"""Whether the caller may book a slot, as clients see it."""

import strawberry
from strawberry import Parent, field

from slotlock.graphql.booking.refusals.present import present_booking_refusal
from slotlock.graphql.core.refusals import Refusal
from slotlock.graphql.core.result_view import ResultView
from slotlock.services.booking.eligibility import Eligibility


@strawberry.type(
    description="Whether the caller may book a place in a slot at the moment. The request itself "
    "decides again: another caller may take the last place meanwhile. The request is `bookSlot`, "
    "and `requestBooking` in a slot that is `QUEUE_ONLY`."
)
class BookingEligibility:
    @field(description="Whether the request would book a place for the caller.")
    def may_book(found: Parent[Eligibility]) -> bool:  # noqa: N805
        return found.refusal is None

    @field(description="The refusal of the request; null if it would book a place.")
    def refusal(found: Parent[Eligibility]) -> Refusal | None:  # noqa: N805
        if found.refusal is None:
            return None
        view = ResultView(found.caller, found.slots, booked_for=found.caller.user_id)
        return present_booking_refusal(found.refusal, view)
