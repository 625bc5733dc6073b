"""Check-in and no-shows over GraphQL, and the pixels of a QR code as a scanner reads them."""

import re
from typing import Any
from xml.etree.ElementTree import fromstring

import numpy
import zxingcpp

from tests.support.clients.booking_client import BookingClient
from tests.support.clients.client import Json, hours_from_now, times_in

SVG = "{http://www.w3.org/2000/svg}"
MODULE_PIXELS = 8
ATTENDANCE_FRAGMENT = """fragment A on Booking {
  id status attendance checkedInAt checkedInBy { id } history { action by { id } }
  attendanceByMeeting { attendance checkedInAt }
}"""
CHECK_IN = f"""mutation($input: CheckInInput!) {{ checkIn(input: $input) {{
  __typename ... on CheckedIn {{ booking {{ ...A }} slot {{ id }} meeting {{ startTime }} }}
  ... on Refusal {{ code message }}
  ... on AlreadyCheckedIn {{ checkedInAt checkedInBy {{ id }} booking {{ ...A }} }}
  ... on CheckInNotOpen {{ opensAt }}
  ... on WrongSlot {{ slot {{ id }} booking {{ id user {{ name }} }} }}
  ... on NotConfirmed {{ booking {{ id status movedTo }} }}
}} }} {ATTENDANCE_FRAGMENT}"""


def _change(name: str, result: str) -> str:
    return f"""mutation($booking: ID!, $meeting: DateTime) {{
      {name}(bookingId: $booking, meetingStartTime: $meeting) {{
        __typename ... on {result} {{ booking {{ ...A }} }} ... on Refusal {{ code }}
      }}
    }} {ATTENDANCE_FRAGMENT}"""


UNDO_CHECK_IN = _change("undoCheckIn", "CheckInUndone")
MARK_NO_SHOW = _change("markNoShow", "NoShowMarked")
UNDO_NO_SHOW = _change("undoNoShow", "NoShowUndone")
CODES = """query($booking: ID!) { node(id: $booking) {
  ... on Booking { checkInCode checkInQr attendance }
} }"""


async def check_in(organizer: BookingClient, **fields: Any) -> Json:
    """Check a user in and return the result."""
    outcome: Json = await organizer.execute(CHECK_IN, input=fields)
    return outcome


async def mark_no_show(
    organizer: BookingClient, booking_id: str, meeting: str | None = None
) -> Json:
    """Mark a booking as a no-show and return the result."""
    outcome: Json = await organizer.execute(MARK_NO_SHOW, booking=booking_id, meeting=meeting)
    return outcome


async def fetch_code(client: BookingClient, booking_id: str) -> str:
    """Return the check-in code of a booking."""
    return str((await client.execute(CODES, booking=booking_id))["checkInCode"])


def meetings_at(*hours: float) -> Json:
    """Return the fields of a course with meetings of an hour that start in so many hours."""
    extra = [times_in(h) for h in hours]
    today = hours_from_now(0)[:10]
    return {
        "startTime": None,
        "endTime": None,
        "timetable": {"first": today, "last": today, "extra": extra},
    }


async def booked_course(
    organizer: BookingClient, user: BookingClient, *hours: float, **fields: Any
) -> tuple[str, str, list[str]]:
    """Return a course with such meetings, the booking of a user in it, and the starts."""
    slot_id = await organizer.add_slot(**meetings_at(*hours), **fields)
    booked = await organizer.book_slot(slot_id, userId=await user.fetch_user_id())
    slot = await organizer.execute(
        "query($id: ID!) { slot(id: $id) { meetings { startTime } } }", id=slot_id
    )
    return slot_id, str(booked["booking"]["id"]), [each["startTime"] for each in slot["meetings"]]


async def booked_soon(
    organizer: BookingClient, user: BookingClient, **fields: Any
) -> tuple[str, str]:
    """Return a slot that starts in an hour, and the booking of a user in it."""
    fields = {**times_in(1), **fields}
    slot_id = await organizer.add_slot(**fields)
    return slot_id, str((await user.book_slot(slot_id))["booking"]["id"])


async def missed(organizer: BookingClient, user: BookingClient, **fields: Any) -> str:
    """Return a booking of a user in a new slot, which has started and is marked as a no-show."""
    slot_id, booking_id = await booked_soon(organizer, user, **fields)
    await organizer.update_slot(slot_id, startTime=hours_from_now(-1))
    marked = await mark_no_show(organizer, booking_id)
    assert marked["__typename"] == "NoShowMarked", marked
    return booking_id


def read_qr_code(svg: str) -> str:
    """Return the text of a QR code, as a scanner reads the pixels of the SVG image."""
    root = fromstring(svg)  # noqa: S314  # our own server wrote it
    size = int(root.attrib["width"]) // MODULE_PIXELS
    (dark,) = (path for path in root.iter(f"{SVG}path") if "stroke" in path.attrib)
    pixels = numpy.full((size, size), 255, numpy.uint8)
    x, y = 0.0, 0.0
    for command, numbers in re.findall(r"([Mmh])([-0-9. ]+)", dark.attrib["d"]):
        values = [float(number) for number in numbers.split()]
        if command == "M":
            x, y = values
        elif command == "m":
            x, y = x + values[0], y + values[1]
        else:
            pixels[int(y), int(x) : int(x + values[0])] = 0
            x += values[0]
    enlarged = pixels.repeat(MODULE_PIXELS, 0).repeat(MODULE_PIXELS, 1)
    (found,) = zxingcpp.read_barcodes(enlarged)
    return str(found.text)
