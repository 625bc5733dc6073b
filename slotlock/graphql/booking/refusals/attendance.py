"""Refusals of check-in and of no-shows."""

from datetime import datetime
from typing import Self, assert_never

import strawberry
from strawberry import field

from slotlock.domain.booking import refusals
from slotlock.domain.users.user import UserId
from slotlock.graphql.booking.refusals.changes import BookingNotFound
from slotlock.graphql.context import Info
from slotlock.graphql.core.refusals import Refusal, RefusalCode, RefusalWithoutDetails
from slotlock.graphql.core.result_view import ResultView
from slotlock.graphql.slots.refusals import RefusalWithSlot, present_slot_refusal
from slotlock.graphql.slots.types import Booking, Slot
from slotlock.graphql.users.types import User, load_referenced_user


@strawberry.type(description="The booking is a hold, or it was cancelled, moved or has expired.")
class NotConfirmed(Refusal):
    booking: Booking = field(description="The booking as it is now.")
    slot: Slot = field(description="The slot of the booking.")

    @classmethod
    def from_domain(cls, outcome: refusals.NotConfirmed, view: ResultView) -> Self:
        """Show the booking that is not confirmed."""
        slot = Slot.for_outcome(outcome, view)
        return cls(
            code=RefusalCode.NOT_CONFIRMED,
            message="This booking is not confirmed, so nobody can be checked in for it.",
            booking=Booking.from_domain(outcome.booking, slot, view.viewer),
            slot=slot,
        )


@strawberry.type(description="The user of the booking is checked in.")
class AlreadyCheckedIn(Refusal):
    booking: Booking = field(description="The booking with the earlier check-in.")
    slot: Slot = field(description="The slot of the booking.")
    checked_in_at: datetime = field(description="When the user was checked in.")
    by_id: strawberry.Private[UserId | None]

    @field(description="The organizer who checked the user in.")
    async def checked_in_by(self, info: Info) -> User | None:
        return await load_referenced_user(info, self.by_id) if self.by_id else None

    @classmethod
    def from_domain(cls, outcome: refusals.AlreadyCheckedIn, view: ResultView) -> Self:
        """Show when the user was checked in, and by whom."""
        slot = Slot.for_outcome(outcome, view)
        entry = outcome.booking.check_in or outcome.booking.history[-1]
        return cls(
            code=RefusalCode.ALREADY_CHECKED_IN,
            message=f"This user was checked in at {entry.at:%Y-%m-%d %H:%M:%S} UTC.",
            booking=Booking.from_domain(outcome.booking, slot, view.viewer),
            slot=slot,
            checked_in_at=entry.at,
            by_id=entry.by,
        )


@strawberry.type(description="It is too early to check in for the slot.")
class CheckInNotOpen(Refusal):
    opens_at: datetime = field(description="From when on the slot takes check-ins.")
    slot: Slot = field(description="The slot of the booking.")

    @classmethod
    def from_domain(cls, outcome: refusals.CheckInNotOpen, view: ResultView) -> Self:
        """Show from when on the slot takes check-ins."""
        return cls(
            code=RefusalCode.CHECK_IN_NOT_OPEN,
            message=f"Check-in for this slot opens at {outcome.opens_at:%Y-%m-%d %H:%M} UTC.",
            opens_at=outcome.opens_at,
            slot=Slot.for_outcome(outcome, view),
        )


@strawberry.type(description="The slot has not started, so nobody has missed it.")
class SlotNotStarted(RefusalWithSlot):
    CODE = RefusalCode.SLOT_NOT_STARTED
    MESSAGE = "This slot has not started, so nobody has missed it."


@strawberry.type(description="The booking is for another slot than the one that the request names.")
class WrongSlot(RefusalWithSlot):
    CODE = RefusalCode.WRONG_SLOT
    MESSAGE = "This booking is for another slot."


@strawberry.type(description="The text is no check-in code of this server.")
class InvalidCheckInCode(RefusalWithoutDetails):
    CODE = RefusalCode.INVALID_CHECK_IN_CODE
    MESSAGE = "This is not a valid check-in code."


AttendanceRefusal = (
    refusals.NotConfirmed
    | refusals.AlreadyCheckedIn
    | refusals.CheckInNotOpen
    | refusals.SlotNotStarted
    | refusals.WrongSlot
    | refusals.BookingNotFound
    | refusals.SlotCancelled
    | refusals.Locked
)


def present_attendance_refusal(refusal: AttendanceRefusal, view: ResultView) -> Refusal:
    """Show why no attendance was recorded."""
    match refusal:
        case refusals.NotConfirmed():
            return NotConfirmed.from_domain(refusal, view)
        case refusals.AlreadyCheckedIn():
            return AlreadyCheckedIn.from_domain(refusal, view)
        case refusals.CheckInNotOpen():
            return CheckInNotOpen.from_domain(refusal, view)
        case refusals.SlotNotStarted():
            return SlotNotStarted.from_domain(refusal, view)
        case refusals.WrongSlot():
            return WrongSlot.from_domain(refusal, view)
        case refusals.BookingNotFound():
            return BookingNotFound.from_domain(refusal, view)
        case refusals.Locked() | refusals.SlotCancelled():
            return present_slot_refusal(refusal, view)
        case _:
            assert_never(refusal)
