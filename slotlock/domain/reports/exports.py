"""The formats of exported rosters, and the separators of their cells."""

from enum import StrEnum


class ExportFormat(StrEnum):
    """The format of a file; the value is the end of its name."""

    CSV = "csv"
    XLSX = "xlsx"
    PDF = "pdf"


class CsvSeparator(StrEnum):
    """What separates the cells of a CSV file; the value is its name in an address."""

    COMMA = "comma"
    SEMICOLON = "semicolon"

    @property
    def character(self) -> str:
        """The separator itself."""
        return "," if self is CsvSeparator.COMMA else ";"
