"""Lines of CSV (RFC 4180) in which no spreadsheet finds a formula."""

import csv
import re
from collections.abc import Sequence
from io import StringIO

# What a spreadsheet takes for a formula (OWASP, CSV injection; in full width too), where a cell
# begins. Where cells are separated by semicolons, as in German, one begins after each of them.
_FORMULA = re.compile(r"(^|;)(?=\s*[=+\-@\uff1d\uff0b\uff0d\uff20\t\r])")


def escape_formula(cell: str) -> str:
    """The cell as text for every spreadsheet: an apostrophe before what would be a formula."""
    return _FORMULA.sub(r"\1'", cell)


def csv_line(cells: Sequence[str]) -> str:
    """A line with its end. Nothing in it is a formula."""
    line = StringIO()
    csv.writer(line).writerow(map(escape_formula, cells))
    return line.getvalue()
