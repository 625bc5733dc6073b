"""Refusals by a limit: the slot's start, the campaign, and the user's other bookings."""

from datetime import datetime
from typing import Self, assert_never

import strawberry
from strawberry import field

from slotlock.domain.booking import booking, refusals
from slotlock.domain.booking.booking import BookingRef
from slotlock.graphql.context import Info
from slotlock.graphql.core.ids import booking_global_id, slot_global_id
from slotlock.graphql.core.refusals import Refusal, RefusalCode
from slotlock.graphql.core.result_view import ResultView
from slotlock.graphql.core.values import Meeting
from slotlock.graphql.slots.types import Booking, Slot, load_booking

OTHER_BOOKING_VISIBILITY = (
    "Only the user and organizers see it; null for others, and if the conflict is with another "
    "claim of the same request."
)


@strawberry.type(
    description="The user has the maximum number of bookings: one for each choice group, or as "
    "many as the campaign allows."
)
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
    def from_domain(cls, outcome: refusals.LimitReached, view: ResultView) -> Self:
        """Show the limit and the booking that reached it."""
        other = _visible_ref(outcome.booking, view)
        return cls(
            code=RefusalCode.LIMIT_REACHED,
            message=view.address(
                outcome.booking.user_id if outcome.booking else None,
                own=f"You have reached the maximum number of bookings: {outcome.limit}.",
                other=f"This user has reached the maximum number of bookings: {outcome.limit}.",
                neutral=f"The maximum number of bookings is reached: {outcome.limit}.",
            ),
            limit=outcome.limit,
            other_booking_id=_global_id(other),
            slot=Slot.for_outcome(outcome, view),
            other_ref=other,
        )


@strawberry.type(description="The slot has started, so its bookings can no longer change.")
class SlotStarted(Refusal):
    start_time: datetime = field(description="When the slot started.")

    @classmethod
    def from_domain(cls, outcome: refusals.SlotStarted, view: ResultView) -> Self:
        """Show when the slot started."""
        return cls(
            code=RefusalCode.SLOT_STARTED,
            message="This slot has already started.",
            start_time=view.slots[outcome.slot_id].slot.start,
        )


@strawberry.type(description="The campaign has not opened yet.")
class NotYetOpen(Refusal):
    opens_at: datetime = field(description="When the campaign opens.")
    slot: Slot = field(description="The slot that the request named.")

    @classmethod
    def from_domain(cls, outcome: refusals.NotYetOpen, view: ResultView) -> Self:
        """Show when the campaign opens."""
        return cls(
            code=RefusalCode.NOT_YET_OPEN,
            message="This slot cannot be booked yet.",
            opens_at=outcome.opens_at,
            slot=Slot.for_outcome(outcome, view),
        )


@strawberry.type(description="The campaign is closed.")
class Closed(Refusal):
    closes_at: datetime = field(description="When the campaign closed.")
    slot_id: strawberry.ID = field(description="The id of the slot.")

    @classmethod
    def from_domain(cls, outcome: refusals.Closed, _view: ResultView) -> Self:
        """Show when the campaign closed."""
        return cls(
            code=RefusalCode.CLOSED,
            message="This slot can no longer be booked.",
            closes_at=outcome.closes_at,
            slot_id=slot_global_id(outcome.slot_id),
        )


@strawberry.type(description="The campaign is for users of other groups.")
class NotEligible(Refusal):
    slot: Slot = field(description="The slot that the request named.")

    @classmethod
    def from_domain(cls, outcome: refusals.NotEligible, view: ResultView) -> Self:
        """Show the slot."""
        return cls(
            code=RefusalCode.NOT_ELIGIBLE,
            message=view.address(
                None,
                own="This slot is for groups that you are not in.",
                other="This slot is for groups that this user is not in.",
                neutral="This slot is for other groups.",
            ),
            slot=Slot.for_outcome(outcome, view),
        )


@strawberry.type(
    description="The user missed as many bookings of the campaign as it allows, and books nothing "
    "in it for some days."
)
class TooManyNoShows(Refusal):
    count: int = field(description="The number of no-shows of the user in the campaign.")
    until: datetime = field(description="From when on the user may book again.")
    slot: Slot = field(description="The slot that the request named.")

    @classmethod
    def from_domain(cls, outcome: refusals.TooManyNoShows, view: ResultView) -> Self:
        """Show when the user may book again."""
        until = f"{outcome.until:%Y-%m-%d %H:%M} UTC"
        return cls(
            code=RefusalCode.TOO_MANY_NO_SHOWS,
            message=view.address(
                None,
                own=f"You have missed too many bookings. You may book again from {until} on.",
                other=f"This user has missed too many bookings and may book from {until} on.",
                neutral=f"There were too many no-shows. Booking is possible from {until} on.",
            ),
            count=outcome.count,
            until=outcome.until,
            slot=Slot.for_outcome(outcome, view),
        )


