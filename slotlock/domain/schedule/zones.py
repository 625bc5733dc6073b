"""Time zones: conversion between instants in UTC and local wall-clock times.

The rules come from the IANA database through `zoneinfo`: the system's copy, or else tzdata.
"""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from slotlock.domain.schedule.meetings import Meeting, format_in_zone
from slotlock.domain.shared.validation import FieldProblem, InvalidInput

# Adding an offset or a duration to a time in these years never overflows a datetime.
FIRST_YEAR, LAST_YEAR = 1970, 2090
# Some systems list these files: their own zone, and a placeholder until a zone is chosen.
EXCLUDED_ZONES = {"localtime", "Factory"}
UNKNOWN_ZONE = FieldProblem("timeZone", "Please use an IANA time zone, such as Europe/Berlin.")


@cache
def _zone_names() -> frozenset[str]:
    return frozenset(available_timezones() - EXCLUDED_ZONES)


def find_zone(name: str) -> ZoneInfo | None:
    """Return the zone with this IANA name, or None; any text is safe to pass."""
    return ZoneInfo(name) if name in _zone_names() else None


def to_wall_clock(instant: datetime, zone: ZoneInfo) -> datetime:
    """Return the local time in the zone as a naive datetime."""
    return instant.astimezone(zone).replace(tzinfo=None, fold=0)


def to_instant(wall_time: datetime, zone: ZoneInfo) -> datetime:
    """Return the instant in UTC of a naive local time in the zone (RFC 5545, 3.3.5).

    A local time that occurs twice means the first occurrence. A skipped local time is read with the
    offset before the gap: 02:30 in the night of the change means 03:30 with the new offset.
    """
    return wall_time.replace(tzinfo=zone, fold=0).astimezone(UTC)


def validate_year(day: date) -> str | None:
    """Return the problem with a date outside of the supported years, or None."""
    if FIRST_YEAR <= day.year <= LAST_YEAR:
        return None
    return f"The year must be between {FIRST_YEAR} and {LAST_YEAR}."


def shift_all(
    meetings: Sequence[Meeting], old: Meeting, new: Meeting, time_zone: str
) -> tuple[Meeting, ...] | InvalidInput:
    """Move each meeting by the difference between `old` and `new`, in the given order.

    The difference is local time: if a weekly 09:00 becomes 10:00, all meetings start at 10:00 on
    both sides of a clock change. The duration of each meeting changes as that of `old` does. A
    meeting on a skipped local time moves from its actual start.
    """
    zone = find_zone(time_zone)
    if zone is None:
        return InvalidInput((UNKNOWN_ZONE,))
    if new.end <= new.start:
        return InvalidInput((FieldProblem("endTime", "The end must be after the start."),))
    extra_duration = (new.end - new.start) - (old.end - old.start)
    try:
        shift = to_wall_clock(new.start, zone) - to_wall_clock(old.start, zone)
        moved = tuple(
            new if meeting == old else _shift(meeting, shift, extra_duration, zone)
            for meeting in meetings
        )
    except OverflowError:
        return InvalidInput((FieldProblem("startTime", "This date is too late."),))
    if empty := next((meeting for meeting in moved if meeting.end <= meeting.start), None):
        start = format_in_zone(empty.start, zone)
        problem = f"The meeting at {start} is too short to be shortened this much."
        return InvalidInput((FieldProblem("endTime", problem),))
    return moved


def _shift(
    meeting: Meeting, wall_clock_shift: timedelta, extra_duration: timedelta, zone: ZoneInfo
) -> Meeting:
    # Without a shift the instant must not change, also for the second of two equal local times.
    start = (
        meeting.start
        if not wall_clock_shift
        else to_instant(to_wall_clock(meeting.start, zone) + wall_clock_shift, zone)
    )
    return Meeting(start, start + (meeting.end - meeting.start) + extra_duration)
