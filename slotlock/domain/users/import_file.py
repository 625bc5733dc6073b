"""Reading a file of people: its rows, or every reason why it cannot be taken, by line.

A file is CSV (RFC 4180) in UTF-8 with a header. `email` is needed, `name` and `groups` may be left
out; groups are separated by `;`. German Excel separates cells by `;` and writes a byte order mark,
which are taken too.
"""

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from io import StringIO

from slotlock.domain.shared.text import normalize_nfc
from slotlock.domain.users.groups import clean_groups as normalised_groups
from slotlock.domain.users.groups import validate_groups
from slotlock.domain.users.user import validate_user_name

# So many are written within the 5 s that MongoDB is told to give a transaction.
MAX_IMPORTED_USERS = 10_000
MAX_FILE_BYTES = 5_000_000
MAX_PROBLEMS = 100
EMAIL, NAME, GROUPS = COLUMNS = ("email", "name", "groups")
MAX_SHOWN_COLUMN_LENGTH = 40
_FIRST_LINE = re.compile(r"[\r\n]*([^\r\n]*)")

EmailNormalizer = Callable[[str], str | None]


@dataclass(frozen=True, slots=True)
class LineProblem:
    """What is wrong in a line of a file; `column` is None when it is the whole line."""

    line: int
    column: str | None
    message: str


@dataclass(frozen=True, slots=True)
class InvalidUserFile:
    """The file cannot be taken, and nothing of it was: the first 100 problems of `count`."""

    problems: tuple[LineProblem, ...]
    count: int


@dataclass(frozen=True, slots=True)
class UserRow:
    """A person as a file describes them; None is what the file has no column for."""

    line: int
    email: str
    name: str | None
    groups: tuple[str, ...] | None


def parse_user_file(
    body: bytes, normalize_email: EmailNormalizer
) -> tuple[UserRow, ...] | InvalidUserFile:
    """The rows of a file, or what is wrong with it. `address_of` normalises an address."""
    problems = _ProblemCollector()
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        problems.add(line, None, "This is not UTF-8. Save the file as 'CSV UTF-8'.")
        return problems.to_invalid_file()
    records = _records(text, problems)
    line, names = next(records, (1, []))
    columns = _parse_header(line, names, problems)
    if problems.count:
        return problems.to_invalid_file()
    reading = _RowParser(columns, normalize_email, problems)
    for number, (line, cells) in enumerate(records, 1):
        if number > MAX_IMPORTED_USERS:
            problems.add(
                line, None, f"At most {MAX_IMPORTED_USERS} people at once. Split the file."
            )
            break
        reading.parse(line, cells)
    return problems.to_invalid_file() if problems.count else tuple(reading.rows)


@dataclass(slots=True)
class _ProblemCollector:
    """All that is wrong: the first are kept, the others counted."""

    problems: list[LineProblem] = field(default_factory=list)
    count: int = 0

    def add(self, line: int, column: str | None, message: str) -> None:
        self.count += 1
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(LineProblem(line, column, message))

    def to_invalid_file(self) -> InvalidUserFile:
        return InvalidUserFile(tuple(self.problems), self.count)


def _records(text: str, problems: _ProblemCollector) -> Iterator[tuple[int, list[str]]]:
    """Each record that is not blank, with the line it begins in."""
    lines = StringIO(text, newline="")
    reader = csv.reader(lines, delimiter=_delimiter(text), strict=True)
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            # Only a cell beyond 128 KiB is anything but quotes; the next line is read again.
            large = "limit" in str(error)
            problems.add(line, None, "A cell is too long." if large else "A quote is not closed.")
            continue
        if not _is_blank_record(cells):
            yield line, cells


def _is_blank_record(cells: Sequence[str]) -> bool:
    return not any(cell.strip() for cell in cells)


def _delimiter(text: str) -> str:
    header = _FIRST_LINE.match(text)
    return ";" if header and header[1].count(";") > header[1].count(",") else ","


def _parse_header(line: int, cells: Sequence[str], problems: _ProblemCollector) -> list[str]:
    names = [cell.strip().casefold() for cell in cells]
    while names and not names[-1]:
        names.pop()
    for place, name in enumerate(names):
        shown = name[:MAX_SHOWN_COLUMN_LENGTH]
        if name == "role":
            problems.add(line, shown, "An import gives no roles. Leave this column out.")
        elif name not in COLUMNS:
            known = ", ".join(COLUMNS)
            told = f"There is no such column. The columns are {known}, by commas or semicolons."
            problems.add(line, shown, told)
        elif name in names[:place]:
            problems.add(line, shown, "This column is there twice.")
    if EMAIL not in names:
        problems.add(line, EMAIL, "The first line names the columns, and this one is needed.")
    return names


class _RowParser:
    """The rows of a file, taken one by one."""

    def __init__(
        self, columns: list[str], normalize_email: EmailNormalizer, problems: _ProblemCollector
    ) -> None:
        self.rows: list[UserRow] = []
        self._columns = columns
        self._address_of = normalize_email
        self._problems = problems
        self._line_of: dict[str, int] = {}

    def parse(self, line: int, cells: list[str]) -> None:
        wanted = len(self._columns)
        if len(cells) < wanted or not _is_blank_record(cells[wanted:]):
            text = f"{len(cells)} cells where the header has {wanted}. Are quotes missing?"
            self._problems.add(line, None, text)
            return
        by_name = dict(zip(self._columns, cells, strict=False))
        email = self._parse_email(line, by_name[EMAIL])
        name = self._parse_name(line, by_name[NAME]) if NAME in by_name else None
        groups = self._parse_groups(line, by_name[GROUPS]) if GROUPS in by_name else None
        self.rows.append(UserRow(line, email, name, groups))

    def _parse_email(self, line: int, cell: str) -> str:
        email = self._address_of(cell.strip())
        if email is None:
            self._problems.add(line, EMAIL, "This is not an e-mail address.")
            return ""
        first = self._line_of.setdefault(email, line)
        if first != line:
            self._problems.add(line, EMAIL, f"This address is in line {first} already.")
        return email

    def _parse_name(self, line: int, cell: str) -> str:
        name = normalize_nfc(cell.strip())
        if problem := validate_user_name(name):
            self._problems.add(line, NAME, problem)
        return name

    def _parse_groups(self, line: int, cell: str) -> tuple[str, ...]:
        groups = normalised_groups(cell.split(";"))
        if problem := validate_groups(groups):
            self._problems.add(line, GROUPS, problem)
        return groups
