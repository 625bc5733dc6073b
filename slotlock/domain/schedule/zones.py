"""Time zones: conversion between instants in UTC and local wall-clock times.

The rules come from the IANA database through `zoneinfo`: the system's copy, or else tzdata.
"""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.shared.problems import Problem, ProblemCode
from slotlock.domain.shared.text import format_in_zone
from slotlock.domain.shared.validation import FieldProblem, InvalidInput

# Adding an offset or a duration to a time in these years never overflows a datetime.
FIRST_YEAR, LAST_YEAR = 1970, 2090
# Some systems list these files: their own zone, and a placeholder until a zone is chosen.
EXCLUDED_ZONES = {"localtime", "Factory"}
UNKNOWN_ZONE = FieldProblem("timeZone", ProblemCode.UNKNOWN_TIME_ZONE.problem())


@cache
def _zone_names() -> frozenset[str]:
    return frozenset(available_timezones() - EXCLUDED_ZONES)


def find_zone(name: str) -> ZoneInfo | None:
    """Return the zone with this IANA name, or None; any text is safe to pass."""
    return ZoneInfo(name) if name in _zone_names() else None


def to_wall_clock(instant: datetime, zone: ZoneInfo) -> datetime:
    """Return the local time in the zone as a naive datetime."""
    return instant.astimezone(zone).replace(tzinfo=None, fold=0)


def to_local_time(instant: datetime, time_zone: str) -> datetime:
    """Return the time in a zone to the second; in UTC if the local year is out of range."""
    seconds = instant.replace(microsecond=0)
    try:
        return seconds.astimezone(find_zone(time_zone) or UTC)
    except OverflowError:
        return seconds


def to_instant(wall_time: datetime, zone: ZoneInfo) -> datetime:
    """Return the instant in UTC of a naive local time in the zone (RFC 5545, 3.3.5).

    A local time that occurs twice means the first occurrence. A skipped local time is read with the
    offset before the gap: 02:30 in the night of the change means 03:30 with the new offset.
    """
    return wall_time.replace(tzinfo=zone, fold=0).astimezone(UTC)


def validate_year(day: date) -> Problem | None:
    """Return the problem with a date outside of the supported years, or None."""
    if FIRST_YEAR <= day.year <= LAST_YEAR:
        return None
    return ProblemCode.YEAR_NOT_IN_RANGE.problem(minimum=FIRST_YEAR, maximum=LAST_YEAR)


def shift_all(
    meetings: Sequence[Meeting], zones: Sequence[str], new: Meeting, new_zone: str | None = None
) -> tuple[Meeting, ...] | InvalidInput:
    """Move each meeting as the first one moves to `new`, in the given order.

    `zones` has the zone of each meeting, which it keeps if there is no new one. The difference is
    local time: if a weekly 09:00 in Berlin becomes 10:00 in New York, all meetings start at 10:00
    in New York, whichever clocks change between them. The duration of each meeting changes as that
    of the first does. A meeting on a skipped local time moves from its actual start.
    """
    old = meetings[0]
    pairs = [(find_zone(name), find_zone(new_zone or name)) for name in zones]
    clocks = [(before, after) for before, after in pairs if before and after]
    if len(clocks) < len(pairs):
        return InvalidInput((UNKNOWN_ZONE,))
    if new.end <= new.start:
        return InvalidInput((FieldProblem("endTime", ProblemCode.END_BEFORE_START.problem()),))
    extra_duration = (new.end - new.start) - (old.end - old.start)
    try:
        shift = to_wall_clock(new.start, clocks[0][1]) - to_wall_clock(old.start, clocks[0][0])
        others = zip(meetings[1:], clocks[1:], strict=True)
        moved = (new, *(_shift(each, shift, extra_duration, *pair) for each, pair in others))
    except OverflowError:
        return InvalidInput((FieldProblem("startTime", ProblemCode.DATE_TOO_LATE.problem()),))
    for meeting, (_, zone) in zip(moved, clocks, strict=True):
        if meeting.end <= meeting.start:
            start = format_in_zone(meeting.start, zone)
            problem = ProblemCode.MEETING_TOO_SHORT.problem(time=start)
            return InvalidInput((FieldProblem("endTime", problem),))
    return moved


def _shift(
    meeting: Meeting, shift: timedelta, extra_duration: timedelta, old: ZoneInfo, new: ZoneInfo
) -> Meeting:
    local_start = to_wall_clock(meeting.start, old) + shift
    # The instant stays where it can, also for the second of two equal local times.
    stays = to_wall_clock(meeting.start, new) == local_start
    start = meeting.start if stays else to_instant(local_start, new)
    return Meeting(start, start + (meeting.end - meeting.start) + extra_duration)
