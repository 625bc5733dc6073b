"""Wall clocks: what they show at an instant, and which instant they mean.

The rules come from the IANA database through `zoneinfo`: the system's copy, else that of tzdata.
"""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from slotlock.domain.schedule.meetings import Meeting, format_in_zone
from slotlock.domain.shared.validation import FieldProblem, InvalidInput

# Far enough for any plan, and never so far that adding an offset or a span leaves the calendar.
FIRST_YEAR, LAST_YEAR = 1970, 2090
# Among the files of some machines: the machine's own zone, and one for who has not chosen yet.
EXCLUDED_ZONES = {"localtime", "Factory"}
UNKNOWN_ZONE = FieldProblem("timeZone", "A time zone is an IANA name, like Europe/Berlin.")


@cache
def _zone_names() -> frozenset[str]:
    return frozenset(available_timezones() - EXCLUDED_ZONES)


def find_zone(name: str) -> ZoneInfo | None:
    """The zone of this IANA name, or None. Any text may be asked for."""
    return ZoneInfo(name) if name in _zone_names() else None


def to_wall_clock(instant: datetime, zone: ZoneInfo) -> datetime:
    """What clocks in the zone show, as a naive time."""
    return instant.astimezone(zone).replace(tzinfo=None, fold=0)


def to_instant(wall_time: datetime, zone: ZoneInfo) -> datetime:
    """The instant in UTC that a naive time means in the zone (RFC 5545, 3.3.5).

    A time that is shown twice is the first one. One that is skipped is read with the offset before
    the gap: 02:30 in the night of the change is 03:30 by the new clock.
    """
    return wall_time.replace(tzinfo=zone, fold=0).astimezone(UTC)


def validate_year(day: date) -> str | None:
    """Why a plan cannot begin or end then, or None."""
    if FIRST_YEAR <= day.year <= LAST_YEAR:
        return None
    return f"The year is from {FIRST_YEAR} to {LAST_YEAR}."


def shift_all(
    meetings: Sequence[Meeting], old: Meeting, new: Meeting, time_zone: str
) -> tuple[Meeting, ...] | InvalidInput:
    """Each meeting moved as `old` was to become `new`, in the order given.

    The difference is the wall clock's: if a weekly 09:00 becomes 10:00, all are at 10:00 on both
    sides of a clock change. Each becomes as much longer or shorter as `old` does. A meeting that
    its series had put on a skipped time starts from the time it really has.
    """
    zone = find_zone(time_zone)
    if zone is None:
        return InvalidInput((UNKNOWN_ZONE,))
    if new.end <= new.start:
        return InvalidInput((FieldProblem("endTime", "The end must be after the start."),))
    longer = (new.end - new.start) - (old.end - old.start)
    try:
        by = to_wall_clock(new.start, zone) - to_wall_clock(old.start, zone)
        moved = tuple(new if m == old else _shift(m, by, longer, zone) for m in meetings)
    except OverflowError:
        return InvalidInput((FieldProblem("startTime", "The calendar ends before that."),))
    if gone := next((meeting for meeting in moved if meeting.end <= meeting.start), None):
        at = format_in_zone(gone.start, zone)
        problem = f"The one that starts at {at} is too short to become that much shorter."
        return InvalidInput((FieldProblem("endTime", problem),))
    return moved


def _shift(
    meeting: Meeting, wall_clock_shift: timedelta, extra_duration: timedelta, zone: ZoneInfo
) -> Meeting:
    """The meeting moved by a wall-clock difference, and so much longer."""
    # By nothing is the same instant, also for the second of two times that look alike.
    start = (
        meeting.start
        if not wall_clock_shift
        else to_instant(to_wall_clock(meeting.start, zone) + wall_clock_shift, zone)
    )
    return Meeting(start, start + (meeting.end - meeting.start) + extra_duration)
