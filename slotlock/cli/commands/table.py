"""Prints what a command found: as a table with a head, as lines of one thing, or as JSON."""

import json
import unicodedata
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from slotlock.api.telemetry.logs import printable
from slotlock.domain.shared.text import format_in_zone
from slotlock.graphql.times import format_time

Row = tuple[Any, ...]
NOTHING = "-"


def format_rows(columns: Sequence[str], found: Row | Sequence[Row], *, as_json: bool) -> str:
    """Return a list of rows, or a single one, as a text. Each row has a value for each column."""
    rows = [found] if isinstance(found, tuple) else found
    if as_json:
        values = [_to_json(columns, row) for row in rows]
        return json.dumps(values[0] if isinstance(found, tuple) else values, indent=2)
    if isinstance(found, tuple):
        lines = zip((f"{column}:" for column in columns), map(_to_cell, found), strict=True)
        return _align(lines)
    return _align(
        [tuple(column.upper() for column in columns), *(map(_to_cell, row) for row in rows)]
    )


def _to_json(columns: Sequence[str], row: Row) -> dict[str, Any]:
    names = [first + "".join(map(str.capitalize, more)) for first, *more in map(str.split, columns)]
    values = [format_time(value) if isinstance(value, datetime) else value for value in row]
    return dict(zip(names, values, strict=True))


def _to_cell(value: Any) -> str:
    match value:
        case None | "" | () | []:
            return NOTHING
        case bool():
            return "yes" if value else "no"
        case datetime():
            return format_in_zone(value)
        case list() | tuple():
            return ", ".join(map(_to_cell, value))
    return printable(str(value))


def _align(rows: Iterable[Iterable[str]]) -> str:
    cells = [tuple(row) for row in rows]
    widths = [max(map(_width, column)) for column in zip(*cells, strict=True)]
    return "\n".join(
        "  ".join(
            cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True)
        ).rstrip()
        for row in cells
    )


def _width(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    return sum(
        0 if unicodedata.combining(each) else 1 + (unicodedata.east_asian_width(each) in "WF")
        for each in text
    )
