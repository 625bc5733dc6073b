"""Mutations with which organizers and leaders record who came to a slot."""

from datetime import datetime
from functools import partial
from typing import Annotated

import strawberry
from strawberry import argument, field

from slotlock.domain.booking.booking import BookingId, SlotId
from slotlock.domain.booking.booking_refusals import BookingNotFound, InvalidCheckInCode
from slotlock.domain.booking.decision import BookingChangeRequest
from slotlock.domain.booking.rules import attendance
from slotlock.graphql.booking.booking_changes import booking_mutation
from slotlock.graphql.booking.booking_results import CHECK_IN
from slotlock.graphql.check_in_codes import parse_booking_code
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.arguments import DEFAULT_WAIT_MS, WAIT_DESCRIPTION, to_wait_seconds
from slotlock.graphql.core.errors import bad_input
from slotlock.graphql.core.outcomes import ResultView, refuse_id
from slotlock.services.booking.booking_changes import change_booking

MEETING_DESCRIPTION = (
    "When the meeting starts, as `meetings` of the slot shows it. By default, it is the meeting of "
    "now."
)
MeetingArgument = Annotated[
    datetime | None, argument(name="meetingStartTime", description=MEETING_DESCRIPTION)
]
LEADERS_ONLY = "Only organizers and leaders of the slot may do it."
attendance_mutation = partial(
    booking_mutation,
    arguments={"meeting_start": MeetingArgument},
    leaders_only=True,
    takes_key=False,
)


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
    meeting_start_time: datetime | None = field(default=None, description=MEETING_DESCRIPTION)
    wait_ms: int = field(default=DEFAULT_WAIT_MS, description=WAIT_DESCRIPTION)


CheckInArgument = Annotated[CheckInInput, argument(description="The booking of the user who came.")]


@strawberry.type
class AttendanceMutations:
    @CHECK_IN.mutation(
        "Check in the user of a confirmed booking, from 12 hours before the start of "
        "its slot on. Of several scanners that read one code, exactly one gets `CheckedIn`. "
        "A slot with several meetings has an attendance for each of them. The meeting of now is "
        "the first that is not over and takes check-ins, or else the last one. Only organizers and "
        "leaders of the slot may do it: to a leader, bookings of other slots do not exist."
    )
    async def check_in(self, info: Info, input: CheckInArgument) -> object:
        found, expected_id = _find_booking(info, input), ids.parse_slot_id(input.slot_id or "")
        caller = await info.context.require_leader(expected_id, found and found[0])
        _require_valid(input)
        wait_s = to_wait_seconds(input.wait_ms)
        if found is None and input.booking_id is not None:
            return refuse_id(BookingNotFound, input.booking_id)
        if found is None:
            return CHECK_IN.present(InvalidCheckInCode(), ResultView(caller))
        result = await change_booking(
            info.context.services,
            attendance.check_in,
            BookingChangeRequest(*found, caller, wait_s),
            meeting_start=input.meeting_start_time,
            expected_slot_id=expected_id,
        )
        return CHECK_IN.present(result.outcome, ResultView(caller, result.slots))

    undo_check_in = attendance_mutation(
        attendance.undo_check_in,
        ("UndoCheckInResult", "The booking, or a refusal."),
        "Take back the check-in of a booking. Of several meetings, it is by default the one that "
        f"`checkIn` would choose. {LEADERS_ONLY}",
    )
    mark_no_show = attendance_mutation(
        attendance.mark_no_show,
        ("MarkNoShowResult", "The missed booking, or a refusal."),
        "Record that the user of a confirmed booking did not come, once the slot has started. A "
        "later check-in replaces the no-show. Of several meetings, it is by default the last that "
        f"has started. {LEADERS_ONLY}",
    )
    undo_no_show = attendance_mutation(
        attendance.undo_no_show,
        ("UndoNoShowResult", "The booking, or a refusal."),
        "Take back that a booking is a no-show. Of several meetings, it is by default the last "
        f"that has started. {LEADERS_ONLY}",
    )


def _find_booking(info: Info, names: CheckInInput) -> tuple[SlotId, BookingId] | None:
    """Return the slot and the booking that the input names; None if its id or code is invalid."""
    if names.code is not None:
        return parse_booking_code(info.context.auth.tokens, names.code)
    return ids.parse_booking_id(names.booking_id or "")


def _require_valid(names: CheckInInput) -> None:
    """Require one name of the booking, and the id of a slot, if any. Errors: BAD_USER_INPUT."""
    if (names.code is None) is (names.booking_id is None):
        raise bad_input("input", "Please send either `bookingId` or `code`.")
    if names.slot_id is not None and ids.parse_slot_id(names.slot_id) is None:
        raise bad_input("slotId", "`slotId` must be the id of a slot.")
