"""The formats, groupings and languages of exported rosters, and the separators of their cells."""

from slotlock.domain.shared.described_enum import DescribedEnum


class ExportFormat(DescribedEnum):
    """The format of an export."""

    # A value is the end of the name of a file.
    CSV = "csv", "A line for each booking, and for each user on a waiting list."
    XLSX = "xlsx", "An Excel workbook: a summary, the waiting lists, and a sheet for each slot."
    PDF = "pdf", "Sign-in sheets to print, with boxes to tick and space for signatures."


class ExportGrouping(DescribedEnum):
    """What the sheets and rows of an export stand for; all but `SLOT` are for campaigns only.

    They show the confirmed bookings of published slots.
    """

    # A value is its name in an address.
    SLOT = "slot", "Bookings by slot, in every format."
    USER = (
        "user",
        "One sheet with a row for each user and a column for each of their courses, as `XLSX`. "
        "Up to 20,000 users who may book and have no place have a row, too.",
    )
    GROUP = "group", "The same, with a sheet for each group, as `XLSX`."
    RESOURCE = (
        "resource",
        "A sheet for each resource, with a row for each place by time, as `XLSX` or `PDF`.",
    )

    def problem_with(self, file_format: ExportFormat, *, is_campaign: bool) -> str | None:
        """Return why there is no such export of a slot or a campaign; None if there is one."""
        formats = ["XLSX", "PDF"] if self is ExportGrouping.RESOURCE else ["XLSX"]
        if self is ExportGrouping.SLOT or (is_campaign and file_format.name in formats):
            return None
        return f"{self.name} is for campaigns, as {' or '.join(formats)}."


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
