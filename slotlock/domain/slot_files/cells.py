"""The cells of one course: read with the rules of its columns, and written so as to be read back.

A row of a file and a stored course are compared as what is read of both, so that other spellings of
a date or a time change nothing. A missing column leaves a course as it is.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from slotlock.domain.booking.slot import MAX_CAPACITY, MAX_WAITLIST_CAPACITY, Slot
from slotlock.domain.campaigns.campaign import normalize_group_limits
from slotlock.domain.campaigns.terms import GroupLimit
from slotlock.domain.resources.resource import Resource, ResourceKind
from slotlock.domain.schedule.periods import Period
from slotlock.domain.shared.problems import Problem, ProblemCode
from slotlock.domain.shared.tables.table import one_line
from slotlock.domain.shared.text import normalize_line, strip_blanks
from slotlock.domain.shared.unchanged import UNCHANGED
from slotlock.domain.slot_files.problems import SlotFileProblem
from slotlock.domain.slot_files.times import (
    SEPARATORS,
    DateOrder,
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
KIND_OF_COLUMN = {
    "teacher": ResourceKind.STAFF,
    "room": ResourceKind.ROOM,
    "resources": ResourceKind.OTHER,
}


def _read_line(cell: str) -> str | None:
    return one_line(cell) or None


def _read_text(cell: str) -> str | None:
    """Return a text of several lines, whose line ends depend on the program that saved it."""
    return strip_blanks(_LINE_END.sub("\n", cell)) or None


def _read_names(cell: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, map(normalize_line, SEPARATORS.split(cell)))))


def _read_number(minimum: int, maximum: int, cell: str) -> int | Problem:
    whole, _, rest = strip_blanks(cell).replace(",", ".").partition(".")
    is_number = whole.isascii() and whole.isdecimal() and len(whole) <= _MAX_DIGITS
    if is_number and not rest.strip("0"):
        return int(whole)
    return ProblemCode.NOT_IN_RANGE.problem(minimum=minimum, maximum=maximum)


def _read_waiting_list(cell: str) -> int | Problem:
    return _read_number(0, MAX_WAITLIST_CAPACITY, cell) if strip_blanks(cell) else 0


def _read_group_limits(cell: str) -> tuple[GroupLimit, ...] | Problem:
    limits, rest = list[GroupLimit](), strip_blanks(cell)
    while rest:
        match = _GROUP_LIMIT.match(rest)
        if match is None:
            return SlotFileProblem.INVALID_LIMITS.problem()
        limits.append(GroupLimit(match[1], int(match[2])))
        rest = rest[match.end() :]
    return normalize_group_limits(tuple(limits))


# Return what a cell says: UNCHANGED if it leaves the course as it is, or its problem.
_READERS: Mapping[str, Callable[[str, DateOrder, Sequence[Period]], object]] = {
    "id": lambda cell, _, __: strip_blanks(cell) or UNCHANGED,
    "number": lambda cell, _, __: _read_line(cell),
    "title": lambda cell, _, __: one_line(cell),
    "description": lambda cell, _, __: _read_text(cell),
    "first_day": lambda cell, order, _: read_date(cell, order) if strip_blanks(cell) else None,
    "last_day": lambda cell, order, _: read_date(cell, order) if strip_blanks(cell) else None,
    "weekly": lambda cell, _, periods: read_weekly(cell, periods),
    "start_time": lambda cell, _, __: read_time(cell) if strip_blanks(cell) else None,
    "end_time": lambda cell, _, __: read_time(cell) if strip_blanks(cell) else None,
    "period": lambda cell, _, periods: read_period(cell, periods),
    "except": lambda cell, order, _: read_dates(cell, order),
    "meetings": lambda cell, _, __: read_meetings(cell),
    "time_zone": lambda cell, _, __: strip_blanks(cell) or UNCHANGED,
    "location": lambda cell, _, __: _read_line(cell),
    "teacher": lambda cell, _, __: _read_names(cell),
    "room": lambda cell, _, __: _read_names(cell),
    "resources": lambda cell, _, __: _read_names(cell),
    "places": lambda cell, _, __: _read_number(1, MAX_CAPACITY, cell),
    "group_limits": lambda cell, _, __: _read_group_limits(cell),
    "waiting_list": lambda cell, _, __: _read_waiting_list(cell),
}


def read_cells(
    cells: Mapping[str, str], order: DateOrder, periods: Sequence[Period] = ()
) -> tuple[Mapping[str, Any], Mapping[str, Problem]]:
    """Return what a row says by its columns, and the problems of its cells."""
    found = {column: _READERS[column](cell, order, periods) for column, cell in cells.items()}
    problems = {column: each for column, each in found.items() if isinstance(each, Problem)}
    values = {column: each for column, each in found.items() if each is not UNCHANGED}
    return values, problems


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
