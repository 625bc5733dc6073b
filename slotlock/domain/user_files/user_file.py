"""Parse a CSV file of users: either all of its rows, or every problem with its line.

The columns are those of `columns.py`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import partial
from itertools import zip_longest

from slotlock.domain.shared.folding import fold
from slotlock.domain.shared.problems import ProblemCode
from slotlock.domain.shared.tables.file_problems import InvalidFile, ProblemCollector
from slotlock.domain.shared.tables.table import Table, one_line, read_table
from slotlock.domain.shared.text import normalize_line, strip_blanks
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.user_files.columns import (
    COLUMNS,
    EMAIL,
    FIRST_NAME,
    GROUPS,
    GUARDIAN,
    GUARDIAN_NAME,
    LAST_NAME,
    LEADS,
    NAME,
    PHONE,
    SUBJECT,
    USERNAME,
    columns_of,
)
from slotlock.domain.user_files.problems import ImportProblem
from slotlock.domain.users.dependents import MAX_GUARDIANS
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
from slotlock.domain.users.user import (
    MAX_PHONE_LENGTH,
    MAX_USER_NAME_LENGTH,
    normalize_phone,
    validate_phone,
    validate_user_name,
)

# As many as fit into one transaction, which has 5 s in MongoDB.
MAX_IMPORTED_USERS = 10_000
# Some may be the same. To validate those of a long cell would take minutes.
MAX_ADDRESSES_IN_CELL = 10
# A slash does not: `2025/26` is a group.
_GROUP_SEPARATORS = re.compile("[;,|\r\n\u2028\u3001\uff0c\uff1b]")
# No address has a blank; `a/b@x.org` is one.
_ADDRESS_SEPARATORS = re.compile(r"(?:[\s;,|\u3001\uff0c\uff1b]|(?<=\s)/(?=\s))+")
# A comma is a part of `Becker, Anna`.
_NAME_SEPARATORS = re.compile("[;|\r\n\u2028\u3001\uff1b]")
# Between two full names these are separators, too.
_WEAK_SEPARATORS = (re.compile(r"[/&]|\s(?:und|and|et|y)\s"), re.compile("[,\uff0c]"))
# Han, Kana and Hangul: the last name comes first, without a blank.
_EAST_ASIAN = re.compile(
    "[\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff]+"
)
TWO_LOGIN_NAMES = (
    "This line has an email address and a user name, but an account has only one of them. "
    "Please remove one of the two columns, or empty one of the cells."
)
TOO_MANY_GUARDIANS = f"A line can have at most {MAX_GUARDIANS} parents or guardians."


@value_object
class NamedGuardian:
    """A guardian in a line: the login name, and the name that the file gives a new account."""

    login_name: str
    name: str | None = None


@value_object
class UserRow:
    """One user in the file; a field is None if the file has no such column.

    `subject` and `phone` are also None for an empty cell. Its `identity` needs the providers of the
    server. A child whom its guardians identify has a blank in its login name, or none in the file.
    `leads` are names of resources, of which one may be several with commas between them.
    """

    line: int
    login_name: str
    name: str | None
    groups: tuple[str, ...] | None
    subject: str | None = None
    identity: Identity | None = None
    family_name: str | None = None
    phone: str | None = None
    guardians: tuple[NamedGuardian, ...] | None = None
    leads: tuple[str, ...] | None = None

    @property
    def email(self) -> str | None:
        """The email address; None for a user name."""
        return self.login_name if "@" in self.login_name else None

    @property
    def has_login_name(self) -> bool:
        """Whether the file identifies the user by more than a guardian and the name."""
        return bool(self.login_name) and " " not in self.login_name


@value_object
class UserFile:
    """The users in a file, and the headers of the columns that the import does not know.

    `headers` is what the file calls the columns, for problems that are found later.
    """

    rows: tuple[UserRow, ...]
    ignored_columns: tuple[str, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict, compare=False)

    @property
    def login_names(self) -> list[str]:
        """Return the login name of each row that has one, and of the guardians."""
        guardians = (each.login_name for row in self.rows for each in row.guardians or ())
        own = (row.login_name for row in self.rows if row.has_login_name)
        return list(dict.fromkeys((*own, *guardians)))

    @property
    def has_guardians(self) -> bool:
        """Return whether the file says who the guardians of its users are."""
        return any(row.guardians is not None for row in self.rows)

    @property
    def has_leaders(self) -> bool:
        """Return whether the file says which resources its users lead."""
        return any(row.leads is not None for row in self.rows)

    @property
    def groups(self) -> set[str]:
        """Return the groups of all rows."""
        return {group for row in self.rows for group in row.groups or ()}


def parse_user_file(body: bytes, *, addresses_of_guardians: bool = False) -> UserFile | InvalidFile:
    """Return the rows of the file, or its problems.

    The addresses may be those of the guardians, even if their column does not say so.
    """
    problems = ProblemCollector()
    columns = partial(columns_of, addresses_of_guardians=addresses_of_guardians)
    repeatable = (GROUPS, PHONE, GUARDIAN, GUARDIAN_NAME, LEADS)
    table = read_table(body, columns, problems, repeatable)
    if table is not None:
        _check_header(table, problems)
    if table is None or problems.count:
        return problems.to_invalid_file()
    parser = _RowParser(table.columns, problems)
    for number, (line, cells) in enumerate(table.records, 1):
        if number + parser.guardian_count > MAX_IMPORTED_USERS:
            message = f"A file can have at most {MAX_IMPORTED_USERS} users. Please split it."
            code = ImportProblem.TOO_MANY_USERS
            problems.add(line, None, message, code, maximum=MAX_IMPORTED_USERS)
            break
        parser.parse(line, cells)
    file = UserFile(tuple(parser.rows), table.ignored_columns, problems.headers)
    return problems.to_invalid_file() if problems.count else file


def _check_header(table: Table, problems: ProblemCollector) -> None:
    for header, column in zip(table.headers, table.columns, strict=True):
        if column in (FIRST_NAME, LAST_NAME):
            problems.name_column(NAME, header)
        if header.casefold() == "role":
            problems.name_column("role", header)
            message = "An import cannot set roles. Please remove this column."
            problems.add(table.line, "role", message, ImportProblem.ROLE_COLUMN)
    if not {EMAIL, USERNAME, GUARDIAN}.intersection(table.columns):
        message = (
            f"The first line must name the columns, among them {EMAIL}, {USERNAME} or {GUARDIAN}. "
            f"The columns are {', '.join(COLUMNS)}, also in German, French, Spanish and Chinese, "
            "separated by commas, semicolons or tabs."
        )
        problems.add(table.line, EMAIL, message, ImportProblem.NO_LOGIN_COLUMN)


def join_names(first_name: str, last_name: str) -> str:
    """Return a full name: `first last`, or the last name first in East Asian characters."""
    names = [one_line(first_name), one_line(last_name)]
    if all(map(_EAST_ASIAN.fullmatch, names)):
        return "".join(reversed(names))
    return " ".join(filter(None, names))


def split_list_name(text: str) -> tuple[str, str | None]:
    """Return a name, and the family name in one that lists show, as `Winter, Ute`."""
    family_name, _, given_name = map(
        str.strip, text.replace("\N{FULLWIDTH COMMA}", ",").partition(",")
    )
    if not family_name or not given_name or "," in given_name:
        return text, None
    return join_names(given_name, family_name), family_name


def _split_names(cell: str, count: int) -> list[str]:
    """Return the names in a cell, which are those of so many guardians."""
    names = [one_line(each) for each in _NAME_SEPARATORS.split(cell)]
    for separators in _WEAK_SEPARATORS if len(names) < count else ():
        parts = [one_line(each) for each in separators.split(cell)]
        if len(parts) == count and all(
            " " in each or _EAST_ASIAN.fullmatch(each) for each in parts
        ):
            return parts
    return names


class _RowParser:
    """Parses one record after the other and collects the rows and their problems."""

    def __init__(self, columns: Sequence[str], problems: ProblemCollector) -> None:
        self.rows: list[UserRow] = []
        self._columns = columns
        self._problems = problems
        self._login_names: dict[str, int] = {}
        self._guardians: set[str] = set()
        self._children: dict[tuple[str, str], int] = {}

    @property
    def guardian_count(self) -> int:
        """Return how many guardians the lines have."""
        return len(self._guardians)

    def parse(self, line: int, cells: Sequence[str]) -> None:
        cells_by_column = dict(zip(self._columns, cells, strict=True))
        guardians = self._parse_guardians(line, cells) if GUARDIAN in cells_by_column else None
        is_child = any(map(strip_blanks, self._cells_of(GUARDIAN, cells)))
        login_name = self._parse_login_name(line, cells_by_column, is_child=is_child)
        name = self._parse_name(line, cells_by_column)
        if guardians:
            self._check_child(line, name, guardians, has_login_name=bool(login_name))
        groups = self._parse_groups(line, cells) if GROUPS in cells_by_column else None
        subject = strip_blanks(cells_by_column.get(SUBJECT, "")) or None
        family_name = None
        if NAME not in cells_by_column:
            family_name = one_line(cells_by_column.get(LAST_NAME, "")) or None
        phone = self._parse_phone(line, cells)
        leads = self._parse_leads(cells) if LEADS in cells_by_column else None
        identified = (line, login_name, name, groups, subject, None, family_name, phone)
        self.rows.append(UserRow(*identified, guardians, leads))

    def _parse_login_name(self, line: int, cells: Mapping[str, str], *, is_child: bool) -> str:
        """Return the login name; an empty one for a child without, and for a problem."""
        email, username = (strip_blanks(cells.get(each, "")) for each in (EMAIL, USERNAME))
        if is_child and not email and not username:
            return ""
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
            name = one_line(cells[NAME])
        elif FIRST_NAME in cells or LAST_NAME in cells:
            name = join_names(cells.get(FIRST_NAME, ""), cells.get(LAST_NAME, ""))
        else:
            return None
        if problem := validate_user_name(name):
            code = ImportProblem.INVALID_NAME
            self._problems.add(line, NAME, problem, code, maximum=MAX_USER_NAME_LENGTH)
        return name

    def _parse_phone(self, line: int, cells: Sequence[str]) -> str | None:
        """Return the first number of a user, such as that of a mobile beside another column."""
        phone = next(filter(None, map(normalize_phone, self._cells_of(PHONE, cells))), None)
        if phone and (problem := validate_phone(phone)):
            code = ImportProblem.INVALID_PHONE
            self._problems.add(line, PHONE, problem, code, maximum=MAX_PHONE_LENGTH)
        return phone

    def _parse_groups(self, line: int, cells: Sequence[str]) -> tuple[str, ...]:
        groups = clean_groups(
            group
            for cell in self._cells_of(GROUPS, cells)
            for group in _GROUP_SEPARATORS.split(cell)
        )
        if problem := validate_groups(groups):
            limits = {"maximum": MAX_GROUPS, "length": MAX_GROUP_LENGTH}
            self._problems.add(line, GROUPS, problem, ImportProblem.INVALID_GROUPS, **limits)
        return groups

    def _parse_guardians(self, line: int, cells: Sequence[str]) -> tuple[NamedGuardian, ...]:
        """Return the guardians with their names, which are beside them or in the same order."""
        addresses, names = self._cells_of(GUARDIAN, cells), self._cells_of(GUARDIAN_NAME, cells)
        if len(addresses) != len(names):
            addresses, names = (
                [";".join(filter(strip_blanks, each))] for each in (addresses, names)
            )
        guardians: dict[str, NamedGuardian] = {}
        for cell, named in zip(addresses, names, strict=True):
            of_cell = list(filter(None, _ADDRESS_SEPARATORS.split(cell)))
            if len(of_cell) > MAX_ADDRESSES_IN_CELL:
                self._add_too_many(line)
                return ()
            for text, name in zip_longest(of_cell, _split_names(named, len(of_cell))):
                login_name = normalize_login_name(text) if text else None
                if login_name:
                    guardians.setdefault(login_name, NamedGuardian(login_name, name or None))
                elif text:
                    code = ImportProblem.INVALID_EMAIL
                    self._problems.add(line, GUARDIAN, INVALID_EMAIL, code)
                    return ()
                if text and name and (problem := validate_user_name(name)):
                    code, maximum = ImportProblem.INVALID_NAME, MAX_USER_NAME_LENGTH
                    self._problems.add(line, GUARDIAN_NAME, problem, code, maximum=maximum)
        if len(guardians) > MAX_GUARDIANS:
            self._add_too_many(line)
        self._guardians.update(guardians)
        return tuple(guardians.values())

    def _add_too_many(self, line: int) -> None:
        code = ImportProblem.TOO_MANY_GUARDIANS
        self._problems.add(line, GUARDIAN, TOO_MANY_GUARDIANS, code, maximum=MAX_GUARDIANS)

    def _check_child(
        self,
        line: int,
        name: str | None,
        guardians: Sequence[NamedGuardian],
        *,
        has_login_name: bool,
    ) -> None:
        """Report a child without anything that identifies it, or that another line has."""
        if name is None and not has_login_name:
            problem, code = ProblemCode.NAME_MISSING.problem(), ImportProblem.INVALID_NAME
            self._problems.add(line, NAME, problem, code, maximum=MAX_USER_NAME_LENGTH)
        if not name:
            return
        keys = [(each.login_name, fold(name)) for each in guardians]
        first_line = min(self._children.setdefault(key, line) for key in keys)
        if first_line != line:
            message = f"Line {first_line} has the same user."
            self._problems.add(line, NAME, message, ImportProblem.SAME_USER, line=first_line)

    def _parse_leads(self, cells: Sequence[str]) -> tuple[str, ...]:
        names = (
            normalize_line(name)
            for cell in self._cells_of(LEADS, cells)
            for name in _NAME_SEPARATORS.split(cell)
        )
        return tuple(dict.fromkeys(filter(None, names)))

    def _cells_of(self, column: str, cells: Sequence[str]) -> list[str]:
        """Return the cells of a column, of which the file may have several."""
        named = zip(self._columns, cells, strict=True)
        return [cell for each, cell in named if each == column]
