"""Rosters as CSV."""

from datetime import datetime
from typing import BinaryIO

from slotlock.api.endpoints.csv_files import csv_header, csv_line
from slotlock.api.exports.columns import (
    BOOKING_COLUMNS,
    FAMILY_COLUMNS,
    LAST_COLUMNS,
    POSITION,
    SLOT_COLUMNS,
    Cell,
    Columns,
    columns_for,
    meeting_columns,
)
from slotlock.api.exports.export_builder import ExportJob
from slotlock.api.exports.table_texts import shown_cells, title_of
from slotlock.domain.reports.roster import Roster

ROW_COLUMNS = (*BOOKING_COLUMNS, POSITION, *LAST_COLUMNS, *FAMILY_COLUMNS)
FILE: Columns = (*SLOT_COLUMNS, *ROW_COLUMNS)


class CsvFile:
    """Writes a line for each booking and each user who waits.

    Times are RFC 3339 with the offset of the slot's zone. The file of a single slot with several
    meetings has a column for each of them. Without a language, the header has the names of the
    columns.
    """

    has_missing_glyphs = False  # its reader has the fonts

    def __init__(self, target: BinaryIO, job: ExportJob) -> None:
        self._target = target
        self._language = job.language
        self._separator = job.separator
        self._is_campaign = job.kind == "campaign"
        self._row_columns = columns_for(ROW_COLUMNS, for_leader=job.for_leader)
        if self._is_campaign:
            self._write_header(FILE)

    def add(self, roster: Roster) -> None:
        """Write the bookings and the waiting list of the next slot."""
        meetings = () if self._is_campaign else meeting_columns(roster.slot, self._language)
        if not self._is_campaign:
            self._write_header((*SLOT_COLUMNS, *self._row_columns, *meetings))
        slot, zone = roster.slot, roster.slot.time_zone
        first = shown_cells(SLOT_COLUMNS, slot, zone, self._language)
        for row in (*roster.rows, *roster.waiting_rows):
            columns = (*self._row_columns, *meetings)
            cells = [*first, *shown_cells(columns, row, zone, self._language)]
            self._target.write(csv_line([*map(_to_text, cells)], self._separator).encode())

    def _write_header(self, columns: Columns) -> None:
        named = self._language is not None
        names = [title_of(each, self._language) if named else each.name for each in columns]
        self._target.write(csv_header(names, self._separator).encode())

    def close(self) -> None:
        """Flush the output."""
        self._target.flush()


def _to_text(cell: Cell) -> str:
    if cell is None:
        return ""
    return cell.isoformat(timespec="seconds") if isinstance(cell, datetime) else str(cell)
