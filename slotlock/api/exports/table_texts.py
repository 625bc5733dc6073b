"""The titles and words of rosters in the languages of viewers.

English titles are those of the columns, and English words come last in the table, unless they are
the codes. Without a language, tables have the names and codes of the API, which programs read.
"""

from collections.abc import Sequence
from pathlib import Path

from slotlock.api.exports.columns import STATUS, Cell, RosterColumn, Shown, cells_of
from slotlock.domain.reports.export_formats import ExportLanguage

_LANGUAGES = ("de", "fr", "es", "zh", "en")
# Titles by the names of columns, then names of sheets, then words by their codes.
_TABLE = Path(__file__).with_name("words.txt").read_text(encoding="utf-8")
_ROWS = [[cell.strip() for cell in line.split("|")] for line in _TABLE.splitlines()]
TEXTS = {key: dict(zip(_LANGUAGES, texts, strict=False)) for key, *texts in _ROWS}


def title_of(column: RosterColumn[Shown], language: ExportLanguage | None) -> str:
    """Return the title of a column; those of meetings are times in the language already."""
    return TEXTS.get(column.name, {}).get(language or "", column.title)


def sheet_name(english: str, language: ExportLanguage | None) -> str:
    """Return the name of a sheet, or another text of a workbook."""
    return TEXTS[english].get(language or "", english)


def shown_cells(
    columns: Sequence[RosterColumn[Shown]],
    shown: Shown,
    time_zone: str,
    language: ExportLanguage | None,
) -> list[Cell]:
    """Return the cells of a row; with a language, its words stand for the codes of the API."""
    cells = cells_of(columns, shown, time_zone)
    if language is None:
        return cells
    for index, column in enumerate(columns):
        cell = cells[index]
        if column.text:
            cells[index] = column.text(shown, language)
        elif column.is_coded and isinstance(cell, str):
            # A slot is canceled for everyone; a booking may only have ended.
            cells[index] = _words(cell, language, "SLOT_" if column is STATUS else "")
    return cells


def _words(codes: str, language: ExportLanguage, beginning: str) -> str:
    def word(code: str) -> str:
        texts = TEXTS.get(beginning + code) or TEXTS.get(code, {})
        return texts.get(language, code.replace("_", " ").capitalize())

    return ", ".join(map(word, filter(None, codes.split(";"))))
