"""Sign-in sheets as PDF: a row for each confirmed booking, with a box to tick and a signature."""

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import asdict, astuple
from importlib import resources
from importlib.util import find_spec
from itertools import chain
from typing import BinaryIO, cast

import typst

from slotlock.api.exports.columns import (
    PLACE_SHEET_COLUMNS,
    SIGN_IN_COLUMNS,
    TooManyRowsError,
    meeting_columns,
    time_title,
)
from slotlock.api.exports.sheet_texts import DEFAULT_LANGUAGE, SHEET_TEXTS
from slotlock.api.exports.table_texts import sheet_name, shown_cells, title_of
from slotlock.domain.booking.booking import Attendance, BookingStatus
from slotlock.domain.booking.slot import Slot, SlotStatus
from slotlock.domain.reports.export_formats import ExportLanguage
from slotlock.domain.reports.roster import Roster, RosterRow
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.schedule.periods import NamedPeriods
from slotlock.domain.schedule.schedule_texts import (
    SCHEDULE_WORDS,
    format_periods,
    format_schedule,
    zone_text,
)
from slotlock.domain.schedule.zones import to_local_time
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.groups import in_natural_order

# Typst lays out all pages in memory: so many rows take 400 MB.
MAX_ROWS = 5_000
# Rows for users who come without a booking, as far as places are free.
MAX_EMPTY_ROWS = 10
# So many narrow columns fit beside the names on A4 in landscape format.
MAX_MEETING_COLUMNS = 25
MARKS = {Attendance.CHECKED_IN.name: "X", Attendance.NO_SHOW.name: "\u2013"}
# A slot also has a heading, whose space is that of some rows.
HEADING_ROWS = 5
# Packages of fonts, besides those of Typst and of the system.
FONT_PACKAGES = ("manimgx_fonts", "manimgx_fonts_cjk")
# Typst prints a box for a character that no font has, without a warning. All boxes are the same
# glyph, and so is that of a code point that Unicode leaves to private use.
PRIVATE_USE = "\U0010fffd"
GLYPHS_SOURCE = b"""#set page(width: auto, height: auto)
#for character in sys.inputs.text.codepoints() { page(character) }"""
TEXT_SIZES = {"name": 10, "groups": 8, "time": 8, "slot": 8}  # of the columns, in points
HEADING_WIDTH = 13  # in centimeters: it has larger letters
# So many narrow characters fit into a centimeter, and half as many others but Arabic ligatures.
NARROW_PER_CM = 4
_NOT_NARROW = re.compile("[^a-ln-vx-z0-9.,'-]")
_LIGATURES = re.compile("[\ufdf0-\ufdff]")
_GLYPH = re.compile(rb'<use xlink:href="#(\w+)"')


