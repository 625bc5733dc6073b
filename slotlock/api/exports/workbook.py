"""Rosters as an Excel workbook: a summary, a sheet for each slot, and one of the waiting lists.

Other workbooks have the places of a campaign by user, by group or by resource.

XlsxWriter's `constant_memory` keeps one row in memory and one open file for each sheet, so the
process raises its limit of open files. With more slots than sheets, all bookings share one sheet,
and continue in another when it has as many rows as Excel allows.
"""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import datetime
from io import BytesIO
from itertools import chain
from operator import itemgetter
from typing import BinaryIO

from xlsxwriter import Workbook
from xlsxwriter.format import Format
from xlsxwriter.worksheet import Worksheet

from slotlock.api.exports.columns import (
    ALL_COLUMNS,
    BOOKING_COLUMNS,
    COUNT_COLUMNS,
    FAMILY_COLUMNS,
    LAST_COLUMNS,
    PLACE_COLUMNS,
    SHEET,
    SLOT_COLUMNS,
    STATUS,
    USER_COLUMNS,
    WAITING_COLUMNS,
    Cell,
    Columns,
    RosterColumn,
    Shown,
    columns_for,
    meeting_columns,
    time_title,
)
from slotlock.api.exports.export_builder import ExportJob
from slotlock.api.exports.table_texts import sheet_name, shown_cells, title_of
from slotlock.domain.booking.booking import BookingStatus
from slotlock.domain.booking.slot import Slot, SlotStatus
from slotlock.domain.reports.export_formats import ExportGrouping, ExportLanguage
from slotlock.domain.reports.roster import PlaceCounts, Roster, RosterRow
from slotlock.domain.schedule.schedule_texts import format_short_day
from slotlock.domain.schedule.zones import to_local_time
from slotlock.domain.shared.sorting import sort_key
from slotlock.domain.users.groups import class_of, in_natural_order
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.slots.reads.rosters import CampaignUsers

# Excel allows 31 UTF-16 units in a name, none of these characters, no apostrophe at either end, and
# no two names that differ only in case. XML cannot hold surrogates and non-characters. `_x0041_`
# means A in a workbook, so that its first underscore is escaped, also if it ends such a text.
MAX_SHEET_NAME_LENGTH = 31
_ESCAPE = "_(?=x[0-9A-Fa-f]{4}_)"
_FORBIDDEN = re.compile(f"[\\[\\]:*?/\\\\\x00-\x1f\x7f\ud800-\udfff\ufffe\uffff]|{_ESCAPE}")
# XlsxWriter takes a text from `<r>` to `</r>` for markup.
_ESCAPED = re.compile(f"{_ESCAPE}|^<(?=r>)|[\x00-\x08\x0b-\x1f\ufffe\uffff]")


class SheetNames:
    """Assigns unique sheet names; the same titles in the same order get the same names."""

    def __init__(self, *taken: str) -> None:
        self._taken = set(map(_fold_case, taken))

    def name(self, title: str) -> str:
        """Return an unused name that starts like the title, within the rules of Excel."""
        title = " ".join(_FORBIDDEN.sub(" ", title).split())
        name, number = _shorten(title, ""), 1
        while _fold_case(name) in self._taken:
            number += 1
            name = _shorten(title, f" ({number})")
        self._taken.add(_fold_case(name))
        return name


def _shorten(title: str, suffix: str) -> str:
    while _utf16_length(title) + len(suffix) > MAX_SHEET_NAME_LENGTH:
        title = title[:-1]
    return (title.strip(" '") or "Sheet") + suffix


