"""Recording who came to a slot: check-in, no-show, and undoing either. Organizers only."""

from datetime import datetime
from typing import ClassVar

from slotlock.domain.booking.booking import Booking, SlotId
from slotlock.domain.booking.decision import CommandResult, Decision, LoadedState, refuse
from slotlock.domain.booking.outcomes import (
    CheckInOutcome,
    MarkNoShowOutcome,
    UndoCheckInOutcome,
    UndoNoShowOutcome,
)
from slotlock.domain.booking.refusals import NotConfirmed
from slotlock.domain.booking.rules import attendance
from slotlock.domain.shared.values import value_object
from slotlock.services.booking.changes import (
    BookingChangeCommand,
    BookingChangeRequest,
    change_booking,
)
from slotlock.services.container import Services
from slotlock.services.slot_command import UnexpectedOutcomeError


@value_object
class CheckIn(BookingChangeCommand[CheckInOutcome]):
    """Record that the user of a booking came to the expected slot, or to any."""

    name: ClassVar[str] = "checkIn"

    expected_slot_id: SlotId | None = None

    def apply(self, state: LoadedState, now: datetime) -> Decision[CheckInOutcome]:
        slot = state.slots.get(self.request.slot_id)
        if slot is None:
            return refuse(self.not_found)
        return attendance.check_in(slot, self.request.booking_command, now, self.expected_slot_id)

    def ended_outcome(self, booking: Booking) -> CheckInOutcome:
        return NotConfirmed(booking.slot_id, booking)

    @staticmethod
    def check_outcome(outcome: object) -> CheckInOutcome:
        if isinstance(outcome, CheckInOutcome):
            return outcome
        raise UnexpectedOutcomeError(outcome)


class UndoCheckIn(BookingChangeCommand[UndoCheckInOutcome]):
    """Take a check-in back."""

    name: ClassVar[str] = "undoCheckIn"

    def apply(self, state: LoadedState, now: datetime) -> Decision[UndoCheckInOutcome]:
        slot = state.slots.get(self.request.slot_id)
        if slot is None:
            return refuse(self.not_found)
        return attendance.undo_check_in(slot, self.request.booking_command, now)

    def ended_outcome(self, booking: Booking) -> UndoCheckInOutcome:
        return NotConfirmed(booking.slot_id, booking)

    @staticmethod
    def check_outcome(outcome: object) -> UndoCheckInOutcome:
        if isinstance(outcome, UndoCheckInOutcome):
            return outcome
        raise UnexpectedOutcomeError(outcome)


class MarkNoShow(BookingChangeCommand[MarkNoShowOutcome]):
    """Record that the user of a booking did not come."""

    name: ClassVar[str] = "markNoShow"

    def apply(self, state: LoadedState, now: datetime) -> Decision[MarkNoShowOutcome]:
        slot = state.slots.get(self.request.slot_id)
        if slot is None:
            return refuse(self.not_found)
        return attendance.mark_no_show(slot, self.request.booking_command, now)

    def ended_outcome(self, booking: Booking) -> MarkNoShowOutcome:
        return NotConfirmed(booking.slot_id, booking)

    @staticmethod
    def check_outcome(outcome: object) -> MarkNoShowOutcome:
        if isinstance(outcome, MarkNoShowOutcome):
            return outcome
        raise UnexpectedOutcomeError(outcome)


class UndoNoShow(BookingChangeCommand[UndoNoShowOutcome]):
    """Take a no-show back."""

    name: ClassVar[str] = "undoNoShow"

    def apply(self, state: LoadedState, now: datetime) -> Decision[UndoNoShowOutcome]:
        slot = state.slots.get(self.request.slot_id)
        if slot is None:
            return refuse(self.not_found)
        return attendance.undo_no_show(slot, self.request.booking_command, now)

    def ended_outcome(self, booking: Booking) -> UndoNoShowOutcome:
        return NotConfirmed(booking.slot_id, booking)

    @staticmethod
    def check_outcome(outcome: object) -> UndoNoShowOutcome:
        if isinstance(outcome, UndoNoShowOutcome):
            return outcome
        raise UnexpectedOutcomeError(outcome)


async def check_in(
    services: Services, request: BookingChangeRequest, expected_slot_id: SlotId | None = None
) -> CommandResult[CheckInOutcome]:
    """Record that the user of a booking came to the expected slot, or to any."""
    command = CheckIn(request, expected_slot_id=expected_slot_id)
    return await change_booking(services, command)


async def undo_check_in(
    services: Services, request: BookingChangeRequest
) -> CommandResult[UndoCheckInOutcome]:
    """Take a check-in back."""
    return await change_booking(services, UndoCheckIn(request))


async def mark_no_show(
    services: Services, request: BookingChangeRequest
) -> CommandResult[MarkNoShowOutcome]:
    """Record that the user of a booking did not come."""
    return await change_booking(services, MarkNoShow(request))


async def undo_no_show(
    services: Services, request: BookingChangeRequest
) -> CommandResult[UndoNoShowOutcome]:
    """Take a no-show back."""
    return await change_booking(services, UndoNoShow(request))
