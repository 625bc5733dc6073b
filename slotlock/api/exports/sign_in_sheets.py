"""Sign-in sheets as PDF: a row for each confirmed booking, with a box to tick and a signature."""

import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib import resources
from typing import BinaryIO

import typst

from slotlock.api.exports.columns import to_local_time
from slotlock.domain.booking.booking import BookingStatus
from slotlock.domain.booking.slot import Slot, SlotStatus
from slotlock.domain.reports.roster import Roster
from slotlock.domain.shared.folding import fold

# Typst lays out all pages in memory: so many rows took 200 MB.
MAX_ROWS = 5_000
# Rows for users who come without a booking, as far as places are free.
MAX_EMPTY_ROWS = 10
# A slot also has a heading, whose space is that of some rows.
HEADING_ROWS = 5
# Typst prints a box for a character that no font has, without a warning. All boxes are the same
# glyph, and so is that of a code point that Unicode leaves to private use.
PRIVATE_USE = "\U0010fffd"
GLYPHS_SOURCE = b"""#set page(width: auto, height: auto)
#for character in sys.inputs.text.codepoints() [#box(character) ]"""
_GLYPH = re.compile(rb'<use xlink:href="#(\w+)"')


class TooManyRowsError(Exception):
    """The sheets would have more than `MAX_ROWS` rows."""


class SignInSheets:
    """Collects the sheets of published slots, and writes them as one PDF.

    The sheet of a single slot is written whatever its status. The same rosters give the same bytes.
    """

    def __init__(self, target: BinaryIO, *, only_published: bool) -> None:
        self._target = target
        self._only_published = only_published
        self._sheets: list[dict[str, object]] = []
        self._row_count = 0
        self._characters: set[str] = set()

    def add(self, roster: Roster) -> None:
        """Add the sheet of the next slot.

        Raises:
            TooManyRowsError: the PDF would be too large.
        """
        if self._only_published and roster.slot.status is not SlotStatus.PUBLISHED:
            return
        confirmed = [row for row in roster.rows if row.status is BookingStatus.CONFIRMED]
        rows = [
            {"name": row.name, "groups": ", ".join(row.groups)}
            for row in sorted(confirmed, key=lambda row: (fold(row.name), row.name))
        ]
        empty_rows = min(max(roster.slot.capacity - len(rows), 0), MAX_EMPTY_ROWS)
        self._row_count += len(rows) + empty_rows + HEADING_ROWS
        if self._row_count > MAX_ROWS:
            raise TooManyRowsError
        heading = _heading(roster.slot)
        for texts in (heading, *rows):
            self._characters.update(*texts.values())
        self._sheets.append({**heading, "rows": rows, "empty_rows": empty_rows})

    def has_missing_glyphs(self) -> bool:
        """Return whether some characters have no glyph in any font, so that boxes are printed."""
        return not _glyphs(PRIVATE_USE).isdisjoint(_glyphs(self._characters))

    def close(self) -> None:
        """Write the PDF."""
        template = resources.files("slotlock.api.exports").joinpath("sign_in_sheet.typ")
        data = json.dumps({"slots": self._sheets})
        pdf = typst.compile(
            template.read_bytes(), sys_inputs={"data": data}, format="pdf", timestamp=0
        )
        self._target.write(pdf)
        self._target.flush()


def _glyphs(characters: Iterable[str]) -> set[bytes]:
    """Return the ids of the glyphs of these characters, each printed by itself."""
    inputs = {"text": "".join(characters)}
    page = typst.compile(GLYPHS_SOURCE, sys_inputs=inputs, format="svg")
    return set(_GLYPH.findall(page))


def _heading(slot: Slot) -> dict[str, str]:
    start, end = to_local_time(slot.start, slot.time_zone), to_local_time(slot.end, slot.time_zone)
    return {
        "title": slot.title,
        "time": f"{_format_span(start, end)} ({slot.time_zone if start.tzinfo != UTC else 'UTC'})",
        "place": slot.place or "",
        "note": "" if slot.status is SlotStatus.PUBLISHED else f"This slot is {slot.status.value}.",
    }


def _format_span(start: datetime, end: datetime) -> str:
    end_format = "%H:%M" if start.date() == end.date() else "%Y-%m-%d %H:%M"
    return f"{start:%A, %Y-%m-%d %H:%M} to {end:{end_format}}"
