"""What clients see of bookings in outcomes, and the results of the mutations on bookings.

The types here say more than the values of their outcomes; all others are derived.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Self

import strawberry
from strawberry import Parent, field

from slotlock.domain.booking import booking, booking_outcomes, booking_refusals
from slotlock.domain.booking.booking import BookingRef
from slotlock.domain.campaigns.terms import SlotAdmission
from slotlock.domain.users.user import UserId
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.outcomes import (
    Result,
    ResultView,
    code_and_message,
    description_of,
    present,
    register_type,
)
from slotlock.graphql.core.refusals import Refusal
from slotlock.graphql.core.shared_types import Meeting
from slotlock.graphql.slots.slot_results import show_booking, show_slot
from slotlock.graphql.slots.slot_types import Booking, Slot, load_booking
from slotlock.graphql.users.user_queries import User, load_referenced_user
from slotlock.services.booking.eligibility import Eligibility

OTHER_BOOKING_VISIBILITY = (
    "Only the user, their guardians and organizers see it; null for others, and if the conflict is "
    "with another claim of the same request."
)


@strawberry.type(description=description_of(booking_refusals.LimitReached))
class LimitReached(Refusal):
    limit: int = field(description="The maximum number of bookings.")
    other_booking_id: strawberry.ID | None = field(
        description=f"The id of the user's booking in the choice group. {OTHER_BOOKING_VISIBILITY}"
    )
    slot: Slot = field(description="The slot that the request named.")
    other_ref: strawberry.Private[BookingRef | None]

    @field(
        description="The user's booking in the choice group as it is now. "
        f"{OTHER_BOOKING_VISIBILITY}"
    )
    async def other_booking(self, info: Info) -> Booking | None:
        return await load_booking(info, self.other_ref) if self.other_ref else None

    @classmethod
    def from_domain(cls, outcome: booking_refusals.LimitReached, view: ResultView) -> Self:
        other = _visible_ref(outcome.booking, view)
        return cls(
            **code_and_message(outcome, view),
            limit=outcome.limit,
            other_booking_id=_global_id(other),
            slot=show_slot(outcome.slot_id, outcome, view),
            other_ref=other,
        )


@strawberry.type(description=description_of(booking_refusals.TimeConflict))
class TimeConflict(Refusal):
    other_booking_id: strawberry.ID | None = field(
        description=f"The id of the user's other booking. {OTHER_BOOKING_VISIBILITY}"
    )
    meeting: object = field(
        description="The first meeting of the slot that overlaps.", graphql_type=Meeting
    )
    other_meeting: object = field(
        description="The overlapping meeting of the other booking.", graphql_type=Meeting
    )
    slot: Slot = field(description="The slot that the request named.")
    other_ref: strawberry.Private[BookingRef | None]

    @field(description=f"The user's other booking as it is now. {OTHER_BOOKING_VISIBILITY}")
    async def other_booking(self, info: Info) -> Booking | None:
        return await load_booking(info, self.other_ref) if self.other_ref else None

    @classmethod
    def from_domain(cls, outcome: booking_refusals.TimeConflict, view: ResultView) -> Self:
        other = _visible_ref(outcome.booking, view)
        return cls(
            **code_and_message(outcome, view),
            other_booking_id=_global_id(other),
            meeting=outcome.meeting,
            other_meeting=outcome.other_meeting,
            slot=show_slot(outcome.slot_id, outcome, view),
            other_ref=other,
        )


def _visible_ref(other: booking.Booking | None, view: ResultView) -> BookingRef | None:
    viewer = view.viewer
    if other is None or viewer is None:
        return None
    if viewer.is_organizer or other.user_id in (viewer.user_id, *viewer.acts_for):
        return BookingRef(other.slot_id, other.id)
    return None


def _global_id(ref: BookingRef | None) -> strawberry.ID | None:
    return ids.booking_global_id(ref.slot_id, ref.booking_id) if ref else None


@strawberry.type(description=description_of(booking_refusals.SlotStarted))
class SlotStarted(Refusal):
    start_time: datetime = field(description="When the slot started.")

    @classmethod
    def from_domain(cls, outcome: booking_refusals.SlotStarted, view: ResultView) -> Self:
        return cls(
            **code_and_message(outcome, view), start_time=view.slots[outcome.slot_id].slot.start
        )


@strawberry.type(description=description_of(booking_refusals.SlotNotFull))
class SlotNotFull(Refusal):
    slot: Slot = field(description="The current state of the slot.")

    @classmethod
    def from_domain(cls, outcome: booking_refusals.SlotNotFull, view: ResultView) -> Self:
        """Show the slot, and the way in which the viewer can get its free place."""
        said, viewer = code_and_message(outcome, view), view.viewer
        admission = view.slots[outcome.slot_id].slot.required_admission
        if admission is SlotAdmission.QUEUE_ONLY and not (viewer and viewer.is_organizer):
            said["message"] = (
                "This slot has a free place. Please request it through the queue instead."
            )
        return cls(**said, slot=show_slot(outcome.slot_id, outcome, view))


@strawberry.type(description=description_of(booking_refusals.AlreadyCheckedIn))
class AlreadyCheckedIn(Refusal):
    booking: Booking = field(description="The booking with the earlier check-in.")
    slot: Slot = field(description="The slot of the booking.")
    meeting: Meeting = field(description="The meeting that the user was checked in for.")
    checked_in_at: datetime = field(description="When the user was checked in.")
    by_id: strawberry.Private[UserId | None]

    @field(description="The organizer or leader who checked the user in.")
    async def checked_in_by(self, info: Info) -> User | None:
        return await load_referenced_user(info, self.by_id) if self.by_id else None

    @classmethod
    def from_domain(cls, outcome: booking_refusals.AlreadyCheckedIn, view: ResultView) -> Self:
        """Show when the user was checked in, and by whom."""
        return cls(
            **code_and_message(outcome, view),
            booking=show_booking(outcome.booking, outcome, view),
            slot=show_slot(outcome.slot_id, outcome, view),
            meeting=outcome.meeting,  # type: ignore[arg-type]  # its fields are the domain's
            checked_in_at=outcome.checked_in_at,
            by_id=outcome.check_in.by,
        )


@strawberry.type(description=description_of(booking_outcomes.AllBooked))
class AllBooked:
    bookings: list[Booking] = field(description="The bookings in the order of the claims.")

    @classmethod
    def from_domain(cls, outcome: booking_outcomes.AllBooked, view: ResultView) -> Self:
        return cls(bookings=[show_booking(each.booking, each, view) for each in outcome.booked])


@strawberry.type(description="The refusal of one claim.")
class ClaimRefusal:
    claim: int = field(
        description="The index of the claim in the request, starting at 0. `bookSeries` claims the "
        "slots in the order of their start."
    )
    slot_id: strawberry.ID = field(description="The slot that the claim named.")
    refusal: Refusal = field(description="The reason why the claim was refused.")

    @classmethod
    def all_from_domain(cls, results: Iterable[object], view: ResultView) -> list[Self]:
        """Show the refusals among the results of the slots of a series."""
        return [
            cls(
                claim=index,
                slot_id=ids.slot_global_id(each.slot_id),
                refusal=present(each, view),
            )
            for index, each in enumerate(results)
            if isinstance(each, booking_refusals.BookingRefusal)
        ]


@strawberry.type(description=description_of(booking_outcomes.NoneBooked))
class ClaimsRefused(Refusal):
    refusals: list[ClaimRefusal] = field(description="The refused claims.")

    @classmethod
    def from_domain(cls, outcome: booking_outcomes.NoneBooked, view: ResultView) -> Self:
        refused = ClaimRefusal.all_from_domain(outcome.refusals, view)
        return cls(**code_and_message(outcome, view), refusals=refused)


@strawberry.type(description=description_of(booking_outcomes.SeriesBooked))
class SeriesBooked:
    series_id: strawberry.ID = field(description="The id of the series.")
    bookings: list[Booking] = field(description="The new bookings by the start of their slots.")
    refusals: list[ClaimRefusal] = field(
        description="The slots that were not booked and why, by start. Empty with `ALL_OR_NONE`."
    )

    @classmethod
    def from_domain(cls, outcome: booking_outcomes.SeriesBooked, view: ResultView) -> Self:
        booked = [each for each in outcome.outcomes if isinstance(each, booking_outcomes.Booked)]
        of_slots = (view.slots[each.slot_id].slot.series_id for each in booked)
        return cls(
            series_id=ids.series_global_id(next(filter(None, of_slots))),
            bookings=[show_booking(each.booking, each, view) for each in booked],
            refusals=ClaimRefusal.all_from_domain(outcome.outcomes, view),
        )


register_type(booking_refusals.LimitReached, LimitReached, LimitReached.from_domain)
register_type(booking_refusals.TimeConflict, TimeConflict, TimeConflict.from_domain)
register_type(booking_refusals.SlotStarted, SlotStarted, SlotStarted.from_domain)
register_type(booking_refusals.SlotNotFull, SlotNotFull, SlotNotFull.from_domain)
register_type(booking_refusals.AlreadyCheckedIn, AlreadyCheckedIn, AlreadyCheckedIn.from_domain)
register_type(booking_outcomes.AllBooked, AllBooked, AllBooked.from_domain)
register_type(booking_outcomes.NoneBooked, ClaimsRefused, ClaimsRefused.from_domain)
register_type(booking_outcomes.SeriesBooked, SeriesBooked, SeriesBooked.from_domain)

BOOK_SLOT = Result[booking_outcomes.BookOutcome]("BookSlotResult", "The new booking, or a refusal.")
BOOK_SLOTS = Result[booking_outcomes.BookAllOutcome](
    "BookSlotsResult", "The new bookings, or a refusal."
)
BOOK_SERIES = Result[booking_outcomes.BookSeriesOutcome](
    "BookSeriesResult", "The new bookings, or a refusal."
)
MOVE_BOOKING = Result[booking_outcomes.MoveOutcome](
    "MoveBookingResult", "The moved booking, or a refusal."
)
CHECK_IN = Result[booking_outcomes.CheckInOutcome](
    "CheckInResult", "The checked-in booking, or a refusal."
)
JOIN_WAITLIST = Result[booking_outcomes.JoinWaitlistOutcome](
    "JoinWaitlistResult", "The waiting list entry, or a refusal."
)
LEAVE_WAITLIST = Result[booking_outcomes.LeaveWaitlistOutcome](
    "LeaveWaitlistResult", "The slot without the entry, or a refusal."
)


@strawberry.type(
    description="Whether the caller may book a place in a slot at the moment. The request itself "
    "decides again: another caller may take the last place meanwhile. The request is `bookSlot`, "
    "and `requestBooking` in a slot that is `QUEUE_ONLY`."
)
class BookingEligibility:
    @field(description="Whether the request would book a place for the caller.")
    def may_book(found: Parent[Eligibility]) -> bool:
        return found.refusal is None

    @field(description="The refusal of the request; null if it would book a place.")
    def refusal(found: Parent[Eligibility]) -> Refusal | None:
        if found.refusal is None:
            return None
        view = ResultView(found.caller, found.slots, booked_for=found.caller.user_id)
        refusal: Refusal = BOOK_SLOT.present(found.refusal, view)
        return refusal


register_type(Eligibility, BookingEligibility, lambda found, _view: found)
