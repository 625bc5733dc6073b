"""The order of texts in lists: without capitals and accents, and Chinese by pinyin."""

import re
from functools import cache
from importlib import resources

from slotlock.domain.shared.folding import fold

_HAN = re.compile("[\u4e00-\u9fff]")


def sort_key(text: str) -> str:
    """Return a key for comparisons: the folded text, whose Chinese characters stand for others.

    Each stands for the one that has its rank, so that a database that knows code points only, and
    a cursor, have the order of pinyin (docs/decisions/0078).
    """
    folded = fold(text)
    return folded.translate(_pinyin_ranks()) if _HAN.search(folded) else folded


@cache
def _pinyin_ranks() -> dict[int, int]:
    # The order of the collation "zh" of Unicode CLDR 48 (Unicode License v3).
    file = resources.files("slotlock.domain.shared").joinpath("pinyin_order.txt")
    in_order = file.read_text(encoding="utf-8").strip()
    return str.maketrans(in_order, "".join(sorted(in_order)))
