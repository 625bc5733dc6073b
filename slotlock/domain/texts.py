"""What may stand in a line of text that people fill in."""

import unicodedata

# Control characters, surrogates, line and paragraph separators: none belongs in a one-line text.
_FORBIDDEN = {"Cc", "Cs", "Zl", "Zp"}


def line_problem(text: str, longest: int) -> str | None:
    """What is wrong with this one-line text of at most `longest` characters, or None."""
    if len(text) > longest:
        return f"At most {longest} characters."
    if any(unicodedata.category(character) in _FORBIDDEN for character in text):
        return "Control characters and line breaks are not allowed."
    return None
