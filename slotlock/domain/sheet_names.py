"""Names for the sheets of a workbook, as Excel allows them."""

import re
import unicodedata

# Excel: at most 31 (of UTF-16's units), none of these, no apostrophe at either end, and no two that
# differ in case alone. XML cannot hold what is no character at all.
MAX_SHEET_NAME_LENGTH = 31
_FORBIDDEN = re.compile("[\\[\\]:*?/\\\\\x00-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


class SheetNames:
    """Gives names, each once: the same wishes in the same order get the same names."""

    def __init__(self, *taken: str) -> None:
        self._taken = set(map(_fold_case, taken))

    def name(self, title: str) -> str:
        """A name that begins like the wish, as far as Excel allows."""
        title = " ".join(_FORBIDDEN.sub(" ", title).split())
        name, number = _shorten(title, ""), 1
        while _fold_case(name) in self._taken:
            number += 1
            name = _shorten(title, f" ({number})")
        self._taken.add(_fold_case(name))
        return name


def _shorten(title: str, suffix: str) -> str:
    while _utf16_length(title) + len(suffix) > MAX_SHEET_NAME_LENGTH:
        title = title[:-1]
    return (title.strip(" '") or "Sheet") + suffix


def _utf16_length(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def _fold_case(name: str) -> str:
    return unicodedata.normalize("NFKC", name).casefold()
