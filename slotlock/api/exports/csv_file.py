"""Rosters as CSV."""

from datetime import datetime
from typing import BinaryIO

from slotlock.api.endpoints.csv_lines import csv_header, csv_line
from slotlock.api.exports.columns import (
    BOOKING_COLUMNS,
    RESOURCES_COLUMN,
    Cell,
    booking_cells,
    resources_cell,
    slot_cells,
    waiting_booking_cells,
)
from slotlock.domain.reports.exports import CsvSeparator
from slotlock.domain.reports.roster import Roster


class CsvFile:
    """Writes a line for each booking and each user who waits.

    Times are RFC 3339 with the offset of the slot's zone.
    """

    def __init__(self, target: BinaryIO, separator: CsvSeparator) -> None:
        self._target = target
        self._separator = separator
        names = [name for name, _, _ in BOOKING_COLUMNS]
        header = csv_header([*names, "waiting_position", RESOURCES_COLUMN[0]], separator)
        target.write(header.encode())

    def add(self, roster: Roster) -> None:
        """Write the bookings and the waiting list of the next slot."""
        zone = roster.slot.time_zone
        slot = [_to_text(cell) for cell in slot_cells(roster.slot)]
        resources = resources_cell(roster.slot)
        for row in roster.rows:
            self._write([*slot, *map(_to_text, booking_cells(row, zone)), "", resources])
        for waiting in roster.waiting_rows:
            cells = map(_to_text, waiting_booking_cells(waiting, zone))
            self._write([*slot, *cells, resources])

    def close(self) -> None:
        """Flush the output."""
        self._target.flush()

    def _write(self, cells: list[str]) -> None:
        self._target.write(csv_line(cells, self._separator).encode())


def _to_text(cell: Cell) -> str:
    if cell is None:
        return ""
    return cell.isoformat(timespec="seconds") if isinstance(cell, datetime) else str(cell)
