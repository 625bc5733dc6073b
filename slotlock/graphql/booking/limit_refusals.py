"""Why somebody may not have a place although one is left."""

from datetime import datetime
from typing import Self, assert_never

import strawberry
from strawberry import field

from slotlock.domain.booking import refusals
from slotlock.domain.booking.booking import Booking
from slotlock.domain.schedule import meetings
from slotlock.domain.users.user import Caller
from slotlock.graphql.core.ids import booking_global_id, slot_global_id
from slotlock.graphql.core.refusals import Refusal, RefusalCode, SlotStarted
from slotlock.graphql.slots.types import Meeting, Slot

OTHER_BOOKING_VISIBILITY = (
    "for themselves and for organisers; null also when another claim wants it."
)


@strawberry.type(
    description="The person has as many bookings as they may: one of each choice, or as many of a "
    "campaign as it allows."
)
class LimitReached(Refusal):
    limit: int = field(description="How many there may be.")
    other_booking_id: strawberry.ID | None = field(
        description=f"The booking they have of the choice, {OTHER_BOOKING_VISIBILITY}"
    )
    slot: Slot = field(description="The slot that was asked for.")

    @classmethod
    def from_domain(cls, outcome: refusals.LimitReached, viewer: Caller) -> Self:
        return cls(
            code=RefusalCode.LIMIT_REACHED,
            message=f"There are as many bookings already as there may be: {outcome.limit}.",
            limit=outcome.limit,
            other_booking_id=_visible_booking_id(outcome.booking, viewer),
            slot=Slot.from_domain(outcome.slot, viewer),
        )


@strawberry.type(description="The campaign is not open yet.")
class NotYetOpen(Refusal):
    opens_at: datetime = field(description="From this instant on it takes bookings.")
    slot: Slot = field(description="The slot that was asked for.")

    @classmethod
    def from_domain(cls, outcome: refusals.NotYetOpen, viewer: Caller) -> Self:
        return cls(
            code=RefusalCode.NOT_YET_OPEN,
            message="This cannot be booked yet.",
            opens_at=outcome.opens_at,
            slot=Slot.from_domain(outcome.slot, viewer),
        )


@strawberry.type(description="The campaign takes no bookings any more, or is not published.")
class Closed(Refusal):
    closes_at: datetime = field(description="From this instant on a published one takes none.")
    slot_id: strawberry.ID = field(description="The slot, which people may not see any more.")

    @classmethod
    def from_domain(cls, outcome: refusals.Closed) -> Self:
        # As it was decided: a kept refusal is told with the slot as it is, perhaps open by now.
        ever = "can no longer be booked" if outcome.published else "cannot be booked now"
        return cls(
            code=RefusalCode.CLOSED,
            message=f"This {ever}.",
            closes_at=outcome.closes_at,
            slot_id=slot_global_id(outcome.slot.id),
        )


@strawberry.type(description="The campaign is for people of other groups.")
class NotEligible(Refusal):
    slot: Slot = field(description="The slot that was asked for.")

    @classmethod
    def from_domain(cls, outcome: refusals.NotEligible, viewer: Caller) -> Self:
        return cls(
            code=RefusalCode.NOT_ELIGIBLE,
            message="This is for people of other groups.",
            slot=Slot.from_domain(outcome.slot, viewer),
        )


@strawberry.type(description="As many people of one group have a place in the slot as may.")
class GroupFull(Refusal):
    group: str = field(description="The group of which enough have a place.")
    limit: int = field(description="How many of it may have a place.")
    slot: Slot = field(description="The slot that was asked for.")

    @classmethod
    def from_domain(cls, outcome: refusals.GroupFull, viewer: Caller) -> Self:
        return cls(
            code=RefusalCode.GROUP_FULL,
            message=f"As many of {outcome.group} have a place as may.",
            group=outcome.group,
            limit=outcome.limit,
            slot=Slot.from_domain(outcome.slot, viewer),
        )


@strawberry.type(description="A meeting of the slot overlaps one of another booking.")
class TimeConflict(Refusal):
    other_booking_id: strawberry.ID | None = field(
        description=f"The other booking, {OTHER_BOOKING_VISIBILITY}"
    )
    meeting: Meeting = field(description="The first meeting of the slot that overlaps.")
    other_meeting: Meeting = field(description="The meeting of the other booking.")
    slot: Slot = field(description="The slot that was asked for.")

    @classmethod
    def from_domain(cls, outcome: refusals.TimeConflict, viewer: Caller) -> Self:
        return cls(
            code=RefusalCode.TIME_CONFLICT,
            message="This overlaps another booking.",
            other_booking_id=_visible_booking_id(outcome.booking, viewer),
            meeting=_to_meeting(outcome.meeting),
            other_meeting=_to_meeting(outcome.other_meeting),
            slot=Slot.from_domain(outcome.slot, viewer),
        )


def _to_meeting(meeting: meetings.Meeting) -> Meeting:
    return Meeting(start_time=meeting.start, end_time=meeting.end)


def _visible_booking_id(other: Booking | None, viewer: Caller) -> strawberry.ID | None:
    if other is None or not (viewer.is_organizer or other.user_id == viewer.user_id):
        return None
    return booking_global_id(other.slot_id, other.id)


OtherBookingRefusal = LimitReached | TimeConflict
LimitRefusal = SlotStarted | NotYetOpen | Closed | NotEligible | GroupFull | OtherBookingRefusal


def to_other_booking_refusal(
    outcome: refusals.OtherBookingRefusal, viewer: Caller
) -> OtherBookingRefusal:
    """What a person's other places rule out, as they are told."""
    if isinstance(outcome, refusals.LimitReached):
        return LimitReached.from_domain(outcome, viewer)
    return TimeConflict.from_domain(outcome, viewer)


def to_limit_refusal(outcome: refusals.LimitRefusal, viewer: Caller) -> LimitRefusal:
    """What stands in somebody's way, as they are told."""
    match outcome:
        case refusals.SlotStarted():
            return SlotStarted.from_domain(Slot.from_domain(outcome.slot, viewer))
        case refusals.NotYetOpen():
            return NotYetOpen.from_domain(outcome, viewer)
        case refusals.Closed():
            return Closed.from_domain(outcome)
        case refusals.NotEligible():
            return NotEligible.from_domain(outcome, viewer)
        case refusals.GroupFull():
            return GroupFull.from_domain(outcome, viewer)
        case refusals.LimitReached() | refusals.TimeConflict():
            return to_other_booking_refusal(outcome, viewer)
        case _:
            assert_never(outcome)