def _utf16_length(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def _fold_case(name: str) -> str:
    return unicodedata.normalize("NFKC", name).casefold()


MAX_SHEETS = 1_000
MAX_GROUPS = 200
TEXT_WIDTH = 16
MAX_ROWS = 1_048_576
FIRST_YEAR = 1901  # Excel takes 1900 for a leap year

SUMMARY_SHEET: Columns = (*SLOT_COLUMNS, STATUS, *COUNT_COLUMNS, SHEET, *LAST_COLUMNS)


# The cells of a row, after what it is sorted by.
_SortedCells = tuple[tuple[object, ...], list[Cell]]


class _RosterBook:
    """A workbook in a language; the same rosters give the same bytes."""

    has_missing_glyphs = False  # its reader has the fonts

    def __init__(self, target: BinaryIO, temp_dir: str, job: ExportJob) -> None:
        self._workbook = Workbook(target, {"constant_memory": True, "tmpdir": temp_dir})
        self._workbook.use_zip64()
        self._header_format = self._workbook.add_format({"bold": True, "bottom": 1})
        # Excel shows its format 22 as the computer of the reader writes dates.
        time_format = 22 if job.language else "yyyy-mm-dd hh:mm:ss"
        self._time_format = self._workbook.add_format({"num_format": time_format})
        self._language = job.language
        # Excel reserves "History".
        self._sheet_names = SheetNames(sheet_name("Summary", job.language), "History")
        self._changed_at: datetime | None = None

    def _cells(self, columns: Sequence[RosterColumn[Shown]], shown: Shown, zone: str) -> list[Cell]:
        return shown_cells(columns, shown, zone, self._language)

    def _add_named_sheet(self, english: str, columns: Columns) -> "_Sheet":
        return self._add_sheet(self._sheet_names.name(sheet_name(english, self._language)), columns)

    def _add_sheet(self, name: str, columns: Columns) -> "_Sheet":
        worksheet = self._workbook.add_worksheet(name, _EscapedWorksheet)
        sheet = _Sheet(worksheet, columns, self._header_format, self._time_format)
        sheet.write([title_of(column, self._language) for column in columns], bold=True)
        return sheet

    def _add_change(self, roster: Roster) -> None:
        self._changed_at = max(self._changed_at or roster.changed_at, roster.changed_at)

    def _close(self) -> None:
        # The creation time is that of the latest change, so that equal rosters give equal files.
        created = (self._changed_at or datetime(2000, 1, 1)).replace(microsecond=0, tzinfo=None)  # noqa: DTZ001
        self._workbook.set_properties({"title": "Roster", "created": created})
        self._workbook.close()


class RosterWorkbook(_RosterBook):
    """Writes the rosters of slots to a workbook."""

    def __init__(
        self, target: BinaryIO, temp_dir: str, job: ExportJob, *, sheet_per_slot: bool
    ) -> None:
        super().__init__(target, temp_dir, job)
        language, for_leader = job.language, job.for_leader
        self._sheet_per_slot = sheet_per_slot
        self._booking_columns = columns_for(
            (*BOOKING_COLUMNS, *LAST_COLUMNS, *FAMILY_COLUMNS), for_leader=for_leader
        )
        self._waiting_columns = columns_for(
            (*WAITING_COLUMNS, *LAST_COLUMNS, *FAMILY_COLUMNS), for_leader=for_leader
        )
        # For readers: programs know the other sheets.
        self._all_sheet = self._add_named_sheet("All", ALL_COLUMNS) if language else None
        self._all_rows: list[_SortedCells] = []
        self._summary_sheet = self._add_sheet(sheet_name("Summary", language), SUMMARY_SHEET)
        self._waiting_sheet = self._add_waiting_sheet()
        self._booking_sheet: _Sheet | None = None
        self._totals = PlaceCounts()

    def add(self, roster: Roster) -> None:
        """Write the bookings and the waiting list of the next slot, and its row in the summary."""
        meetings = meeting_columns(roster.slot, self._language) if self._sheet_per_slot else ()
        if self._sheet_per_slot:
            self._booking_sheet = self._add_sheet(
                self._sheet_names.name(_preferred_sheet_name(roster.slot, self._language)),
                (*SLOT_COLUMNS, *self._booking_columns, *meetings),
            )
        slot, zone = roster.slot, roster.slot.time_zone
        first = self._cells(SLOT_COLUMNS, slot, zone)
        for row in roster.rows:
            cells = self._cells((*self._booking_columns, *meetings), row, zone)
            self._current_sheet().write([*first, *cells])
            if self._all_sheet and row.status is BookingStatus.CONFIRMED:
                self._all_rows.append(self._sorted(row, zone))
        for row in roster.waiting_rows:
            cells = self._cells(self._waiting_columns, row, zone)
            self._current_waiting_sheet().write([*first, *cells])
        sheet, counts = self._current_sheet(), self._cells(COUNT_COLUMNS, roster.counts, zone)
        status = self._cells([STATUS], slot, zone)
        last = self._cells(LAST_COLUMNS, RosterRow(slot, periods=roster.periods), zone)
        self._summary_sheet.write([*first, *status, *counts, sheet.name, *last])
        if self._sheet_per_slot:
            sheet.finish()
        self._totals += roster.counts_toward_campaign
        self._add_change(roster)

    def close(self) -> None:
        """Write the totals and finish the file."""
        if self._all_sheet:
            # A larger school finds the rest in the sheets of the slots.
            for _, cells in sorted(self._all_rows, key=itemgetter(0))[: MAX_ROWS - 1]:
                self._all_sheet.write(cells)
            self._all_sheet.finish()
        self._summary_sheet.finish()
        counts = self._cells(COUNT_COLUMNS, self._totals, "UTC")
        total = sheet_name("Total", self._language)
        self._summary_sheet.write([total, *[None] * len(SLOT_COLUMNS), *counts], bold=True)
        if self._booking_sheet is not None and not self._sheet_per_slot:
            self._booking_sheet.finish()
        self._waiting_sheet.finish()
        self._close()

    def _sorted(self, row: RosterRow, zone: str) -> "_SortedCells":
        """Return a row of the list of all, by class, name and time."""
        of_class = in_natural_order(class_of(row.groups))
        key = (of_class, sort_key(row.list_name), row.slot.start)
        return key, self._cells(ALL_COLUMNS, row, zone)

    def _current_sheet(self) -> "_Sheet":
        if self._booking_sheet is None or self._booking_sheet.is_full:
            if self._booking_sheet is not None:
                self._booking_sheet.finish()
            columns = (*SLOT_COLUMNS, *self._booking_columns)
            self._booking_sheet = self._add_named_sheet("Bookings", columns)
        return self._booking_sheet

    def _current_waiting_sheet(self) -> "_Sheet":
        if self._waiting_sheet.is_full:
            self._waiting_sheet.finish()
            self._waiting_sheet = self._add_waiting_sheet()
        return self._waiting_sheet

    def _add_waiting_sheet(self) -> "_Sheet":
        return self._add_named_sheet("Waiting lists", (*SLOT_COLUMNS, *self._waiting_columns))


class GroupedWorkbook(_RosterBook):
    """Collects published slots by user, by group or by resource, and writes the sheets at the end.

    By group, there is a sheet for each that the campaign names, or else for each of its users. What
    belongs to none of the first `max_sheets` is on the last one.
    """

    def __init__(self, target: BinaryIO, temp_dir: str, job: ExportJob, max_sheets: int) -> None:
        super().__init__(target, temp_dir, job)
        self._grouping = job.grouping
        self._max_sheets = max_sheets
        self._columns: Columns = PLACE_COLUMNS
        self._rows = defaultdict[str, list[list[Cell]]](list)
        self._titles = Counter[str]()
        self.slots_by_user = defaultdict[UserId, list[Slot]](list)

    def add(self, roster: Roster) -> None:
        """Add the places of the next slot, or only who has them."""
        slot = roster.slot
        self._add_change(roster)
        if slot.status is not SlotStatus.PUBLISHED:
            return
        if self._grouping is ExportGrouping.RESOURCE:
            cells = [self._cells(PLACE_COLUMNS, row, slot.time_zone) for row in roster.places]
            for name in slot.resources or ("",):
                self._rows[name] += cells
            return
        self._titles[slot.numbered_title] += 1
        for row in roster.rows:
            if row.booking and row.status is BookingStatus.CONFIRMED:
                self.slots_by_user[row.booking.user_id].append(slot)

    def add_users(self, found: CampaignUsers) -> None:
        """Add a row for each user, by class and name, with a column for each of their courses."""
        title = title_of(SLOT_COLUMNS[0], self._language)
        most = max(map(len, self.slots_by_user.values()), default=0)
        numbered = [RosterColumn(f"slot {n}", f"{title} {n}", 28, str) for n in range(1, most + 1)]
        self._columns = (*USER_COLUMNS, *numbered)
        by_group = self._grouping is ExportGrouping.GROUP
        groups = {group for user in found.users.values() for group in user.groups if by_group}
        named = set(filter(found.terms.names_group, groups)) if found.terms else groups
        for user_id, user in sorted(found.users.items(), key=lambda each: each[1].order):
            courses = map(self._course, self.slots_by_user.get(user_id, ()))
            cells = [*self._cells(USER_COLUMNS, user, "UTC"), *courses]
            for name in sorted((named or groups).intersection(user.groups)) or [""]:
                self._rows[name].append(cells)

    def _course(self, slot: Slot) -> str:
        """Return the title; of several slots with the same one, also when and where they are."""
        title, start = slot.numbered_title, to_local_time(slot.start, slot.time_zone)
        if self._titles[title] == 1:
            return title
        return ", ".join(filter(None, (title, time_title(start, self._language), slot.place)))

    def close(self) -> None:
        """Write the sheets and finish the file."""
        names = sorted(filter(None, self._rows), key=in_natural_order)[: self._max_sheets - 1]
        sheets = [(name, self._rows.pop(name)) for name in names]
        if self._rows or not sheets:
            last = sheet_name("Others" if sheets else "All", self._language)
            sheets.append((last, [*chain(*self._rows.values())]))
        for name, rows in sheets:
            sheet = self._add_sheet(self._sheet_names.name(name), self._columns)
            for cells in rows[: MAX_ROWS - 1]:
                sheet.write(cells)
            sheet.finish()
        self._close()


class _EscapedWorksheet(Worksheet):  # type: ignore[misc]  # XlsxWriter has no types
    """A sheet with texts that are read back exactly.

    XlsxWriter escapes `_x0041_x0042_` once, because the two patterns share an underscore.
    """

    @staticmethod
    def _escape_control_characters(data: str) -> str:
        return _ESCAPED.sub(lambda match: f"_x{ord(match[0]):04X}_", data)


def text_workbook(rows: Sequence[Sequence[str]]) -> bytes:
    """Return a workbook with a header and cells that are texts, also those filled in later."""
    content = BytesIO()
    with Workbook(content, {"in_memory": True}) as workbook:
        sheet = workbook.add_worksheet(None, _EscapedWorksheet)
        text = workbook.add_format({"num_format": "@"})
        bold = workbook.add_format({"num_format": "@", "bold": True})
        sheet.set_column(0, len(rows[0]) - 1, TEXT_WIDTH, text)
        sheet.freeze_panes(1, 0)
        for number, row in enumerate(rows):
            for column, cell in enumerate(row):
                if cell:
                    sheet.write_string(number, column, cell, text if number else bold)
    return content.getvalue()


class _Sheet:
    """A sheet with a frozen header; rows are written from top to bottom."""

    def __init__(
        self,
        worksheet: Worksheet,
        columns: Columns,
        header_format: Format,
        time_format: Format,
    ) -> None:
        self.name = str(worksheet.get_name())
        self._worksheet = worksheet
        self._header_format = header_format
        self._time_format = time_format
        self._column_count = len(columns)
        self._row_count = 0
        worksheet.freeze_panes(1, 0)
        for number, column in enumerate(columns):
            worksheet.set_column(number, number, column.width)

    @property
    def is_full(self) -> bool:
        """Whether the sheet has as many rows as Excel allows."""
        return self._row_count == MAX_ROWS

    def write(self, cells: Sequence[Cell], *, bold: bool = False) -> None:
        """Write the next row with typed cells: text, numbers and dates."""
        row, self._row_count = self._row_count, self._row_count + 1
        style = self._header_format if bold else None
        for column, cell in enumerate(cells):
            match cell:
                case None | "":
                    continue
                case int():
                    self._worksheet.write_number(row, column, cell, style)
                case datetime() if cell.year >= FIRST_YEAR:
                    # Excel has no time zones: the cell holds local time, another column the zone.
                    local = cell.replace(tzinfo=None)
                    self._worksheet.write_datetime(row, column, local, self._time_format)
                case datetime():
                    self._worksheet.write_string(row, column, cell.isoformat(), style)
                case _:
                    self._worksheet.write_string(row, column, cell, style)

    def finish(self) -> None:
        """Add filters to the columns."""
        self._worksheet.autofilter(0, 0, max(self._row_count - 1, 0), self._column_count - 1)


def _preferred_sheet_name(slot: Slot, language: ExportLanguage | None) -> str:
    start = to_local_time(slot.start, slot.time_zone)
    day = format_short_day(start, language) if language else f"{start:%m-%d}"
    return f"{day} {start:%H.%M} {slot.title}"
