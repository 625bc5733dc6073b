"""The texts of mails, from one template for each kind and language.

The first line of `<kind>.<language>.txt` is the subject, the rest is the text. Where a site says
Sie to its members, `<kind>.de-formal.txt` comes first, if there is one. `layout` surrounds
the texts of all kinds, and `several` has the subject of a mail with more than one. HTML follows
from the text: paragraphs, and a line with nothing but an address becomes a link.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from slotlock.domain.notifications.mail_kinds import BOOKING_KIND_NAMES, REMINDER
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.site import site

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).with_name("templates")
LANGUAGES = site.LANGUAGES
DEFAULT_LANGUAGE = LANGUAGES[0]
# A blank between a value, within two NULs, and its neighbor, if Chinese stands on both sides.
CHINESE = r"[\u2018-\u201d\u3000-\u9fff\uff00-\uffef]"
# What happened to bookings; a mail with several has a subject of its own.
CHANGES = BOOKING_KIND_NAMES - {REMINDER.name}
# Of an address alone: a Chinese sentence has no blanks, but signs that end it.
ADDRESS = re.compile(r"https?://[^\s\u3000-\u303f\uff00-\uffef]+")
BLANK = re.compile(rf"({CHINESE})(?:\0 \0?| \0)(?={CHINESE})")


@value_object
class MailText:
    """What a mail says, in two forms."""

    subject: str
    text: str
    html: str


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

    # The texts are plain; only `mail.html` is HTML, and escapes all that it shows.
    return Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=select_autoescape(["html"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: f"\0{value}\0" if type(value) is str else value,
    )


def language_of(*locales: str | None) -> str:
    """Return the language of the texts: that of the first of these language tags that has texts."""
    languages = ((locale or "").split("-")[0].lower() for locale in locales)
    return next((each for each in languages if each in LANGUAGES), DEFAULT_LANGUAGE)


def render(
    language: str, parts: Sequence[tuple[str, Mapping[str, object]]], **shared: object
) -> MailText:
    """Return the text of a mail with one part or more, each a kind and its values.

    All parts have the shared values too: the name of the user, or None, and of the site, and
    whether members are Sie in German (`formal`). A part for a guardian has the name of the `child`.
    """
    shared = {"child": "", **shared}
    texts = [_render_text(kind, language, {**shared, **values}) for kind, values in parts]
    split = [text.strip().partition("\n") for text in texts]
    subject, others = split[0][0], {each for each, _, _ in split[1:]} - {split[0][0]}
    if len(parts) > 1 and {kind for kind, _ in parts} <= CHANGES:
        children = dict.fromkeys(values.get("child") for _, values in parts)
        names = ", ".join(map(str, children)) if all(children) else ""
        subject = _render_text("several", language, {**shared, "count": len(parts), "child": names})
    elif others:
        subject = f"{subject} (+{len(others)})"
    body = "\n\n".join(rest.strip() for _, _, rest in split)
    text = _render_text("layout", language, {**shared, "kind": parts[0][0], "body": body})
    paragraphs = [paragraph.splitlines() for paragraph in text.strip().split("\n\n")]
    page = {"language": language, "subject": subject, "paragraphs": paragraphs}
    html = _render("mail.html", {**shared, **page, "is_address": ADDRESS.fullmatch})
    return MailText(subject.strip(), text.strip() + "\n", html)


def _render_text(kind: str, language: str, values: Mapping[str, object]) -> str:
    formal = f"{kind}.{language}-formal.txt"
    is_formal = values.get("formal") and (TEMPLATES / formal).exists()
    return _render(formal if is_formal else f"{kind}.{language}.txt", values)


def _render(template: str, values: Mapping[str, object]) -> str:
    text = _environment().get_template(template).render(values)
    return BLANK.sub(r"\1", text).replace("\0", "")
