"""The formats of exported rosters, their languages, and the separators of their cells."""

from enum import StrEnum


class ExportFormat(StrEnum):
    """The format of a file; the value is the end of its name."""

    CSV = "csv"
    XLSX = "xlsx"
    PDF = "pdf"


class ExportLanguage(StrEnum):
    """The language of the texts in a file; the value is its tag (BCP 47)."""

    EN = "en"
    DE = "de"
    FR = "fr"
    ES = "es"
    ZH = "zh"


class CsvSeparator(StrEnum):
    """What separates the cells of a CSV file; the value is its name in an address."""

    COMMA = "comma"
    SEMICOLON = "semicolon"

    @property
    def character(self) -> str:
        """The separator itself."""
        return "," if self is CsvSeparator.COMMA else ";"
