"""The formats of exported rosters."""

from enum import StrEnum


class ExportFormat(StrEnum):
    """The format of a file; the value is the end of its name."""

    CSV = "csv"
    XLSX = "xlsx"
    PDF = "pdf"
