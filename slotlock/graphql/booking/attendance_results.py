"""Results of the mutations that record who came."""

from typing import Annotated, Self

import strawberry
from strawberry import field

from slotlock.domain.booking import outcomes
from slotlock.graphql.booking.refusals.attendance import (
    AlreadyCheckedIn,
    CheckInNotOpen,
    InvalidCheckInCode,
    NotConfirmed,
    SlotNotStarted,
    WrongSlot,
)
from slotlock.graphql.booking.refusals.changes import BookingNotFound
from slotlock.graphql.core.result_view import ResultView
from slotlock.graphql.slots.refusals import Locked, SlotCancelled
from slotlock.graphql.slots.types import Booking, Slot

AttendanceOutcome = (
    outcomes.CheckedIn | outcomes.CheckInUndone | outcomes.NoShowMarked | outcomes.NoShowUndone
)


@strawberry.type
class AttendanceResult:
    """The result of a change of one booking's attendance; each kind has its own type."""

    booking: Booking = field(description="The booking after the change.")
    slot: Slot = field(description="The slot of the booking.")

    @classmethod
    def from_domain(cls, outcome: AttendanceOutcome, view: ResultView) -> Self:
        """Show the booking in its slot."""
        slot = Slot.for_outcome(outcome, view)
        return cls(booking=Booking.from_domain(outcome.booking, slot, view.viewer), slot=slot)


@strawberry.type(description="The user of the booking was checked in.")
class CheckedIn(AttendanceResult):
    pass


@strawberry.type(description="The booking has no check-in. Undoing it again gives the same result.")
class CheckInUndone(AttendanceResult):
    pass


@strawberry.type(
    description="The booking is marked as a no-show. Marking it again gives the same result."
)
class NoShowMarked(AttendanceResult):
    pass


@strawberry.type(
    description="The booking is not marked as a no-show. Undoing it again gives the same result."
)
class NoShowUndone(AttendanceResult):
    pass


CheckInResult = Annotated[
    CheckedIn
    | AlreadyCheckedIn
    | CheckInNotOpen
    | WrongSlot
    | InvalidCheckInCode
    | NotConfirmed
    | SlotCancelled
    | BookingNotFound
    | Locked,
    strawberry.union("CheckInResult", description="The checked-in booking, or a refusal."),
]
UndoCheckInResult = Annotated[
    CheckInUndone | NotConfirmed | SlotCancelled | BookingNotFound | Locked,
    strawberry.union("UndoCheckInResult", description="The booking, or a refusal."),
]
MarkNoShowResult = Annotated[
    NoShowMarked
    | AlreadyCheckedIn
    | SlotNotStarted
    | NotConfirmed
    | SlotCancelled
    | BookingNotFound
    | Locked,
    strawberry.union("MarkNoShowResult", description="The missed booking, or a refusal."),
]
UndoNoShowResult = Annotated[
    NoShowUndone | NotConfirmed | SlotCancelled | BookingNotFound | Locked,
    strawberry.union("UndoNoShowResult", description="The booking, or a refusal."),
]
