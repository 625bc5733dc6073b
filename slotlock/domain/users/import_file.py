"""Parse a CSV file of users: either all of its rows, or every problem with its line.

The file is CSV (RFC 4180) with a header, as Excel saves it: in UTF-8, in UTF-16 with a byte order
mark, in Windows-1252 or in GB 18030. The columns are those of `import_columns.py`.
"""

import csv
import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO

from slotlock.domain.shared.formulas import unescape_formula
from slotlock.domain.shared.text import normalize_line, strip_blanks
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.email_addresses import (
    INVALID_EMAIL,
    INVALID_LOGIN_NAME,
    normalize_email,
    normalize_login_name,
)
from slotlock.domain.users.groups import (
    MAX_GROUP_LENGTH,
    MAX_GROUPS,
    clean_groups,
    validate_groups,
)
from slotlock.domain.users.identity import Identity
from slotlock.domain.users.import_columns import (
    COLUMNS,
    EMAIL,
    FIRST_NAME,
    GROUPS,
    LAST_NAME,
    NAME,
    SUBJECT,
    USERNAME,
    columns_of,
    find_separator,
    fold_header,
    has_chinese_column,
)
from slotlock.domain.users.import_problems import (
    ImportProblem,
    InvalidUserFile,
    ProblemCollector,
)
from slotlock.domain.users.user import MAX_USER_NAME_LENGTH, validate_user_name

# As many as fit into one transaction, which has 5 s in MongoDB.
MAX_IMPORTED_USERS = 10_000
MAX_FILE_BYTES = 5_000_000
MAX_SHOWN_COLUMN_LENGTH, MAX_SHOWN_COLUMNS = 40, 100
# No Western name has three accented letters in a row, a capital inside of a word that Mac OS Roman
# writes for a letter with an accent, or a pair of letter and sign that is one letter in UTF-8.
_NOT_WINDOWS_1252 = re.compile(
    rb"[\x80-\xff]{3}|[\xc2-\xdf][\x80-\xbf]|[a-z][\x8a\x8e\x9f]|[A-Z][\x8a\x8e\x9f][a-z]"
)
_FIRST_LINE = re.compile(r"[\r\n]*([^\r\n]*)")
MAX_HEADER_LENGTH = 10_000
# A slash does not: `2025/26` is a group.
_GROUP_SEPARATORS = re.compile("[;,|\r\n\u3001\uff0c\uff1b]")
# Han, Kana and Hangul: the last name comes first, without a blank.
_EAST_ASIAN = re.compile(
    "[\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff]+"
)
TWO_LOGIN_NAMES = (
    "This line has an email address and a user name, but an account has only one of them. "
    "Please remove one of the two columns, or empty one of the cells."
)


@value_object
class UserRow:
    """One user in the file; a field is None if the file has no such column.

    `subject` is also None for an empty cell. Its `identity` needs the providers of the server.
    """

    line: int
    login_name: str
    name: str | None
    groups: tuple[str, ...] | None
    subject: str | None = None
    identity: Identity | None = None
    family_name: str | None = None

    @property
    def email(self) -> str | None:
        """The email address; None for a user name."""
        return self.login_name if "@" in self.login_name else None


@value_object
class UserFile:
    """The users in a file, and the headers of the columns that the import does not know."""

    rows: tuple[UserRow, ...]
    ignored_columns: tuple[str, ...] = ()

    @property
    def login_names(self) -> list[str]:
        """Return the login name of each row."""
        return [row.login_name for row in self.rows]

    @property
    def groups(self) -> set[str]:
        """Return the groups of all rows."""
        return {group for row in self.rows for group in row.groups or ()}


