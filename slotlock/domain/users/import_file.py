"""Parse a CSV file of users: either all of its rows, or every problem with its line.

The file is CSV (RFC 4180) in UTF-8 with a header. `email` is required, `name` and `groups` are
optional; `;` separates groups. German Excel separates cells by `;` and writes a byte order mark:
both are accepted.
"""

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from io import StringIO

from slotlock.domain.shared.formulas import unescape_formula
from slotlock.domain.shared.text import normalize_line, strip_blanks
from slotlock.domain.shared.validation import INVALID_EMAIL
from slotlock.domain.shared.values import value_object
from slotlock.domain.users.email_addresses import normalize_email
from slotlock.domain.users.groups import clean_groups, validate_groups
from slotlock.domain.users.user import validate_user_name

# As many as fit into one transaction, which has 5 s in MongoDB.
MAX_IMPORTED_USERS = 10_000
MAX_FILE_BYTES = 5_000_000
MAX_PROBLEMS = 100
EMAIL, NAME, GROUPS = COLUMNS = ("email", "name", "groups")
MAX_SHOWN_COLUMN_LENGTH = 40
_FIRST_LINE = re.compile(r"[\r\n]*([^\r\n]*)")


@value_object
class LineProblem:
    """A problem with a line of the file; `column` is None if it concerns the whole line."""

    line: int
    column: str | None
    message: str


@value_object
class InvalidUserFile:
    """The file is invalid and nothing was imported: the first 100 problems, `count` in total."""

    problems: tuple[LineProblem, ...]
    count: int


@value_object
class UserRow:
    """One user in the file; a field is None if the file has no such column."""

    line: int
    email: str
    name: str | None
    groups: tuple[str, ...] | None


def parse_user_file(body: bytes) -> tuple[UserRow, ...] | InvalidUserFile:
    """Return the rows of the file, or its problems."""
    problems = ProblemCollector()
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        problems.add(line, None, "This file is not UTF-8. Please save it as 'CSV UTF-8'.")
        return problems.to_invalid_file()
    records = _records(text, problems)
    line, header = next(records, (1, []))
    columns = _parse_header(line, header, problems)
    if problems.count:
        return problems.to_invalid_file()
    parser = _RowParser(columns, problems)
    for number, (line, cells) in enumerate(records, 1):
        if number > MAX_IMPORTED_USERS:
            message = f"A file can have at most {MAX_IMPORTED_USERS} users. Please split it."
            problems.add(line, None, message)
            break
        parser.parse(line, cells)
    return problems.to_invalid_file() if problems.count else tuple(parser.rows)


@dataclass(slots=True)
class ProblemCollector:
    """Collects the first problems and counts all of them."""

    problems: list[LineProblem] = field(default_factory=list)
    count: int = 0

    def add(self, line: int, column: str | None, message: str) -> None:
        """Count a problem, and collect it if it is one of the first."""
        self.count += 1
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(LineProblem(line, column, message))

    def to_invalid_file(self) -> InvalidUserFile:
        """Return the problems as the outcome of the file."""
        return InvalidUserFile(tuple(self.problems), self.count)


def _records(text: str, problems: ProblemCollector) -> Iterator[tuple[int, list[str]]]:
    """Yield each record that is not blank, with its first line number."""
    lines = StringIO(text, newline="")
    delimiter = _delimiter(text)
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            # The csv module raises only for quotes and for cells over 128 KiB; it can go on after.
            is_cell_too_long = "limit" in str(error)
            problems.add(
                line,
                None,
                "A cell is too long." if is_cell_too_long else "A quotation mark is not closed.",
            )
            continue
        if not _is_blank_record(cells):
            yield line, [unescape_formula(cell, delimiter) for cell in cells]


def _is_blank_record(cells: Sequence[str]) -> bool:
    return not any(map(strip_blanks, cells))


def _delimiter(text: str) -> str:
    header = _FIRST_LINE.match(text)
    return ";" if header and header[1].count(";") > header[1].count(",") else ","


def _parse_header(line: int, cells: Sequence[str], problems: ProblemCollector) -> list[str]:
    names = [strip_blanks(cell).casefold() for cell in cells]
    while names and not names[-1]:
        names.pop()
    for index, name in enumerate(names):
        shown = name[:MAX_SHOWN_COLUMN_LENGTH]
        if name == "role":
            problems.add(line, shown, "An import cannot set roles. Please remove this column.")
        elif name not in COLUMNS:
            allowed = ", ".join(COLUMNS)
            message = (
                f"This column is unknown. The columns are {allowed}, "
                "separated by commas or semicolons."
            )
            problems.add(line, shown, message)
        elif name in names[:index]:
            problems.add(line, shown, "This column appears twice.")
    if EMAIL not in names:
        problems.add(line, EMAIL, "The first line must name the columns, and this one is missing.")
    return names


class _RowParser:
    """Parses one record after the other and collects the rows and their problems."""

    def __init__(self, columns: list[str], problems: ProblemCollector) -> None:
        self.rows: list[UserRow] = []
        self._columns = columns
        self._problems = problems
        self._line_by_email: dict[str, int] = {}

    def parse(self, line: int, cells: list[str]) -> None:
        expected = len(self._columns)
        if len(cells) < expected or not _is_blank_record(cells[expected:]):
            message = (
                f"This line has {len(cells)} cells, but the header has {expected}. "
                "Are quotation marks missing?"
            )
            self._problems.add(line, None, message)
            return
        by_column = dict(zip(self._columns, cells, strict=False))
        email = self._parse_email(line, by_column[EMAIL])
        name = self._parse_name(line, by_column[NAME]) if NAME in by_column else None
        groups = self._parse_groups(line, by_column[GROUPS]) if GROUPS in by_column else None
        self.rows.append(UserRow(line, email, name, groups))

    def _parse_email(self, line: int, cell: str) -> str:
        email = normalize_email(cell)
        if email is None:
            self._problems.add(line, EMAIL, INVALID_EMAIL)
            return ""
        first_line = self._line_by_email.setdefault(email, line)
        if first_line != line:
            self._problems.add(line, EMAIL, f"Line {first_line} already has this address.")
        return email

    def _parse_name(self, line: int, cell: str) -> str:
        name = normalize_line(cell)
        if problem := validate_user_name(name):
            self._problems.add(line, NAME, problem)
        return name

    def _parse_groups(self, line: int, cell: str) -> tuple[str, ...]:
        groups = clean_groups(cell.split(";"))
        if problem := validate_groups(groups):
            self._problems.add(line, GROUPS, problem)
        return groups
