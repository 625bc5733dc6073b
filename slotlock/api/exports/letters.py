"""Letters of invitations as PDF, to print and hand out: four on a page, and each class by itself.

`python -m` reads {invitations, language, site, page, zone} as a line of JSON, and writes the PDF.
"""

import csv
import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from importlib import resources
from io import BytesIO, StringIO
from itertools import groupby, islice
from operator import attrgetter

from slotlock.domain.schedule.schedule_texts import format_date
from slotlock.domain.schedule.zones import to_local_time
from slotlock.domain.shared.formulas import unescape_formula
from slotlock.domain.shared.sorting import sort_key
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.groups import class_of, in_natural_order
from slotlock.domain.users.user import split_name

# Typst lays out all pages in memory.
MAX_LETTERS = 3_000
COLUMNS = ("email", "name", "token", "expires_at", "username", "groups")
ALL_COLUMNS = (*COLUMNS, "family_name")
MAX_CELL = 1_000
MAX_LINES = 160  # what surely fits into the height of a letter, in characters
MAX_WORD = 40  # a longer one, such as an address, breaks anywhere
_TOKEN = re.compile(r"[\w-]{1,100}", re.ASCII)


@value_object
class Letter:
    """What stands in the letter of one user; the last day is the last whole one."""

    name: str
    login_name: str
    group: str
    token: str
    last_day: datetime
    family_name: str = ""

    @property
    def order(self) -> tuple[object, ...]:
        """By class, and in it by family name."""
        names = split_name(self.name, self.family_name)
        return in_natural_order(self.group), *map(sort_key, names)


@value_object
class LetterTexts:
    """The texts of a letter in one language; `|` separates the days of the week."""

    title: str
    open: str
    password: str
    login: str
    until: str
    private: str
    missing_font: str
    weekdays: str


LETTER_TEXTS = {
    "en": LetterTexts(
        title="Your account at {site}",
        open="Scan the picture, or open this page and type the code:",
        password="Choose a password.",  # noqa: S106
        login="From then on, sign in with your password and",
        until="Valid until {weekday}, {date}.",
        private="This letter is only for you: show it to nobody.",
        missing_font="Boxes stand for characters that no font of the server has.",
        weekdays="Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday",
    ),
    "de": LetterTexts(
        title="Konto bei {site}",
        open="Das Bild scannen, oder diese Seite öffnen und den Code eintippen:",
        password="Ein Passwort festlegen.",  # noqa: S106
        login="Danach anmelden mit diesem Passwort und mit",
        until="Gültig bis {weekday}, {date}.",
        private="Dieser Brief ist persönlich: bitte niemandem zeigen.",
        missing_font="Kästchen stehen für Zeichen, für die der Server keine Schriftart hat.",
        weekdays="Montag|Dienstag|Mittwoch|Donnerstag|Freitag|Samstag|Sonntag",
    ),
    "zh": LetterTexts(
        title="你在 {site} 的账号",
        open="请扫描图片，或打开此页面并输入代码：",  # noqa: RUF001
        password="设置密码。",  # noqa: S106
        login="以后请用密码和以下登录名登录：",  # noqa: RUF001
        until="有效期至{date}{weekday}。",
        private="此信仅供你本人使用，请勿给他人看。",  # noqa: RUF001
        missing_font="方框表示服务器没有相应字体的字符。",
        weekdays="星期一|星期二|星期三|星期四|星期五|星期六|星期日",
    ),
}


class InvalidInvitationsError(Exception):
    """The file is no list of invitations; the text says why."""


def read_invitations(body: bytes) -> list[Letter]:
    """Return the letters for the lines of `POST /users/invitations` that have a token.

    Of a file that is too large, return one more than `MAX_LETTERS`.

    Raises:
        InvalidInvitationsError: the file has no such lines.
    """
    try:
        text = body.decode("utf-8-sig")
        separator = ";" if ";" in text.partition("\n")[0] else ","
        reader = csv.DictReader(StringIO(text, newline=""), delimiter=separator)
        missing = [each for each in COLUMNS if each not in (reader.fieldnames or ())]
        if missing:
            raise InvalidInvitationsError(f"The file has no column {missing[0]}.")
        with_token = (row for row in reader if row["token"])
        rows = islice(with_token, MAX_LETTERS + 1)
        letters = [_read(row, reader.line_num, separator) for row in rows]
    except (UnicodeDecodeError, csv.Error):
        raise InvalidInvitationsError("The file is no CSV in UTF-8.") from None
    if not letters:
        raise InvalidInvitationsError("No line of the file has a token.")
    return letters


