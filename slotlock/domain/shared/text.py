"""Normalization and validation of texts that users fill in."""

import unicodedata

# Control characters, surrogates, line and paragraph separators.
_FORBIDDEN_CATEGORIES = {"Cc", "Cs", "Zl", "Zp"}
# Embeddings, overrides and isolates reverse the text that follows: a name could imitate another.
_BIDI_CONTROLS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
# Letters and symbols without a visible form: Hangul fillers and the empty Braille pattern.
_INVISIBLE = frozenset("\u115f\u1160\u3164\uffa0\u2800")

# The cost of NFC grows with the square of consecutive combining marks: 2 s for 30,000 of them.
MAX_NORMALIZED_LENGTH = 1_000


def normalize_nfc(text: str) -> str:
    """Return the text in Unicode NFC, or unchanged if it is longer than any valid text."""
    return text if len(text) > MAX_NORMALIZED_LENGTH else unicodedata.normalize("NFC", text)


def normalize_name(name: str) -> str:
    """Return the name without surrounding blanks and in NFC, so that equal names compare equal."""
    return normalize_nfc(name.strip())


def is_blank(text: str) -> bool:
    """Return whether the text has no visible character."""
    return all(c in _INVISIBLE or unicodedata.category(c) in {"Cf", "Zs"} for c in text)


def validate_text(text: str, max_length: int) -> str | None:
    """Return the problem with a text of several lines and at most `max_length` characters."""
    if len(text) > max_length:
        return f"Please use at most {max_length} characters."
    if any(unicodedata.category(c) in {"Cc", "Cs"} and c not in "\t\n\r" for c in text):
        return "Control characters are not allowed."
    return None


def validate_line(text: str, max_length: int) -> str | None:
    """Return the problem with a one-line text of at most `max_length` characters, or None."""
    if len(text) > max_length:
        return f"Please use at most {max_length} characters."
    if _BIDI_CONTROLS.intersection(text) or any(
        unicodedata.category(c) in _FORBIDDEN_CATEGORIES for c in text
    ):
        return "Line breaks and control characters are not allowed."
    return None
