"""Mutations with which organizers record who came to a slot."""

from typing import Annotated

import strawberry
from strawberry import argument, field

from slotlock.domain.booking import outcomes
from slotlock.domain.booking.booking import BookingId, SlotId
from slotlock.domain.booking.decision import CommandResult
from slotlock.domain.users.user import Caller
from slotlock.graphql.booking.attendance_results import (
    CheckedIn,
    CheckInResult,
    CheckInUndone,
    MarkNoShowResult,
    NoShowMarked,
    NoShowUndone,
    UndoCheckInResult,
    UndoNoShowResult,
)
from slotlock.graphql.booking.refusals.attendance import (
    InvalidCheckInCode,
    present_attendance_refusal,
)
from slotlock.graphql.booking.refusals.changes import BookingNotFound
from slotlock.graphql.check_in.codes import parse_check_in_code
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.arguments import (
    DEFAULT_WAIT_MS,
    WAIT_DESCRIPTION,
    WaitMsArgument,
    to_wait_seconds,
)
from slotlock.graphql.core.errors import bad_input
from slotlock.graphql.core.refusals import Refusal
from slotlock.graphql.core.result_view import ResultView
from slotlock.services.booking import attendance
from slotlock.services.booking.changes import BookingChangeRequest

BookingIdArgument = Annotated[strawberry.ID, argument(description="The id of the booking.")]


@strawberry.input(description="The booking of the user who came: its id or its code, not both.")
class CheckInInput:
    booking_id: strawberry.ID | None = field(default=None, description="The id of the booking.")
    code: str | None = field(
        default=None, description="The `checkInCode` of the booking, as a scanner reads it."
    )
    slot_id: strawberry.ID | None = field(
        default=None,
        description="The slot to check in for. The result is `WrongSlot` for a booking of another "
        "slot; null accepts the bookings of every slot.",
    )
    wait_ms: int = field(default=DEFAULT_WAIT_MS, description=WAIT_DESCRIPTION)


CheckInArgument = Annotated[CheckInInput, argument(description="The booking of the user who came.")]


@strawberry.type
class AttendanceMutations:
    @field(
        description="Check in the user of a confirmed booking, from 12 hours before the start of "
        "its slot on. Of several scanners that read one code, exactly one gets `CheckedIn`. "
        "Organizers only.",
        graphql_type=CheckInResult,
    )
    async def check_in(
        self,
        info: Info,
        input: CheckInArgument,  # noqa: A002
    ) -> CheckedIn | Refusal:
        organizer = info.context.require_organizer()
        wait_s = to_wait_seconds(input.wait_ms)
        found = _find_booking(info, input)
        if isinstance(found, Refusal):
            return found
        expected_slot_id = _parse_slot_id(input.slot_id)
        request = BookingChangeRequest(*found, organizer, wait_s)
        result = await attendance.check_in(info.context.services, request, expected_slot_id)
        outcome, view = result.outcome, _view(organizer, result)
        if isinstance(outcome, outcomes.CheckedIn):
            return CheckedIn.from_domain(outcome, view)
        return present_attendance_refusal(outcome, view)

    @field(
        description="Take back the check-in of a booking. Organizers only.",
        graphql_type=UndoCheckInResult,
    )
    async def undo_check_in(
        self, info: Info, booking_id: BookingIdArgument, wait_ms: WaitMsArgument = DEFAULT_WAIT_MS
    ) -> CheckInUndone | Refusal:
        organizer = info.context.require_organizer()
        request = _to_request(booking_id, organizer, wait_ms)
        if request is None:
            return BookingNotFound.for_id(booking_id)
        result = await attendance.undo_check_in(info.context.services, request)
        outcome, view = result.outcome, _view(organizer, result)
        if isinstance(outcome, outcomes.CheckInUndone):
            return CheckInUndone.from_domain(outcome, view)
        return present_attendance_refusal(outcome, view)

    @field(
        description="Record that the user of a confirmed booking did not come, once the slot has "
        "started. A later check-in replaces the no-show. Organizers only.",
        graphql_type=MarkNoShowResult,
    )
    async def mark_no_show(
        self, info: Info, booking_id: BookingIdArgument, wait_ms: WaitMsArgument = DEFAULT_WAIT_MS
    ) -> NoShowMarked | Refusal:
        organizer = info.context.require_organizer()
        request = _to_request(booking_id, organizer, wait_ms)
        if request is None:
            return BookingNotFound.for_id(booking_id)
        result = await attendance.mark_no_show(info.context.services, request)
        outcome, view = result.outcome, _view(organizer, result)
        if isinstance(outcome, outcomes.NoShowMarked):
            return NoShowMarked.from_domain(outcome, view)
        return present_attendance_refusal(outcome, view)

    @field(
        description="Take back that a booking is a no-show. Organizers only.",
        graphql_type=UndoNoShowResult,
    )
    async def undo_no_show(
        self, info: Info, booking_id: BookingIdArgument, wait_ms: WaitMsArgument = DEFAULT_WAIT_MS
    ) -> NoShowUndone | Refusal:
        organizer = info.context.require_organizer()
        request = _to_request(booking_id, organizer, wait_ms)
        if request is None:
            return BookingNotFound.for_id(booking_id)
        result = await attendance.undo_no_show(info.context.services, request)
        outcome, view = result.outcome, _view(organizer, result)
        if isinstance(outcome, outcomes.NoShowUndone):
            return NoShowUndone.from_domain(outcome, view)
        return present_attendance_refusal(outcome, view)


def _find_booking(info: Info, names: CheckInInput) -> tuple[SlotId, BookingId] | Refusal:
    """Return the slot and the booking that the input names. Errors: BAD_USER_INPUT."""
    if names.code is not None and names.booking_id is None:
        found = parse_check_in_code(info.context.auth.tokens, names.code)
        return found or InvalidCheckInCode.create()
    if names.booking_id is not None and names.code is None:
        found = ids.parse_booking_id(names.booking_id)
        return found or BookingNotFound.for_id(names.booking_id)
    raise bad_input("input", "Please send either `bookingId` or `code`.")


def _parse_slot_id(global_id: str | None) -> SlotId | None:
    """Return the slot to check in for, if the input names one. Errors: BAD_USER_INPUT."""
    if global_id is None:
        return None
    slot_id = ids.parse_slot_id(global_id)
    if slot_id is None:
        raise bad_input("slotId", "`slotId` must be the id of a slot.")
    return slot_id


def _to_request(
    booking_global_id: str, organizer: Caller, wait_ms: int
) -> BookingChangeRequest | None:
    """Return the request for a booking, or None for a malformed id. Errors: BAD_USER_INPUT."""
    wait_s = to_wait_seconds(wait_ms)
    parsed_id = ids.parse_booking_id(booking_global_id)
    return BookingChangeRequest(*parsed_id, organizer, wait_s) if parsed_id else None


def _view(organizer: Caller, result: CommandResult[object]) -> ResultView:
    return ResultView(organizer, result.slots)