def _read(row: dict[str, str | None], line: int, separator: str) -> Letter:
    cells = {each: unescape_formula(row.get(each) or "", separator) for each in ALL_COLUMNS}
    try:
        expires_at = datetime.fromisoformat(cells["expires_at"])
        last_day = expires_at.replace(tzinfo=expires_at.tzinfo or UTC) - timedelta(days=1)
    except (ValueError, OverflowError):
        raise InvalidInvitationsError(f"Line {line} has no valid time.") from None
    if not _TOKEN.fullmatch(cells["token"]) or any(len(each) > MAX_CELL for each in cells.values()):
        raise InvalidInvitationsError(f"Line {line} has no valid token, or a cell is too long.")
    login_name = cells["email"] or cells["username"]
    group = class_of(cells["groups"].split(", "))
    token, family_name = cells["token"], cells["family_name"]
    return Letter(cells["name"], login_name, group, token, last_day, family_name)


def letters_pdf(
    letters: Sequence[Letter], *, language: str, site: str, page: str, time_zone: str
) -> tuple[bytes, bool]:
    """Return the PDF, and whether it has boxes for glyphs that no font has.

    `page` is an address, to whose end a code is added.
    """
    import typst

    from slotlock.api.exports.sign_in_sheets import font_folders, without_glyph

    fonts = typst.Fonts(font_paths=font_folders())
    texts = LETTER_TEXTS[language]
    written = {*"".join((site, *(f"{each.name}{each.group}{each.login_name}" for each in letters)))}
    printed = {*"".join(asdict(texts).values())} - {"|"}
    missing = without_glyph(written | printed, fonts)
    if missing & printed:
        language, texts = "en", LETTER_TEXTS["en"]
    data = {
        "language": language,
        "texts": {**asdict(texts), "title": texts.title.format(site=site)},
        "note": texts.missing_font if missing & written else "",
        "classes": [*_classes(letters, language, page, time_zone)],
    }
    template = resources.files("slotlock.api.exports").joinpath("letter.typ")
    pdf = typst.compile(
        template.read_bytes(),
        sys_inputs={"data": json.dumps(data)},
        format="pdf",
        timestamp=0,
        font_paths=fonts,
    )
    return pdf, bool(missing & written)


def _classes(
    letters: Sequence[Letter], language: str, page: str, time_zone: str
) -> Iterator[dict[str, object]]:
    address = page.partition("://")[2].rstrip("/")
    in_order = sorted(letters, key=attrgetter("order"))
    for group, of_class in groupby(in_order, key=lambda each: each.group):
        shown = [
            {
                "name": _breakable(each.name),
                "login": _breakable(each.login_name),
                "code": each.token,
                "address": _breakable(address),
                "picture": _picture(page + each.token),
                "until": _until(each.last_day, language, time_zone),
                # Typst could measure each letter, and would take ten times the memory.
                "is_long": len(each.name + each.group + each.login_name + address) > MAX_LINES,
            }
            for each in of_class
        ]
        yield {"group": group, "letters": shown}


def _picture(link: str) -> list[int]:
    """Return the bytes of a QR code as PNG."""
    import segno

    png = BytesIO()
    # The mask that `check_in_codes` takes, too: to choose the best takes most of the time.
    segno.make(link, error="m", micro=False, mask=3).save(png, kind="png", border=0)
    return [*png.getvalue()]


def _until(last_day: datetime, language: str, time_zone: str) -> str:
    """Return the last day on which the code is valid all day long, in words."""
    texts, day = LETTER_TEXTS[language], to_local_time(last_day, time_zone).date()
    weekday = texts.weekdays.split("|")[day.weekday()]
    return texts.until.format(weekday=weekday, date=format_date(day, language))


def _breakable(text: str) -> str:
    """Return a text whose long words may break anywhere."""
    words = text.split(" ")
    return " ".join("\u200b".join(word) if len(word) > MAX_WORD else word for word in words)


def main() -> int:
    """Write the PDF of the letters that the first line of the input describes."""
    given = json.loads(sys.stdin.buffer.readline())
    letters = read_invitations(given.pop("invitations").encode())
    pdf, has_missing_glyphs = letters_pdf(letters, **given)
    sys.stdout.buffer.write(pdf)
    return os.EX_CONFIG if has_missing_glyphs else os.EX_OK


if __name__ == "__main__":
    sys.exit(main())
