"""Read a table as spreadsheets and programs of schools write it, or find why it is none.

It is CSV (RFC 4180) with a header, in UTF-8, in UTF-16 with a byte order mark, in Windows-1252 or
in GB 18030.
"""

import csv
import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from io import StringIO

from slotlock.domain.shared.formulas import unescape_formula
from slotlock.domain.shared.tables.file_problems import ProblemCollector, TableProblem
from slotlock.domain.shared.tables.headers import (
    ColumnsOf,
    find_separator,
    has_chinese_column,
)
from slotlock.domain.shared.text import normalize_line, strip_blanks

MAX_FILE_BYTES = 5_000_000
MAX_HEADER_LENGTH = 10_000
MAX_SHOWN_COLUMN_LENGTH, MAX_SHOWN_COLUMNS = 40, 100
# No Western name has three accented letters in a row, a capital inside of a word that Mac OS Roman
# writes for a letter with an accent, or a pair of letter and sign that is one letter in UTF-8.
_NOT_WINDOWS_1252 = re.compile(
    rb"[\x80-\xff]{3}|[\xc2-\xdf][\x80-\xbf]|[a-z][\x8a\x8e\x9f]|[A-Z][\x8a\x8e\x9f][a-z]"
)
# A line end in a cell of a workbook, whose rows are the lines of the file.
_LINE_END_IN_CELL = "\u2028"
_FIRST_LINE = re.compile(r"[\r\n]*([^\r\n]*)")


@dataclass(frozen=True, slots=True)
class Table:
    """A header, and the records that have its number of cells, each with its line number.

    The column of an unknown header is blank. The records are read only once, and their problems are
    found meanwhile.
    """

    line: int
    headers: tuple[str, ...]
    columns: tuple[str, ...]
    records: Iterator[tuple[int, Sequence[str]]]

    @property
    def ignored_columns(self) -> tuple[str, ...]:
        """The headers of the columns that are unknown, as far as they are shown."""
        named = zip(self.headers, self.columns, strict=True)
        unknown = [header[:MAX_SHOWN_COLUMN_LENGTH] for header, column in named if not column]
        return tuple(filter(None, unknown[:MAX_SHOWN_COLUMNS]))


def read_table(
    body: bytes,
    columns_of: ColumnsOf,
    problems: ProblemCollector,
    repeatable: Collection[str] = (),
) -> Table | None:
    """Return the table of a file; None, and a problem, if its encoding is not recognized.

    `repeatable` are the columns for which several headers may stand.
    """
    text = _decode(body, columns_of, problems)
    if text is None:
        return None
    records = _records(text, find_separator(_header_of(text), columns_of), problems)
    line, cells = next(records, (1, []))
    headers = list(map(one_line, cells))
    while headers and not headers[-1]:
        headers.pop()
    columns = columns_of(headers)
    seen = set[str]()
    for header, column in zip(headers, columns, strict=True):
        if column is None:
            continue
        shown = header.casefold()[:MAX_SHOWN_COLUMN_LENGTH]
        for each in (shown, column):
            problems.name_column(each, header[:MAX_SHOWN_COLUMN_LENGTH])
        if column in seen and column not in repeatable:
            message = "This column appears twice."
            problems.add(line, shown, message, TableProblem.REPEATED_COLUMN)
        seen.add(column)
    named = tuple(column or "" for column in columns)
    return Table(line, tuple(headers), named, _whole_records(records, len(named), problems))


def one_line(cell: str) -> str:
    """Return the name or title in a cell, which a workbook may have broken into lines."""
    return normalize_line(cell.replace(_LINE_END_IN_CELL, " "))


def _whole_records(
    records: Iterator[tuple[int, list[str]]], expected: int, problems: ProblemCollector
) -> Iterator[tuple[int, Sequence[str]]]:
    """Yield the records that have as many cells as the header, without blank ones after them."""
    for line, cells in records:
        if len(cells) < expected or not _is_blank_record(cells[expected:]):
            message = (
                f"This line has {len(cells)} cells, but the header has {expected}. "
                "Are quotation marks missing?"
            )
            code = TableProblem.WRONG_CELL_COUNT
            problems.add(line, None, message, code, cells=len(cells), expected=expected)
        else:
            yield line, cells[:expected]


def _decode(body: bytes, columns_of: ColumnsOf, problems: ProblemCollector) -> str | None:
    """Return the text of a file; None, and a problem, if its encoding is not recognized."""
    is_utf_16 = body.startswith((BOM_UTF16_LE, BOM_UTF16_BE))
    try:
        return body.decode("utf-16" if is_utf_16 else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = 1 if is_utf_16 else body.count(b"\n", 0, error.start) + 1
    encoding = "gb18030" if _NOT_WINDOWS_1252.search(body) else "cp1252"
    text = body.decode(encoding, errors="replace")
    # Other encodings decode as GB 18030, too, but into a header without Chinese columns.
    is_right = encoding == "cp1252" or has_chinese_column(_header_of(text), columns_of)
    if is_right and "\ufffd" not in text and not is_utf_16:
        return text
    message = "This file is neither UTF-8 nor Windows-1252. Please save it as 'CSV UTF-8'."
    problems.add(line, None, message, TableProblem.UNKNOWN_ENCODING)
    return None


def _records(
    text: str, separator: str, problems: ProblemCollector
) -> Iterator[tuple[int, list[str]]]:
    """Yield each record that is not blank, with its first line number."""
    reader = csv.reader(StringIO(text, newline=""), delimiter=separator, strict=True)
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            # The csv module raises only for quotes and for cells over 128 KiB; it can go on after.
            is_cell_too_long = "limit" in str(error)
            if is_cell_too_long:
                problems.add(line, None, "A cell is too long.", TableProblem.CELL_TOO_LONG)
            else:
                message = "A quotation mark is not closed."
                problems.add(line, None, message, TableProblem.OPEN_QUOTE)
            continue
        if not _is_blank_record(cells):
            yield line, [unescape_formula(cell, separator) for cell in cells]


def _header_of(text: str) -> str:
    header = _FIRST_LINE.match(text)
    return header[1][:MAX_HEADER_LENGTH] if header else ""


def _is_blank_record(cells: Sequence[str]) -> bool:
    return not any(map(strip_blanks, cells))