class SignInSheets:
    """Collects the sheets of published slots, and writes them as one PDF.

    The sheet of a single slot is written whatever its status. The same rosters give the same bytes.
    It has missing glyphs if no font of the server has some character, which is printed as a box.
    """

    def __init__(
        self, target: BinaryIO, *, only_published: bool, language: str = DEFAULT_LANGUAGE
    ) -> None:
        self._target = target
        self._only_published = only_published
        self._language = language
        self._sheets: list[_SlotSheet | _ResourceSheet] = []
        self._columns = SIGN_IN_COLUMNS
        self._row_count = 0
        self.has_missing_glyphs = False

    def add(self, roster: Roster) -> None:
        """Add the sheet of the next slot.

        Raises:
            TooManyRowsError: the PDF would be too large.
        """
        if self._only_published and roster.slot.status is not SlotStatus.PUBLISHED:
            return
        for sheet in _SlotSheet.from_roster(roster):
            self._count(len(sheet.rows) + sheet.empty_rows + HEADING_ROWS)
            self._sheets.append(sheet)

    def _count(self, rows: int) -> None:
        self._row_count += rows
        if self._row_count > MAX_ROWS:
            raise TooManyRowsError

    def close(self) -> None:
        """Write the PDF. Sheets with boxes for missing glyphs say so."""
        fonts = typst.Fonts(font_paths=font_folders())
        texts = SHEET_TEXTS[self._language]
        characters = set[str]().union(*(sheet.characters for sheet in self._sheets))
        titles = [title_of(each, ExportLanguage(self._language)) for each in self._columns]
        words = (*astuple(texts), *astuple(SCHEDULE_WORDS[self._language]), *titles)
        printed = set("".join(words))
        missing = without_glyph(characters | printed, fonts)
        if missing & printed:
            self._language, texts = DEFAULT_LANGUAGE, SHEET_TEXTS[DEFAULT_LANGUAGE]
            titles = [each.title for each in self._columns]
        self.has_missing_glyphs = bool(missing & characters)
        template = resources.files("slotlock.api.exports").joinpath("sign_in_sheet.typ")
        data = {
            "language": self._language,
            "texts": asdict(texts),
            "signed": self._columns is SIGN_IN_COLUMNS,
            "columns": [
                {
                    "title": getattr(texts, each.name, title),
                    "width": each.width,
                    "size": TEXT_SIZES[each.name],
                }
                for each, title in zip(self._columns, titles, strict=True)
            ],
            "slots": [sheet.to_json(self._language, missing) for sheet in self._sheets],
        }
        pdf = typst.compile(
            template.read_bytes(),
            sys_inputs={"data": json.dumps(data)},
            format="pdf",
            timestamp=0,
            font_paths=fonts,
        )
        self._target.write(pdf)
        self._target.flush()


class ResourceSheets(SignInSheets):
    """Collects the places of published slots by resource: a sheet for each, with rows by time."""

    def __init__(self, target: BinaryIO, *, language: str = DEFAULT_LANGUAGE) -> None:
        super().__init__(target, only_published=True, language=language)
        self._columns = PLACE_SHEET_COLUMNS
        self._rows = defaultdict[str, list[RosterRow]](list)

    def add(self, roster: Roster) -> None:
        """Add the places of the next slot; those that nobody has confirmed are empty.

        Raises:
            TooManyRowsError: the PDF would be too large.
        """
        slot = roster.slot
        if slot.status is not SlotStatus.PUBLISHED:
            return
        rows = [row for row in roster.rows if row.status is BookingStatus.CONFIRMED]
        rows += [RosterRow(slot)] * (slot.capacity - len(rows))
        for name in slot.resources or ("",):
            self._count(len(rows) if name in self._rows else len(rows) + HEADING_ROWS)
            self._rows[name] += rows

    def close(self) -> None:
        """Write the PDF; the slots without a resource come last."""
        names = sorted(self._rows, key=lambda name: (not name, in_natural_order(name)))
        self._sheets += [_ResourceSheet(name, tuple(self._rows[name])) for name in names]
        super().close()


