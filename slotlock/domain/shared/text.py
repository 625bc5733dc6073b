"""Normalization and validation of texts that users fill in."""

import unicodedata
from datetime import UTC, datetime, tzinfo

from slotlock.domain.shared.problems import Problem, ProblemCode

# Control characters, surrogates, line and paragraph separators.
_FORBIDDEN_CATEGORIES = {"Cc", "Cs", "Zl", "Zp"}
# Embeddings, overrides and isolates reverse the text that follows: a name could imitate another.
_BIDI_CONTROLS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
# Noncharacters, which XML 1.0 cannot contain: a QR code with such a title would be no image.
_NOT_IN_XML = frozenset("\ufffe\uffff")
_FORBIDDEN_IN_LINES = _BIDI_CONTROLS | _NOT_IN_XML
# Letters and symbols without a visible form: Hangul fillers and the empty Braille pattern.
_INVISIBLE = frozenset("\u115f\u1160\u3164\uffa0\u2800")

# What surrounds pasted text: every blank and line end, and characters that take up no space, such
# as the marks of directions that some address books add.
_BLANKS = "".join(filter(str.isspace, map(chr, range(0x3001)))) + (
    "\u00ad\u061c\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069\ufeff"
)

# The cost of NFC grows with the square of consecutive combining marks: 2 s for 30,000 of them.
MAX_NORMALIZED_LENGTH = 1_000


def normalize_nfc(text: str) -> str:
    """Return the text in Unicode NFC, or unchanged if it is longer than any valid text."""
    return text if len(text) > MAX_NORMALIZED_LENGTH else unicodedata.normalize("NFC", text)


def strip_blanks(text: str) -> str:
    """Return the text without the blanks and line ends around it, as every token is read."""
    return text.strip(_BLANKS)


def normalize_line(name: str) -> str:
    """Return a name, a title or other text of one line without surrounding blanks and in NFC.

    Every such text passes here before it is validated, so that equal texts compare equal.
    """
    return normalize_nfc(strip_blanks(name))


def is_blank(text: str) -> bool:
    """Return whether the text has no visible character."""
    return all(c in _INVISIBLE or unicodedata.category(c) in {"Cf", "Zs"} for c in text)


def to_xml_text(text: str) -> str:
    """Return a stored text without what XML 1.0 cannot contain: older versions stored it."""
    return "".join(c for c in text if c not in _NOT_IN_XML)


def validate_text(text: str, max_length: int) -> Problem | None:
    """Return the problem with a text of several lines and at most `max_length` characters."""
    if len(text) > max_length:
        return ProblemCode.TOO_LONG.problem(maximum=max_length)
    if _NOT_IN_XML.intersection(text) or any(
        unicodedata.category(c) in {"Cc", "Cs"} and c not in "\t\n\r" for c in text
    ):
        return ProblemCode.CONTROL_CHARACTERS.problem()
    return None


def validate_line(text: str, max_length: int) -> Problem | None:
    """Return the problem with a one-line text of at most `max_length` characters, or None."""
    if len(text) > max_length:
        return ProblemCode.TOO_LONG.problem(maximum=max_length)
    if _FORBIDDEN_IN_LINES.intersection(text) or not _FORBIDDEN_CATEGORIES.isdisjoint(
        map(unicodedata.category, text)
    ):
        return ProblemCode.NOT_ONE_LINE.problem()
    return None


def format_in_zone(instant: datetime, zone: tzinfo = UTC) -> str:
    """Return a time as every message writes it, like `2030-01-31 14:00:00 Europe/Berlin`.

    It is in UTC if no local time of the zone can hold it.
    """
    try:
        local = instant.astimezone(zone)
    except OverflowError:
        local, zone = instant.astimezone(UTC), UTC
    return f"{local.replace(tzinfo=None).isoformat(' ', 'seconds')} {zone}"