@strawberry.type(description="One of the user's groups has all of its places in the slot.")
class GroupFull(Refusal):
    group: str = field(description="The group that has all of its places.")
    limit: int = field(description="How many places the group may have in the slot.")
    slot: Slot = field(description="The slot that the request named.")

    @classmethod
    def from_domain(cls, outcome: refusals.GroupFull, view: ResultView) -> Self:
        """Show the group and its limit."""
        return cls(
            code=RefusalCode.GROUP_FULL,
            message=view.address(
                None,
                own=f"All places for your group {outcome.group} are taken.",
                other=f"All places for this user's group {outcome.group} are taken.",
                neutral=f"All places for the group {outcome.group} are taken.",
            ),
            group=outcome.group,
            limit=outcome.limit,
            slot=Slot.for_outcome(outcome, view),
        )


@strawberry.type(description="A meeting of the slot overlaps another booking of the user.")
class TimeConflict(Refusal):
    other_booking_id: strawberry.ID | None = field(
        description=f"The id of the user's other booking. {OTHER_BOOKING_VISIBILITY}"
    )
    meeting: Meeting = field(description="The first meeting of the slot that overlaps.")
    other_meeting: Meeting = field(description="The overlapping meeting of the other booking.")
    slot: Slot = field(description="The slot that the request named.")
    other_ref: strawberry.Private[BookingRef | None]

    @field(description=f"The user's other booking as it is now. {OTHER_BOOKING_VISIBILITY}")
    async def other_booking(self, info: Info) -> Booking | None:
        return await load_booking(info, self.other_ref) if self.other_ref else None

    @classmethod
    def from_domain(cls, outcome: refusals.TimeConflict, view: ResultView) -> Self:
        """Show the meetings that overlap."""
        other = _visible_ref(outcome.booking, view)
        return cls(
            code=RefusalCode.TIME_CONFLICT,
            message=view.address(
                outcome.booking.user_id if outcome.booking else None,
                own="This slot overlaps another booking of yours.",
                other="This slot overlaps another booking of this user.",
                neutral="This slot overlaps another booking.",
            ),
            other_booking_id=_global_id(other),
            meeting=Meeting.from_domain(outcome.meeting),
            other_meeting=Meeting.from_domain(outcome.other_meeting),
            slot=Slot.for_outcome(outcome, view),
            other_ref=other,
        )


def _visible_ref(other: booking.Booking | None, view: ResultView) -> BookingRef | None:
    viewer = view.viewer
    if other is None or viewer is None:
        return None
    if viewer.is_organizer or viewer.user_id == other.user_id:
        return BookingRef(other.slot_id, other.id)
    return None


def _global_id(ref: BookingRef | None) -> strawberry.ID | None:
    return booking_global_id(ref.slot_id, ref.booking_id) if ref else None


OtherBookingRefusal = LimitReached | TimeConflict
LimitRefusal = (
    SlotStarted
    | NotYetOpen
    | Closed
    | NotEligible
    | TooManyNoShows
    | GroupFull
    | OtherBookingRefusal
)


def present_limit_refusal(refusal: refusals.LimitRefusal, view: ResultView) -> Refusal:
    """Show which limit a booking would exceed."""
    match refusal:
        case refusals.SlotStarted():
            return SlotStarted.from_domain(refusal, view)
        case refusals.NotYetOpen():
            return NotYetOpen.from_domain(refusal, view)
        case refusals.Closed():
            return Closed.from_domain(refusal, view)
        case refusals.NotEligible():
            return NotEligible.from_domain(refusal, view)
        case refusals.TooManyNoShows():
            return TooManyNoShows.from_domain(refusal, view)
        case refusals.GroupFull():
            return GroupFull.from_domain(refusal, view)
        case refusals.LimitReached():
            return LimitReached.from_domain(refusal, view)
        case refusals.TimeConflict():
            return TimeConflict.from_domain(refusal, view)
        case _:
            assert_never(refusal)