def parse_user_file(body: bytes) -> UserFile | InvalidUserFile:
    """Return the rows of the file, or its problems."""
    problems = ProblemCollector()
    text = _decode(body, problems)
    if text is None:
        return problems.to_invalid_file()
    records = _records(text, problems)
    line, header = next(records, (1, []))
    columns, ignored = _parse_header(line, header, problems)
    if problems.count:
        return problems.to_invalid_file()
    parser = _RowParser(columns, problems)
    for number, (line, cells) in enumerate(records, 1):
        if number > MAX_IMPORTED_USERS:
            message = f"A file can have at most {MAX_IMPORTED_USERS} users. Please split it."
            code = ImportProblem.TOO_MANY_USERS
            problems.add(line, None, message, code, maximum=MAX_IMPORTED_USERS)
            break
        parser.parse(line, cells)
    return problems.to_invalid_file() if problems.count else UserFile(tuple(parser.rows), ignored)


def _decode(body: bytes, problems: ProblemCollector) -> str | None:
    """Return the text of a file; None, and a problem, if its encoding is not recognized."""
    is_utf_16 = body.startswith((BOM_UTF16_LE, BOM_UTF16_BE))
    try:
        return body.decode("utf-16" if is_utf_16 else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = 1 if is_utf_16 else body.count(b"\n", 0, error.start) + 1
    encoding = "gb18030" if _NOT_WINDOWS_1252.search(body) else "cp1252"
    text = body.decode(encoding, errors="replace")
    # Other encodings decode as GB 18030, too, but into a header without Chinese columns.
    is_right = encoding == "cp1252" or has_chinese_column(_header_of(text))
    if is_right and "\ufffd" not in text and not is_utf_16:
        return text
    message = "This file is neither UTF-8 nor Windows-1252. Please save it as 'CSV UTF-8'."
    problems.add(line, None, message, ImportProblem.UNKNOWN_ENCODING)
    return None


def _records(text: str, problems: ProblemCollector) -> Iterator[tuple[int, list[str]]]:
    """Yield each record that is not blank, with its first line number."""
    lines = StringIO(text, newline="")
    delimiter = find_separator(_header_of(text))
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
            if is_cell_too_long:
                problems.add(line, None, "A cell is too long.", ImportProblem.CELL_TOO_LONG)
            else:
                text = "A quotation mark is not closed."
                problems.add(line, None, text, ImportProblem.OPEN_QUOTE)
            continue
        if not _is_blank_record(cells):
            yield line, [unescape_formula(cell, delimiter) for cell in cells]


def _header_of(text: str) -> str:
    header = _FIRST_LINE.match(text)
    return header[1][:MAX_HEADER_LENGTH] if header else ""


def _is_blank_record(cells: Sequence[str]) -> bool:
    return not any(map(strip_blanks, cells))


def _parse_header(
    line: int, cells: Sequence[str], problems: ProblemCollector
) -> tuple[list[str], tuple[str, ...]]:
    """Return the column of each cell, blank for an unknown one, and the unknown headers."""
    headers = [strip_blanks(cell) for cell in cells]
    while headers and not headers[-1]:
        headers.pop()
    columns, seen, ignored = columns_of(headers), set[str](), list[str]()
    for header, column in zip(headers, columns, strict=True):
        shown = header.casefold()[:MAX_SHOWN_COLUMN_LENGTH]
        # A class and a course are both groups.
        key = fold_header(header) if column == GROUPS else column
        for each in (shown, column, NAME if column in (FIRST_NAME, LAST_NAME) else None):
            if each:
                problems.name_column(each, header[:MAX_SHOWN_COLUMN_LENGTH])
        if shown == "role":
            message = "An import cannot set roles. Please remove this column."
            problems.add(line, shown, message, ImportProblem.ROLE_COLUMN)
        elif key is None:
            ignored.append(header[:MAX_SHOWN_COLUMN_LENGTH])
        elif key in seen:
            message = "This column appears twice."
            problems.add(line, shown, message, ImportProblem.REPEATED_COLUMN)
        else:
            seen.add(key)
    if not {EMAIL, USERNAME}.intersection(columns):
        message = (
            f"The first line must name the columns, among them {EMAIL} or {USERNAME}. The columns "
            f"are {', '.join(COLUMNS)}, also in German, French, Spanish and Chinese, separated by "
            "commas, semicolons or tabs."
        )
        problems.add(line, EMAIL, message, ImportProblem.NO_LOGIN_COLUMN)
    return [column or "" for column in columns], tuple(filter(None, ignored[:MAX_SHOWN_COLUMNS]))


def join_names(first_name: str, last_name: str) -> str:
    """Return a full name: `first last`, or the last name first in East Asian characters."""
    names = [normalize_line(first_name), normalize_line(last_name)]
    if all(map(_EAST_ASIAN.fullmatch, names)):
        return "".join(reversed(names))
    return " ".join(filter(None, names))


class _RowParser:
    """Parses one record after the other and collects the rows and their problems."""

    def __init__(self, columns: list[str], problems: ProblemCollector) -> None:
        self.rows: list[UserRow] = []
        self._columns = columns
        self._problems = problems
        self._login_names: dict[str, int] = {}

    def parse(self, line: int, cells: list[str]) -> None:
        expected = len(self._columns)
        if len(cells) < expected or not _is_blank_record(cells[expected:]):
            message = (
                f"This line has {len(cells)} cells, but the header has {expected}. "
                "Are quotation marks missing?"
            )
            code = ImportProblem.WRONG_CELL_COUNT
            self._problems.add(line, None, message, code, cells=len(cells), expected=expected)
            return
        cells_by_column = dict(zip(self._columns, cells, strict=False))
        login_name = self._parse_login_name(line, cells_by_column)
        name = self._parse_name(line, cells_by_column)
        groups = self._parse_groups(line, cells) if GROUPS in cells_by_column else None
        subject = strip_blanks(cells_by_column.get(SUBJECT, "")) or None
        family_name = None
        if NAME not in cells_by_column:
            family_name = normalize_line(cells_by_column.get(LAST_NAME, "")) or None
        self.rows.append(UserRow(line, login_name, name, groups, subject, None, family_name))

    def _parse_login_name(self, line: int, cells: Mapping[str, str]) -> str:
        email, username = (strip_blanks(cells.get(each, "")) for each in (EMAIL, USERNAME))
        if email and username and email.casefold() != username.casefold():
            code = ImportProblem.TWO_LOGIN_NAMES
            self._problems.add(line, USERNAME, TWO_LOGIN_NAMES, code)
            return ""
        is_email = bool(email) or USERNAME not in cells
        login_name = normalize_email(email) if is_email else normalize_login_name(username)
        column = EMAIL if is_email else USERNAME
        if login_name is None and is_email:
            self._problems.add(line, column, INVALID_EMAIL, ImportProblem.INVALID_EMAIL)
        elif login_name is None:
            self._problems.add(line, column, INVALID_LOGIN_NAME, ImportProblem.INVALID_LOGIN_NAME)
        if login_name is None:
            return ""
        first_line = self._login_names.setdefault(login_name, line)
        if first_line != line:
            message = f"Line {first_line} has the same user."
            self._problems.add(line, column, message, ImportProblem.SAME_USER, line=first_line)
        return login_name

    def _parse_name(self, line: int, cells: Mapping[str, str]) -> str | None:
        if NAME in cells:
            name = normalize_line(cells[NAME])
        elif FIRST_NAME in cells or LAST_NAME in cells:
            name = join_names(cells.get(FIRST_NAME, ""), cells.get(LAST_NAME, ""))
        else:
            return None
        if problem := validate_user_name(name):
            code = ImportProblem.INVALID_NAME
            self._problems.add(line, NAME, problem, code, maximum=MAX_USER_NAME_LENGTH)
        return name

    def _parse_groups(self, line: int, cells: Sequence[str]) -> tuple[str, ...]:
        groups = clean_groups(
            group
            for column, cell in zip(self._columns, cells, strict=False)
            if column == GROUPS
            for group in _GROUP_SEPARATORS.split(cell)
        )
        if problem := validate_groups(groups):
            limits = {"maximum": MAX_GROUPS, "length": MAX_GROUP_LENGTH}
            self._problems.add(line, GROUPS, problem, ImportProblem.INVALID_GROUPS, **limits)
        return groups
