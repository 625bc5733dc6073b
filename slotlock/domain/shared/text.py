"""What may stand in a line of text that people fill in."""

import unicodedata

# Control characters, surrogates, line and paragraph separators: none belongs in a one-line text.
_FORBIDDEN = {"Cc", "Cs", "Zl", "Zp"}
# Embeddings, overrides and isolates turn what follows round: a name could look like another's.
_BIDI_CONTROLS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
# Letters and symbols that are blank: fillers of Hangul, a cell of Braille without dots.
_INVISIBLE = frozenset("\u115f\u1160\u3164\uffa0\u2800")

# What it costs to compose a text grows with the square of the marks in a row: 2 s at 30,000.
MAX_NORMALIZED_LENGTH = 1_000


def normalize_nfc(text: str) -> str:
    """The text in Unicode NFC. One that is longer than anything here may be stays as it is."""
    return text if len(text) > MAX_NORMALIZED_LENGTH else unicodedata.normalize("NFC", text)


def normalize_name(name: str) -> str:
    """Return the name without surrounding blanks and in NFC, so that equal names compare equal."""
    return normalize_nfc(name.strip())


def is_blank(text: str) -> bool:
    """Whether nothing of the text is seen."""
    return all(c in _INVISIBLE or unicodedata.category(c) in {"Cf", "Zs"} for c in text)


def validate_line(text: str, max_length: int) -> str | None:
    """What is wrong with this one-line text of at most `longest` characters, or None."""
    if len(text) > max_length:
        return f"At most {max_length} characters."
    if _BIDI_CONTROLS.intersection(text) or any(
        unicodedata.category(c) in _FORBIDDEN for c in text
    ):
        return "Control characters and line breaks are not allowed."
    return None
