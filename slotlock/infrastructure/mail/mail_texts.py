"""The texts of mails, from one template for each kind and language.

The first line of `<kind>.<language>.txt` is the subject, the rest is the text. `layout` surrounds
the texts of all kinds, and `several` has the subject of a mail with more than one. HTML follows
from the text: paragraphs, and a line with nothing but an address becomes a link.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.schedule.zones import find_zone
from slotlock.domain.shared.value_object import value_object

TEMPLATES = Path(__file__).with_name("templates")
DEFAULT_LANGUAGE = "en"
LANGUAGES = (DEFAULT_LANGUAGE, "de", "zh")
MAX_MEETINGS_SHOWN = 5
_WEEKDAYS = {
    "en": "Mon Tue Wed Thu Fri Sat Sun",
    "de": "Mo. Di. Mi. Do. Fr. Sa. So.",
    "zh": "周一 周二 周三 周四 周五 周六 周日",
}
_MONTHS = {
    "en": "January February March April May June July August September October November December",
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
}


@value_object
class MailText:
    """What a mail says, in two forms."""

    subject: str
    text: str
    html: str


@cache
def _environment() -> Environment:
    # The texts are plain; only `mail.html` is HTML, and escapes all that it shows.
    return Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=select_autoescape(["html"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def language_of(locale: str | None) -> str:
    """Return the language of the texts for a user with this language tag."""
    language = (locale or "").split("-")[0].lower()
    return language if language in LANGUAGES else DEFAULT_LANGUAGE


def render(
    language: str, parts: Sequence[tuple[str, Mapping[str, object]]], **shared: object
) -> MailText:
    """Return the text of a mail with one part or more, each a kind and its values.

    All parts have the shared values too: the name of the user, or None, and of the site.
    """
    texts = [_render(f"{kind}.{language}.txt", {**shared, **values}) for kind, values in parts]
    split = [text.strip().partition("\n") for text in texts]
    subject = split[0][0]
    if len(parts) > 1:
        subject = _render(f"several.{language}.txt", {**shared, "count": len(parts)})
    body = "\n\n".join(rest.strip() for _, _, rest in split)
    text = _render(f"layout.{language}.txt", {**shared, "body": body})
    paragraphs = [paragraph.splitlines() for paragraph in text.strip().split("\n\n")]
    html = _render(
        "mail.html", {**shared, "language": language, "subject": subject, "paragraphs": paragraphs}
    )
    return MailText(subject.strip(), text.strip() + "\n", html)


def _render(template: str, values: Mapping[str, object]) -> str:
    return _environment().get_template(template).render(values)


def format_meetings(meetings: Sequence[Meeting], time_zone: str, language: str) -> str:
    """Return when meetings take place, each on a line, in the time zone of their slot."""
    lines = [_format_meeting(each, time_zone, language) for each in meetings[:MAX_MEETINGS_SHOWN]]
    rest = len(meetings) - MAX_MEETINGS_SHOWN
    return "\n".join(lines) + (f" (+{rest})" if rest > 0 else "")


def _format_meeting(meeting: Meeting, time_zone: str, language: str) -> str:
    start, end = (_local(each, time_zone) for each in (meeting.start, meeting.end))
    same_day = start.date() == end.date()
    last = f"{end:%H:%M}" if same_day else format_time(meeting.end, time_zone, language)
    return f"{_format_day(start, language)}, {start:%H:%M}–{last} ({time_zone})"  # noqa: RUF001


def format_time(instant: datetime, time_zone: str, language: str) -> str:
    """Return a time in a zone, in the order of the language."""
    local = _local(instant, time_zone)
    return f"{_format_day(local, language)}, {local:%H:%M}"


def _local(instant: datetime, time_zone: str) -> datetime:
    try:
        return instant.astimezone(find_zone(time_zone))
    except OverflowError:
        return instant


def _format_day(local: datetime, language: str) -> str:
    weekday = _WEEKDAYS[language].split()[local.weekday()]
    if language == "zh":
        return f"{local.year}年{local.month}月{local.day}日 {weekday}"
    month = _MONTHS[language].split()[local.month - 1]
    day = f"{local.day}." if language == "de" else str(local.day)
    return f"{weekday} {day} {month} {local.year}"
