"""A roster as an Excel workbook: a summary, and a sheet for each slot.

XlsxWriter's `constant_memory` keeps one row in memory, and an open file for each sheet. So the
process that builds raises its limit of open files, and where there are more slots than sheets can
be had, or than anybody leafs through, all bookings share one sheet (and go on in the next when
Excel's rows are at an end).
"""

from collections.abc import Sequence
from datetime import datetime
from typing import BinaryIO

from xlsxwriter import Workbook
from xlsxwriter.format import Format
from xlsxwriter.worksheet import Worksheet

from slotlock.api.exports.cells import (
    COLUMNS,
    SUMMARY,
    Cell,
    booking_cells,
    local,
    slot_cells,
    summary_cells,
)
from slotlock.domain.rosters import Counts, Roster
from slotlock.domain.sheet_names import SheetNames

MOST_SHEETS = 1_000
MOST_ROWS = 1_048_576
FIRST_YEAR = 1901  # Excel counts days from 1900, in which it has one too many

TITLES = [(title, width) for _, title, width in COLUMNS]


class RosterWorkbook:
    """Rosters in a workbook, written as they come; nothing in it is taken from the clock."""

    def __init__(self, target: BinaryIO, scratch: str, *, sheet_a_slot: bool) -> None:
        self._book = Workbook(target, {"constant_memory": True, "tmpdir": scratch})
        self._book.use_zip64()
        self._head = self._book.add_format({"bold": True, "bottom": 1})
        self._times = self._book.add_format({"num_format": "yyyy-mm-dd hh:mm:ss"})
        self._names = SheetNames("Summary", "History")  # Excel keeps the last for itself
        self._sheet_a_slot = sheet_a_slot
        self._summary = self._sheet("Summary", SUMMARY)
        self._bookings: _Sheet | None = None
        self._total = Counts()
        self._changed_at: datetime | None = None

    def add(self, roster: Roster) -> None:
        """Write the bookings of the next slot, and what they come to."""
        if self._sheet_a_slot:
            self._bookings = self._sheet(self._names.name(_wish(roster)), TITLES)
        slot, zone = slot_cells(roster.slot), roster.slot.time_zone
        for row in roster.rows:
            self._sheet_with_room().write((*slot, *booking_cells(row, zone)))
        sheet = self._sheet_with_room()
        self._summary.write(summary_cells(roster, sheet.name))
        if self._sheet_a_slot:
            sheet.finish()
        self._total += roster.in_total
        changed_at = roster.slot.changed_at
        self._changed_at = max(self._changed_at or changed_at, changed_at)

    def close(self) -> None:
        """Write what is left to write."""
        total = self._total
        counts = (total.places, total.confirmed, total.held, total.cancelled, total.waiting)
        self._summary.finish()
        self._summary.write(("Total", None, None, None, None, None, *counts, total.free), bold=True)
        if self._bookings is not None and not self._sheet_a_slot:
            self._bookings.finish()
        # The same rosters are the same file: it is as old as what changed in them last.
        created = (self._changed_at or datetime(2000, 1, 1)).replace(microsecond=0, tzinfo=None)  # noqa: DTZ001
        self._book.set_properties({"title": "Roster", "created": created})
        self._book.close()

    def _sheet_with_room(self) -> "_Sheet":
        if self._bookings is None or self._bookings.full:
            if self._bookings is not None:
                self._bookings.finish()
            self._bookings = self._sheet(self._names.name("Bookings"), TITLES)
        return self._bookings

    def _sheet(self, name: str, titles: Sequence[tuple[str, int]]) -> "_Sheet":
        return _Sheet(self._book.add_worksheet(name), titles, self._head, self._times)


class _Sheet:
    """A sheet with a frozen header, whose rows are written from top to bottom."""

    def __init__(
        self, sheet: Worksheet, titles: Sequence[tuple[str, int]], head: Format, times: Format
    ) -> None:
        self.name = str(sheet.get_name())
        self._sheet = sheet
        self._head = head
        self._times = times
        self._columns = len(titles)
        self._rows = 0
        sheet.freeze_panes(1, 0)
        for column, (_, width) in enumerate(titles):
            sheet.set_column(column, column, width)
        self.write([title for title, _ in titles], bold=True)

    @property
    def full(self) -> bool:
        """Whether Excel has no more rows."""
        return self._rows == MOST_ROWS

    def write(self, cells: Sequence[Cell], *, bold: bool = False) -> None:
        """Write the next row: text as text, numbers as numbers, times as times."""
        row, self._rows = self._rows, self._rows + 1
        style = self._head if bold else None
        for column, cell in enumerate(cells):
            match cell:
                case None | "":
                    continue
                case int():
                    self._sheet.write_number(row, column, cell, style)
                case datetime() if cell.year >= FIRST_YEAR:
                    # Excel knows no zones: it gets what the clock shows, and the zone beside it.
                    shown = cell.replace(tzinfo=None)
                    self._sheet.write_datetime(row, column, shown, self._times)
                case datetime():
                    self._sheet.write_string(row, column, cell.isoformat(), style)
                case _:
                    self._sheet.write_string(row, column, cell, style)

    def finish(self) -> None:
        """Let the rows so far be filtered by their columns."""
        self._sheet.autofilter(0, 0, max(self._rows - 1, 0), self._columns - 1)


def _wish(roster: Roster) -> str:
    slot = roster.slot
    return f"{local(slot.start, slot.time_zone):%m-%d %H.%M} {slot.title}"
