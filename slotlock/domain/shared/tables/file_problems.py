"""The problems of a file, each with its code and its lines."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum, auto
from itertools import islice

from slotlock.domain.shared.value_object import value_object

MAX_PROBLEMS, MAX_SHOWN_LINES = 100, 10


class NamedCode(StrEnum):
    """Codes that are their names. Clients translate a code, with the values of a problem."""

    @staticmethod
    def _generate_next_value_(name: str, *_: object) -> str:
        return name


class TableProblem(NamedCode):
    """Why a file is no table, whatever its rows are."""

    UNKNOWN_ENCODING = auto()
    CELL_TOO_LONG = auto()
    OPEN_QUOTE = auto()
    REPEATED_COLUMN = auto()
    WRONG_CELL_COUNT = auto()


@value_object
class LineProblem:
    """A problem of `count` lines, of which `lines` are the first ten.

    `column` is None if it concerns whole lines. `header` is what the file calls the column; None if
    it has no such column. The values are those in the message.
    """

    lines: tuple[int, ...]
    column: str | None
    message: str
    code: str
    count: int = 1
    values: Mapping[str, int | str] = field(default_factory=dict)
    header: str | None = None


@value_object
class InvalidFile:
    """The file is invalid and nothing was imported: the first 100 different problems.

    `count` is the number of all problems, each counted for each of its lines.
    """

    problems: tuple[LineProblem, ...]
    count: int

    def with_headers(self, headers: Mapping[str, str]) -> "InvalidFile":
        """Return it with what the file calls the columns of problems."""
        named = (replace(each, header=headers.get(each.column or "")) for each in self.problems)
        return replace(self, problems=tuple(named))


@dataclass(slots=True)
class ProblemCollector:
    """Collects problems, and counts equal ones."""

    count: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    _lines: dict[tuple[str | None, str], list[int]] = field(default_factory=dict)
    _facts: dict[tuple[str | None, str], tuple[str, Mapping[str, int | str]]] = field(
        default_factory=dict
    )

    def name_column(self, column: str, header: str) -> None:
        """Take over what the file calls a column; several of one kind are named together."""
        known = self.headers.get(column, header)
        self.headers[column] = known if header in known.split(", ") else f"{known}, {header}"

    def add(
        self, at: int, column: str | None, message: str, code: str, **values: int | str
    ) -> None:
        """Count a problem of the line `at`."""
        self.count += 1
        self._lines.setdefault((column, message), []).append(at)
        self._facts[column, message] = code, values

    def to_invalid_file(self) -> InvalidFile:
        """Return the problems as the outcome of the file."""
        problems = []
        for (column, message), lines in islice(self._lines.items(), MAX_PROBLEMS):
            code, values = self._facts[column, message]
            shown = tuple(lines[:MAX_SHOWN_LINES])
            problems.append(LineProblem(shown, column, message, code, len(lines), values))
        return InvalidFile(tuple(problems), self.count).with_headers(self.headers)
