"""The columns of a roster in every format, each in one line."""

from collections.abc import Callable, Iterable
from datetime import datetime
from functools import lru_cache, partial
from typing import Any, Generic, TypeVar

from slotlock.domain.booking.booking import Attendance, Booking
from slotlock.domain.booking.slot import Slot
from slotlock.domain.reports.export_formats import ExportLanguage
from slotlock.domain.reports.roster import PlaceCounts, RosterRow, RosterUser
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.schedule.schedule_texts import (
    format_periods,
    format_schedule,
    format_short_time,
    zone_text,
)
from slotlock.domain.schedule.zones import to_local_time
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.groups import class_of

Shown = TypeVar("Shown")
Cell = str | int | datetime | None


class TooManyRowsError(Exception):
    """The file would be too large."""


@value_object
class RosterColumn(Generic[Shown]):
    """A column: its name in CSV, its title and its width in characters, and the value of a cell.

    Cells with codes contain names of the API, separated by semicolons. `text` is the value for
    readers of a language, if it is another one.
    """

    name: str
    title: str
    width: int
    value: Callable[[Shown], Cell]
    is_coded: bool = False
    text: Callable[[Shown, ExportLanguage], Cell] | None = None


def of_booking(
    name: str, title: str, width: int, value: Callable[[Booking], Cell], *, is_coded: bool = False
) -> RosterColumn[RosterRow]:
    """Return a column for a value of bookings, which is empty for users who wait."""

    def value_of_row(row: RosterRow) -> Cell:
        return None if row.booking is None else value(row.booking)

    return RosterColumn(name, title, width, value_of_row, is_coded)


def _overridden_limits(booking: Booking) -> str:
    limits = (limit for entry in booking.history for limit in entry.overridden_limits)
    return ";".join(limit.name for limit in dict.fromkeys(limits))


def _checked_in_at(booking: Booking) -> datetime | None:
    return booking.check_in.at if booking.check_in else None


@lru_cache(maxsize=64)  # a roster repeats the text in each row
def _intervals(meetings: tuple[Meeting, ...], time_zone: str) -> str:
    """Return the meetings of a course as local intervals (ISO 8601)."""
    times = ((each.start, each.end) for each in meetings)
    return ";".join(
        "/".join(to_local_time(at, time_zone).isoformat() for at in each) for each in times
    )


def _meetings(row: RosterRow) -> str:
    return _intervals(row.slot.meetings, row.slot.time_zone)


def _schedule(row: RosterRow, language: ExportLanguage) -> str:
    slot = row.slot
    return format_schedule(slot.meetings, slot.time_zone, language) if slot.meetings else ""


def _time(row: RosterRow, language: str) -> str:
    """Return when a slot takes place, without its zone."""
    slot = row.slot
    text = format_schedule(slot.all_meetings, slot.time_zone, language)
    return text.removesuffix(zone_text(slot.time_zone, language))


def _periods(row: RosterRow) -> str:
    """Return the periods as files of courses have them: `Tue 3;Thu 5`."""
    days = ((each.weekday.name[:3].capitalize(), each.name) for each in row.periods)
    return ";".join(" ".join(each) for each in days)


def _periods_in_words(row: RosterRow, language: ExportLanguage) -> str:
    return format_periods(row.periods, language)


