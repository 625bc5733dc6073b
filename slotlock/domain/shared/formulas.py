"""Cells of CSV files in which no spreadsheet runs a formula, and which an import reads back.

Characters start a formula (OWASP, CSV injection), also in full width, at the start of a cell.
A spreadsheet may separate cells by the other one of comma and semicolon: then a cell can start
after each of those. An apostrophe precedes what would start a formula, also with apostrophes before
it, so that reading takes away exactly what writing added.
"""

import re

_START = r"(?='*\s*[=+\-@\uff1d\uff0b\uff0d\uff20\t\r])"
_OTHER = {",": ";", ";": ",", "\t": "[,;]"}
_UNESCAPED = {each: re.compile(f"(^|{other}){_START}") for each, other in _OTHER.items()}
_ESCAPED = {each: re.compile(f"(^|{other})'{_START}") for each, other in _OTHER.items()}


def escape_formula(cell: str, separator: str) -> str:
    """Return the cell with an apostrophe before everything that would start a formula."""
    return _UNESCAPED[separator].sub(r"\1'", cell)


def unescape_formula(cell: str, separator: str) -> str:
    """Return the cell without the apostrophes that escape formulas."""
    return _ESCAPED[separator].sub(r"\1", cell)
