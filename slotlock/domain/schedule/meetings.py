"""Meetings: when people come together, once or many times, and whether two of them collide."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from itertools import pairwise

MAX_MEETINGS = 500


@dataclass(frozen=True, slots=True)
class Meeting:
    """One stretch of time in UTC, from `start` up to but not including `end`."""

    start: datetime
    end: datetime


def first_overlap(
    first: Sequence[Meeting], second: Sequence[Meeting]
) -> tuple[Meeting, Meeting] | None:
    """A meeting of each that are going on at the same time, or None; touching is not overlapping.

    Both are sorted by start. Looks at each meeting once.
    """
    here = there = 0
    while here < len(first) and there < len(second):
        mine, theirs = first[here], second[there]
        if mine.start < theirs.end and theirs.start < mine.end:
            return mine, theirs
        if mine.end <= theirs.end:
            here += 1
        else:
            there += 1
    return None


def validate_meetings(meetings: Sequence[Meeting], zone: tzinfo) -> str | None:
    """What is wrong with these as all meetings of one thing, told by the zone's clocks; or None."""
    if not 1 <= len(meetings) <= MAX_MEETINGS:
        return f"From 1 to {MAX_MEETINGS} meetings."
    if backwards := next((m for m in meetings if m.end <= m.start), None):
        return f"A meeting must end after its start: {format_in_zone(backwards.start, zone)}."
    for before, after in pairwise(meetings):
        if after.start < before.start:
            return f"Meetings are in order of their start: {format_in_zone(after.start, zone)}."
        if after.start < before.end:
            both = f"{format_in_zone(before.start, zone)} and {format_in_zone(after.start, zone)}"
            return f"Meetings overlap: {both}."
    return None


def format_in_zone(instant: datetime, zone: tzinfo) -> str:
    """A time by the zone's clocks, as text; in UTC where the calendar ends before the zone does."""
    try:
        return instant.astimezone(zone).isoformat()
    except OverflowError:
        return instant.isoformat()
