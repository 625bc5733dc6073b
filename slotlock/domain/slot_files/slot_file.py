"""Parse a file of courses: either all of its rows, or every problem with its line."""

from collections.abc import Mapping, Sequence
from typing import Any

from slotlock.domain.schedule.periods import Period
from slotlock.domain.shared.problems import Problem
from slotlock.domain.shared.tables.file_problems import InvalidFile, ProblemCollector
from slotlock.domain.shared.tables.table import read_table
from slotlock.domain.shared.validation import FieldProblem
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.slot_files.cells import read_cells
from slotlock.domain.slot_files.columns import COLUMNS, RESOURCE_COLUMNS, columns_of
from slotlock.domain.slot_files.problems import SlotFileProblem
from slotlock.domain.slot_files.times import find_date_order

MAX_ROWS = 2_000
_DATE_COLUMNS = ("first_day", "last_day", "except")


@value_object
class SlotRow:
    """One course in the file, with what its cells say by their columns."""

    line: int
    cells: Mapping[str, Any]


@value_object
class SlotFile:
    """The courses in a file, and the headers of the columns that the import does not know.

    `headers` are those of the known columns.
    """

    rows: tuple[SlotRow, ...]
    headers: tuple[tuple[str, str], ...]
    ignored_columns: tuple[str, ...] = ()

    @property
    def resource_names(self) -> set[str]:
        """The names of all resources."""
        cells = (row.cells.get(column, ()) for row in self.rows for column in RESOURCE_COLUMNS)
        return {name for names in cells for name in names}

    @property
    def columns(self) -> set[str]:
        """The known columns."""
        return {column for column, _ in self.headers}

    def new_collector(self) -> ProblemCollector:
        """Return a collector of problems that knows the headers."""
        problems = ProblemCollector()
        for column, header in self.headers:
            problems.name_column(column, header)
        return problems


def add_problem(
    problems: ProblemCollector, line: int, column: str, problem: Problem | FieldProblem
) -> None:
    """Count the problem of a cell, or of the column that it names."""
    if isinstance(problem, FieldProblem):
        column, problem = problem.field, problem.message
    problems.add(line, column, problem, problem.code.name, **problem.values)


def parse_slot_file(body: bytes, periods: Sequence[Period] = ()) -> SlotFile | InvalidFile:
    """Return the rows of the file, or its problems. It may name periods instead of times."""
    problems = ProblemCollector()
    table = read_table(body, columns_of, problems)
    if table is None:
        return problems.to_invalid_file()
    if not {"id", "number"}.intersection(table.columns):
        missing = SlotFileProblem.NO_NUMBER_COLUMN.problem(columns=", ".join(COLUMNS))
        add_problem(problems, table.line, "number", missing)
    if problems.count:
        return problems.to_invalid_file()
    rows = list[tuple[int, dict[str, str]]]()
    for line, cells in table.records:
        if len(rows) == MAX_ROWS:
            too_many = SlotFileProblem.TOO_MANY_ROWS.problem(maximum=MAX_ROWS)
            problems.add(line, None, too_many, too_many.code.name, **too_many.values)
            break
        named = zip(table.columns, cells, strict=True)
        rows.append((line, {column: cell for column, cell in named if column}))
    order = find_date_order(
        cells[column] for _, cells in rows for column in _DATE_COLUMNS if column in cells
    )
    parsed = list[SlotRow]()
    for line, texts in rows:
        read, found = read_cells(texts, order, periods)
        for column, problem in found.items():
            add_problem(problems, line, column, problem)
        parsed.append(SlotRow(line, read))
    headers = tuple(
        (column, header)
        for header, column in zip(table.headers, table.columns, strict=True)
        if column
    )
    file = SlotFile(tuple(parsed), headers, table.ignored_columns)
    return problems.to_invalid_file() if problems.count else file
