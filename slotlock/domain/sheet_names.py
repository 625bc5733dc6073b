"""Names for the sheets of a workbook, as Excel allows them."""

import re
import unicodedata

# Excel: at most 31 (of UTF-16's units), none of these, no apostrophe at either end, and no two that
# differ in case alone. XML cannot hold what is no character at all.
LONGEST = 31
_FORBIDDEN = re.compile("[\\[\\]:*?/\\\\\x00-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


class SheetNames:
    """Gives names, each once: the same wishes in the same order get the same names."""

    def __init__(self, *taken: str) -> None:
        self._taken = set(map(_folded, taken))

    def name(self, wish: str) -> str:
        """A name that begins like the wish, as far as Excel allows."""
        wish = " ".join(_FORBIDDEN.sub(" ", wish).split())
        name, number = _cut(wish, ""), 1
        while _folded(name) in self._taken:
            number += 1
            name = _cut(wish, f" ({number})")
        self._taken.add(_folded(name))
        return name


def _cut(wish: str, end: str) -> str:
    while _units(wish) + len(end) > LONGEST:
        wish = wish[:-1]
    return (wish.strip(" '") or "Sheet") + end


def _units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def _folded(name: str) -> str:
    return unicodedata.normalize("NFKC", name).casefold()
