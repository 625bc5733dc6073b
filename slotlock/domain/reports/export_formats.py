"""The formats of exported rosters, their languages, and the separators of their cells."""

from slotlock.domain.shared.described_enum import DescribedEnum


class ExportFormat(DescribedEnum):
    """The format of an export."""

    # A value is the end of the name of a file.
    CSV = "csv", "A line for each booking, and for each user on a waiting list."
    XLSX = "xlsx", "An Excel workbook: a summary, the waiting lists, and a sheet for each slot."
    PDF = "pdf", "Sign-in sheets to print, with boxes to tick and space for signatures."


class ExportLanguage(DescribedEnum):
    """The language of the texts in an export."""

    # A value is the tag of the language (BCP 47).
    EN = "en", "English."
    DE = "de", "German."
    FR = "fr", "French."
    ES = "es", "Spanish."
    ZH = "zh", "Chinese."


class CsvSeparator(DescribedEnum):
    """What separates the cells of a CSV file."""

    # A value is its name in an address.
    COMMA = "comma", "A comma, as Excel expects where the decimal sign is a point."
    SEMICOLON = "semicolon", "A semicolon, as Excel expects where the decimal sign is a comma."

    @property
    def character(self) -> str:
        """The separator itself."""
        return "," if self is CsvSeparator.COMMA else ";"
