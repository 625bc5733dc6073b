"""The cells of one course: read with the rules of its columns, and written so as to be read back.

A row of a file and a stored course are compared as what is read of both, so that other spellings of
a date or a time change nothing.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from datetime import date, time
from typing import Any

from slotlock.domain.booking.slot import MAX_CAPACITY, MAX_WAITLIST_CAPACITY, Slot
from slotlock.domain.campaigns.campaign import normalize_group_limits
from slotlock.domain.campaigns.terms import GroupLimit
from slotlock.domain.resources.resource import Resource, ResourceKind
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.schedule.periods import Period
from slotlock.domain.shared.problems import ProblemCode
from slotlock.domain.shared.tables.table import one_line
from slotlock.domain.shared.text import normalize_line, strip_blanks
from slotlock.domain.shared.unchanged import UNCHANGED, Unchanged
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.slot_files.problems import CellProblem, SlotFileProblem
from slotlock.domain.slot_files.times import (
    SEPARATORS,
    DateOrder,
    PeriodCell,
    WeeklyCell,
    read_date,
    read_dates,
    read_meetings,
    read_period,
    read_time,
    read_weekly,
    time_cells,
    write_times,
)

_MAX_DIGITS = 6
_LINE_END = re.compile("\r\n?|\u2028")
# A name may have a separator of Chinese; what comes before a number is one.
_GROUP_LIMIT = re.compile(
    r"\s*(\S.*?)\s*[=\uff1d]\s*([0-9]{1,6})\s*(?:[;,\r\n\u2028\u3001\uff0c\uff1b]+|$)", re.DOTALL
)
# Attributes cannot have this name of a column.
EXCEPT, EXCEPT_DAYS = "except", "except_days"
KIND_OF_COLUMN = {
    "teacher": ResourceKind.STAFF,
    "room": ResourceKind.ROOM,
    "resources": ResourceKind.OTHER,
}


@value_object
class SlotCells:
    """What a row says of a course; a missing column leaves it as it is."""

    id: str | Unchanged = UNCHANGED
    number: str | Unchanged | None = UNCHANGED
    title: str | Unchanged = UNCHANGED
    description: str | Unchanged | None = UNCHANGED
    first_day: date | Unchanged | None = UNCHANGED
    last_day: date | Unchanged | None = UNCHANGED
    weekly: tuple[WeeklyCell, ...] | Unchanged = UNCHANGED
    start_time: time | Unchanged | None = UNCHANGED
    end_time: time | Unchanged | None = UNCHANGED
    period: PeriodCell | Unchanged = UNCHANGED
    except_days: tuple[date, ...] | Unchanged = UNCHANGED
    meetings: tuple[Meeting, ...] | Unchanged = UNCHANGED
    time_zone: str | Unchanged = UNCHANGED
    location: str | Unchanged | None = UNCHANGED
    teacher: tuple[str, ...] | Unchanged = UNCHANGED
    room: tuple[str, ...] | Unchanged = UNCHANGED
    resources: tuple[str, ...] | Unchanged = UNCHANGED
    places: int | Unchanged = UNCHANGED
    group_limits: tuple[GroupLimit, ...] | Unchanged = UNCHANGED
    waiting_list: int | Unchanged = UNCHANGED

    def changes_to(self, before: "SlotCells") -> dict[str, Any]:
        """Return the values that differ, by the names of the attributes."""
        values = {each.name: getattr(self, each.name) for each in fields(SlotCells)}
        return {
            name: value
            for name, value in values.items()
            if value is not UNCHANGED and value != getattr(before, name)
        }


def _read_line(cell: str) -> str | None:
    return one_line(cell) or None


def _read_text(cell: str) -> str | None:
    """Return a text of several lines, whose line ends depend on the program that saved it."""
    return strip_blanks(_LINE_END.sub("\n", cell)) or None


def _read_names(cell: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, map(normalize_line, SEPARATORS.split(cell)))))


def _read_number(minimum: int, maximum: int, cell: str) -> int | CellProblem:
    whole, _, rest = strip_blanks(cell).replace(",", ".").partition(".")
    is_number = whole.isascii() and whole.isdecimal() and len(whole) <= _MAX_DIGITS
    if is_number and not rest.strip("0"):
        return int(whole)
    problem = ProblemCode.NOT_IN_RANGE.problem(minimum=minimum, maximum=maximum)
    return CellProblem.of(problem)


def _read_waiting_list(cell: str) -> int | CellProblem:
    return _read_number(0, MAX_WAITLIST_CAPACITY, cell) if strip_blanks(cell) else 0


def _read_group_limits(cell: str) -> tuple[GroupLimit, ...] | CellProblem:
    limits, rest = list[GroupLimit](), strip_blanks(cell)
    while rest:
        match = _GROUP_LIMIT.match(rest)
        if match is None:
            return SlotFileProblem.INVALID_LIMITS.problem()
        limits.append(GroupLimit(match[1], int(match[2])))
        rest = rest[match.end() :]
    return normalize_group_limits(tuple(limits))


_Reader = Callable[[str, DateOrder], object]
_READERS: Mapping[str, _Reader] = {
    "id": lambda cell, _: strip_blanks(cell) or UNCHANGED,
    "number": lambda cell, _: _read_line(cell),
    "title": lambda cell, _: one_line(cell),
    "description": lambda cell, _: _read_text(cell),
    "first_day": lambda cell, order: read_date(cell, order) if strip_blanks(cell) else None,
    "last_day": lambda cell, order: read_date(cell, order) if strip_blanks(cell) else None,
    "start_time": lambda cell, _: read_time(cell) if strip_blanks(cell) else None,
    "end_time": lambda cell, _: read_time(cell) if strip_blanks(cell) else None,
    "except": read_dates,
    "meetings": lambda cell, _: read_meetings(cell),
    "time_zone": lambda cell, _: strip_blanks(cell) or UNCHANGED,
    "location": lambda cell, _: _read_line(cell),
    "teacher": lambda cell, _: _read_names(cell),
    "room": lambda cell, _: _read_names(cell),
    "resources": lambda cell, _: _read_names(cell),
    "places": lambda cell, _: _read_number(1, MAX_CAPACITY, cell),
    "group_limits": lambda cell, _: _read_group_limits(cell),
    "waiting_list": lambda cell, _: _read_waiting_list(cell),
}

_READERS_BY_PERIODS: Mapping[str, Callable[[str, Sequence[Period]], object]] = {
    "weekly": read_weekly,
    "period": read_period,
}


def read_cells(
    cells: Mapping[str, str], order: DateOrder, periods: Sequence[Period] = ()
) -> tuple[SlotCells, Mapping[str, CellProblem]]:
    """Return what a row says by its columns, and the problems of its cells."""
    values, problems = dict[str, Any](), dict[str, CellProblem]()
    for column, cell in cells.items():
        if of_periods := _READERS_BY_PERIODS.get(column):
            value = of_periods(cell, periods)
        else:
            value = _READERS[column](cell, order)
        if isinstance(value, CellProblem):
            problems[column] = value
        else:
            values[EXCEPT_DAYS if column == EXCEPT else column] = value
    return SlotCells(**values), problems


def names_by_column(
    names: Sequence[str], resources: Mapping[str, Resource]
) -> dict[str, tuple[str, ...]]:
    """Return names of resources by the columns of their kinds."""
    columns = {kind: column for column, kind in KIND_OF_COLUMN.items()}
    found = {name: columns.get(resources[name].kind) for name in names if name in resources}
    return {
        column: tuple(name for name in names if (found.get(name) or "resources") == column)
        for column in KIND_OF_COLUMN
    }


def write_cells(
    slot: Slot, description: str | None, resources: Mapping[str, Resource]
) -> dict[str, str]:
    """Return the cells of a course by their columns; `resources` has those of it by name."""
    limits = (f"{each.group}={each.limit}" for each in slot.group_limits)
    return {
        "id": f"slot_{slot.id}",
        "number": slot.number or "",
        "title": slot.title,
        "description": description or "",
        **write_times(time_cells(slot.all_meetings, slot.time_zone)),
        "location": slot.location or "",
        **{
            column: "; ".join(names)
            for column, names in names_by_column(slot.resources, resources).items()
        },
        "places": str(slot.capacity),
        "group_limits": "; ".join(limits),
        "waiting_list": str(slot.waitlist_capacity),
    }
