"""Headers, and the columns for which they stand in the languages of schools.

Capitals, accents, blanks and punctuation of a header do not matter, so that `E-Mail-Adresse` is
`emailadresse`.
"""

import csv
from collections.abc import Callable, Mapping, Sequence

from slotlock.domain.shared.folding import fold

SEPARATORS = (",", ";", "\t")

# Returns the column for which each header stands; None for an unknown one.
ColumnsOf = Callable[[Sequence[str]], Sequence[str | None]]


def fold_header(header: str) -> str:
    """Return the letters and digits of a header, without capitals and accents."""
    return "".join(filter(str.isalnum, fold(header)))


def columns_by_header(spellings: Mapping[str, str]) -> dict[str, str]:
    """Return the column of each folded header, from lines of spellings for each column."""
    return {
        fold_header(spelling): column
        for column, lines in spellings.items()
        for line in lines.strip().splitlines()
        for spelling in (column, *line.split(","))
    }


def find_separator(header_line: str, columns_of: ColumnsOf) -> str:
    """Return the separator with which a header has the most known columns, or else the most."""

    def count_columns(separator: str) -> tuple[int, int]:
        cells = next(csv.reader([header_line], delimiter=separator), [])
        return sum(map(bool, columns_of(cells))), len(cells)

    return max(SEPARATORS, key=count_columns)


def has_chinese_column(header_line: str, columns_of: ColumnsOf) -> bool:
    """Return whether a header has a known column in Chinese."""
    headers = header_line.split(find_separator(header_line, columns_of))
    known = (header for header, column in zip(headers, columns_of(headers), strict=True) if column)
    return any(header.strip('" ')[:1] >= "\u4e00" for header in known)