Columns = tuple[RosterColumn[Any], ...]
SLOT_COLUMNS: tuple[RosterColumn[Slot], ...] = (
    RosterColumn("slot", "Course", 28, lambda slot: slot.title),
    RosterColumn("start", "Start (local)", 17, lambda slot: slot.start),
    RosterColumn("end", "End (local)", 17, lambda slot: slot.end),
    RosterColumn("time_zone", "Time zone", 18, lambda slot: slot.time_zone),
    RosterColumn("location", "Where", 20, lambda slot: slot.location, text=lambda s, _: s.place),
)
# The last columns of every sheet. A new one comes at the end, because columns keep their positions.
LAST_COLUMNS: tuple[RosterColumn[RosterRow], ...] = (
    RosterColumn("resources", "Rooms and devices", 28, lambda row: ";".join(row.slot.resources)),
    RosterColumn("meetings", "Meetings", 60, _meetings, text=_schedule),
    RosterColumn("number", "Number", 10, lambda row: row.slot.number),
    RosterColumn("periods", "Periods", 18, _periods, text=_periods_in_words),
)
# After them, and only of users.
FAMILY_COLUMNS: tuple[RosterColumn[RosterRow], ...] = (
    of_booking(
        "made_as",
        "Booked as",
        18,
        lambda booking: booking.made_as.name if booking.made_as else None,
        is_coded=True,
    ),
    RosterColumn("guardians", "Parents or guardians", 28, lambda row: ";".join(row.guardians)),
)
_NAME = RosterColumn[RosterRow]("name", "Name", 24, lambda row: row.name)
_EMAIL = RosterColumn[RosterRow]("email", "Email or user name", 30, lambda row: row.login_name)
_GROUPS = RosterColumn[RosterRow](
    "groups", "Classes and groups", 18, lambda row: ";".join(row.groups)
)
_SINCE = RosterColumn[RosterRow](
    "waiting_since", "Waiting since (local)", 21, lambda r: r.waited_since
)
POSITION = RosterColumn[RosterRow]("waiting_position", "Position", 9, lambda row: row.position)
BOOKING_COLUMNS: tuple[RosterColumn[RosterRow], ...] = (
    _NAME,
    _EMAIL,
    _GROUPS,
    RosterColumn("status", "Status", 12, lambda r: r.status.name if r.status else "WAITING", True),
    of_booking("held_until", "Reserved until (local)", 20, lambda booking: booking.held_until),
    of_booking("created_at", "Booked at (local)", 20, lambda booking: booking.created_at),
    RosterColumn("created_by", "Booked by", 24, lambda row: row.made_by),
    _SINCE,
    of_booking("overridden_limits", "Overridden limits", 24, _overridden_limits, is_coded=True),
    of_booking(
        "attendance", "Attendance", 15, lambda booking: booking.attendance.name, is_coded=True
    ),
    of_booking("checked_in_at", "Checked in at (local)", 21, _checked_in_at),
)
WAITING_COLUMNS: tuple[RosterColumn[RosterRow], ...] = (
    POSITION,
    _NAME,
    _EMAIL,
    _GROUPS,
    _SINCE,
    RosterColumn("waitlisted_by", "Put on the list by", 24, lambda row: row.made_by),
)
# What the leader of a slot does not see: addresses, who booked for others, and families.
HIDDEN_FROM_LEADERS = {"email", "created_by", "waitlisted_by", "made_as", "guardians"}
# Of the list of a whole school: who is where.
ALL_COLUMNS: tuple[RosterColumn[RosterRow], ...] = (
    RosterColumn("class", "Class", 10, lambda row: class_of(row.groups)),
    RosterColumn("family_name", "Family name", 20, lambda row: row.split_name[0]),
    RosterColumn("given_name", "Given name", 18, lambda row: row.split_name[1]),
    RosterColumn("slot", "Course", 28, lambda row: row.slot.title),
    RosterColumn("location", "Location", 24, lambda row: row.slot.place),
    RosterColumn("start", "Start (local)", 17, lambda row: row.slot.start),
)
# Of the lists by user and by resource.
_PHONE = RosterColumn[RosterUser]("phone", "Telephone", 18, lambda user: user.phone)
USER_COLUMNS: Columns = (*ALL_COLUMNS[:3], _EMAIL, _GROUPS, _PHONE)
PLACE_COLUMNS: tuple[RosterColumn[RosterRow], ...] = (
    ALL_COLUMNS[-1],
    RosterColumn("end", "End (local)", 17, lambda row: row.slot.end),
    RosterColumn("time_zone", "Time zone", 18, lambda row: row.slot.time_zone),
    RosterColumn("slot", "Course", 28, lambda row: row.slot.title),
    _NAME,
    _EMAIL,
    _GROUPS,
    of_booking("status", "Status", 12, lambda booking: booking.status.name, is_coded=True),
    *LAST_COLUMNS,
)
STATUS = RosterColumn[Slot]("status", "Status", 12, lambda slot: slot.status.name, is_coded=True)
COUNT_COLUMNS: tuple[RosterColumn[PlaceCounts], ...] = (
    RosterColumn("places", "Places", 9, lambda counts: counts.places),
    RosterColumn("confirmed", "Confirmed", 11, lambda counts: counts.confirmed),
    RosterColumn("held", "Reserved", 9, lambda counts: counts.held),
    RosterColumn("cancelled", "Ended", 11, lambda counts: counts.cancelled),
    RosterColumn("waiting", "Waiting", 9, lambda counts: counts.waiting),
    RosterColumn("free", "Free", 9, lambda counts: counts.free),
)
SHEET = RosterColumn[str]("sheet", "Sheet", 32, lambda name: name)
# On paper, the widths are in centimeters.
SIGN_IN_COLUMNS: tuple[RosterColumn[RosterRow], ...] = (
    RosterColumn("name", "Name", 6, lambda row: row.list_name),
    RosterColumn("groups", "Groups", 3, lambda row: ", ".join(row.groups)),
)
PLACE_SHEET_COLUMNS: tuple[RosterColumn[RosterRow], ...] = (
    RosterColumn("time", "Time", 5, lambda row: row.slot.start, text=_time),
    RosterColumn("slot", "Course", 4, lambda row: row.slot.numbered_title),
    RosterColumn("name", "Name", 5, lambda row: row.list_name),
    RosterColumn("groups", "Groups", 2, lambda row: ", ".join(row.groups)),
)


def columns_for(columns: Columns, *, for_leader: bool) -> Columns:
    """Return those of the columns that the reader sees: an organizer, or the leader of the slot."""
    return tuple(c for c in columns if not (for_leader and c.name in HIDDEN_FROM_LEADERS))


def meeting_columns(
    slot: Slot, language: ExportLanguage | None = None
) -> tuple[RosterColumn[RosterRow], ...]:
    """Return a column for each meeting of a slot with several: its time, and who came."""
    starts = [to_local_time(meeting.start, slot.time_zone) for meeting in slot.meetings]
    return tuple(
        RosterColumn(
            start.isoformat(),
            time_title(start, language),
            23,
            partial(_attendance_at, number),
            is_coded=True,
        )
        for number, start in enumerate(starts)
    )


def time_title(start: datetime, language: ExportLanguage | None) -> str:
    """Return a local time as a title, without a language for programs."""
    return format_short_time(start, language) if language else f"{start:%Y-%m-%d %H:%M}"


def _attendance_at(number: int, row: RosterRow) -> str | None:
    """Return whether the user came to a meeting; None if nothing is recorded."""
    if not row.meeting_attendances:  # of a user who waits
        return None
    attendance = row.meeting_attendances[number]
    return None if attendance is Attendance.NOT_RECORDED else attendance.name


def cells_of(columns: Iterable[RosterColumn[Shown]], shown: Shown, time_zone: str) -> list[Cell]:
    """Return the cells of a row; times are in the zone of the slot."""
    values = (column.value(shown) for column in columns)
    return [
        to_local_time(value, time_zone) if isinstance(value, datetime) else value
        for value in values
    ]
