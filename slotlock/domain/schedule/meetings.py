"""Meetings: the times at which the users of a slot meet, and whether meetings overlap."""

from collections.abc import Sequence
from datetime import datetime, tzinfo
from itertools import pairwise

from slotlock.domain.shared.problems import Problem, ProblemCode
from slotlock.domain.shared.text import format_in_zone
from slotlock.domain.shared.value_object import value_object

MAX_MEETINGS = 500


@value_object
class Meeting:
    """A range of time in UTC; `end` is exclusive."""

    start: datetime
    end: datetime


def first_overlap(
    first: Sequence[Meeting], second: Sequence[Meeting]
) -> tuple[Meeting, Meeting] | None:
    """Return the first pair of overlapping meetings, one of each list, or None.

    Both lists must be sorted by start. Meetings that only touch do not overlap.
    """
    i = j = 0
    while i < len(first) and j < len(second):
        one, other = first[i], second[j]
        if one.start < other.end and other.start < one.end:
            return one, other
        if one.end <= other.end:
            i += 1
        else:
            j += 1
    return None


def validate_meetings(meetings: Sequence[Meeting], zone: tzinfo) -> Problem | None:
    """Return the problem with a slot's meetings, or None; the text has times in this zone."""
    if not 1 <= len(meetings) <= MAX_MEETINGS:
        return ProblemCode.MEETING_COUNT.problem(maximum=MAX_MEETINGS)
    if reversed_meeting := next((m for m in meetings if m.end <= m.start), None):
        start = format_in_zone(reversed_meeting.start, zone)
        return ProblemCode.MEETING_REVERSED.problem(time=start)
    for before, after in pairwise(meetings):
        if after.start < before.start:
            start = format_in_zone(after.start, zone)
            return ProblemCode.MEETINGS_UNSORTED.problem(time=start)
        if after.start < before.end:
            first, second = format_in_zone(before.start, zone), format_in_zone(after.start, zone)
            return ProblemCode.MEETINGS_OVERLAP.problem(time=first, other=second)
    return None
