"""CSV lines (RFC 4180) in which no spreadsheet runs a formula."""

import csv
import re
from collections.abc import Sequence
from io import StringIO

# Characters that start a formula (OWASP, CSV injection), also in full width, at the start of a
# cell. German spreadsheets separate cells by semicolons, so one can start after each of those.
_FORMULA = re.compile(r"(^|;)(?=\s*[=+\-@\uff1d\uff0b\uff0d\uff20\t\r])")


def escape_formula(cell: str) -> str:
    """Return the cell with an apostrophe before everything that would start a formula."""
    return _FORMULA.sub(r"\1'", cell)


def csv_line(cells: Sequence[str]) -> str:
    """Return a line of escaped cells with its line end."""
    line = StringIO()
    csv.writer(line).writerow(map(escape_formula, cells))
    return line.getvalue()
