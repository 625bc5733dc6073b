"""The lines of every CSV file: RFC 4180 in UTF-8, with a mark by which Excel detects UTF-8."""

import csv
from collections.abc import Sequence
from io import StringIO

from slotlock.domain.reports.exports import CsvSeparator
from slotlock.domain.shared.formulas import escape_formula

BYTE_ORDER_MARK = "\ufeff"


def csv_header(names: Sequence[str], separator: CsvSeparator = CsvSeparator.COMMA) -> str:
    """Return the first line of a file, with the byte order mark."""
    return BYTE_ORDER_MARK + csv_line(names, separator)


def csv_line(cells: Sequence[str], separator: CsvSeparator = CsvSeparator.COMMA) -> str:
    """Return a line of escaped cells with its line end. No spreadsheet runs a formula in it."""
    line, character = StringIO(), separator.character
    writer = csv.writer(line, delimiter=character)
    writer.writerow([escape_formula(cell, character) for cell in cells])
    return line.getvalue()