@value_object
class _SlotSheet:
    """The slot of a sheet, and the cells of its rows.

    A sheet for several meetings has their times, and for each row a mark for each of them.
    """

    slot: Slot
    rows: tuple[tuple[str, ...], ...]
    empty_rows: int
    meetings: tuple[Meeting, ...]
    marks: tuple[tuple[str, ...], ...]
    periods: tuple[NamedPeriods, ...]

    @classmethod
    def from_roster(cls, roster: Roster) -> "Iterator[_SlotSheet]":
        """Yield the sheets of a slot. One has so many meetings at most."""
        confirmed = [row for row in roster.rows if row.status is BookingStatus.CONFIRMED]
        rows = tuple(
            tuple(str(column.value(row)) for column in SIGN_IN_COLUMNS) for row in confirmed
        )
        empty_rows = min(max(roster.slot.capacity - len(rows), 0), MAX_EMPTY_ROWS)
        meetings = meeting_columns(roster.slot)
        for first in range(0, len(meetings) or 1, MAX_MEETING_COLUMNS):
            shown = slice(first, first + MAX_MEETING_COLUMNS)
            columns, times = meetings[shown], roster.slot.meetings[shown]
            marks = tuple(
                tuple(MARKS.get(str(each.value(row)), "") for each in columns) for row in confirmed
            )
            yield cls(roster.slot, rows, empty_rows, times, marks, roster.periods)

    @property
    def characters(self) -> set[str]:
        """The characters of what users wrote."""
        return set(
            "".join(
                (
                    self.slot.numbered_title,
                    self.slot.place or "",
                    *(each.name for each in self.periods),
                    *chain(*self.rows),
                )
            )
        )

    def to_json(self, language: str, missing: Collection[str]) -> dict[str, object]:
        """Return the input of the template for this sheet."""
        slot, texts = self.slot, SHEET_TEXTS[language]
        widths = [column.width for column in SIGN_IN_COLUMNS]
        notes = {SlotStatus.DRAFT: texts.draft, SlotStatus.CANCELLED: texts.cancelled}
        return {
            "title": _to_cell(slot.numbered_title, HEADING_WIDTH),
            "time": " · ".join(filter(None, self._times(language))),
            "place": _to_cell(slot.place or "", HEADING_WIDTH),
            "notes": [
                *([notes[slot.status]] if slot.status in notes else ()),
                *(() if self.characters.isdisjoint(missing) else [texts.missing_font]),
            ],
            "rows": [[*map(_to_cell, row, widths)] for row in self.rows],
            "empty_rows": self.empty_rows,
            "meetings": [
                time_title(to_local_time(each.start, slot.time_zone), ExportLanguage(language))
                for each in self.meetings
            ],
            "marks": self.marks,
        }

    def _times(self, language: str) -> tuple[str, str]:
        schedule = format_schedule(self.slot.all_meetings, self.slot.time_zone, language)
        return schedule, format_periods(self.periods, language)


@value_object
class _ResourceSheet:
    """A resource, and a row for each place; without a name, for slots that have no resource."""

    name: str
    rows: tuple[RosterRow, ...]

    @property
    def characters(self) -> set[str]:
        """The characters of what users wrote."""
        texts = ((row.slot.numbered_title, row.list_name, *row.groups) for row in self.rows)
        return set("".join((self.name, *chain(*texts))))

    def to_json(self, language: str, missing: Collection[str]) -> dict[str, object]:
        """Return the input of the template for this sheet."""
        texts, of_language = SHEET_TEXTS[language], ExportLanguage(language)
        zones = sorted({row.slot.time_zone for row in self.rows})
        note = [] if self.characters.isdisjoint(missing) else [texts.missing_font]
        widths = [column.width for column in PLACE_SHEET_COLUMNS]
        cells = (shown_cells(PLACE_SHEET_COLUMNS, row, "UTC", of_language) for row in self.rows)
        return {
            "title": _to_cell(self.name or sheet_name("Others", of_language), HEADING_WIDTH),
            "time": "".join(zone_text(each, language) for each in zones).strip(),
            "place": "",
            "notes": note,
            "rows": [[*map(_to_cell, map(str, row), widths)] for row in cells],
            "empty_rows": 0,
            "meetings": (),
            "marks": [()] * len(self.rows),
        }


def _to_cell(text: str, width: int) -> str | list[str]:
    """Return a text for the template: in a list if one of its words could be too wide."""
    widest = max(len(word) + len(_NOT_NARROW.findall(word)) for word in text.split(" "))
    return [text] if widest > NARROW_PER_CM * width or _LIGATURES.search(text) else text


def font_folders() -> list[str]:
    """Return the folders of the font packages that are installed."""
    found = filter(None, map(find_spec, FONT_PACKAGES))
    return [folder for each in found for folder in each.submodule_search_locations or ()]


def without_glyph(characters: Collection[str], fonts: typst.Fonts) -> set[str]:
    """Return which of several characters have a glyph in no font; each is printed on a page."""
    tried = [PRIVATE_USE, *characters]
    inputs = {"text": "".join(tried)}
    printed = typst.compile(GLYPHS_SOURCE, sys_inputs=inputs, format="svg", font_paths=fonts)
    pages = cast("list[bytes]", printed)  # the types of Typst name the result for one page
    glyphs = [set(_GLYPH.findall(page)) for page in pages]
    return {each for each, found in zip(tried, glyphs, strict=True) if found & glyphs[0]}
