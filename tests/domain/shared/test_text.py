"""Unicode normalization, whose cost is bounded by the length of the text."""

import unicodedata
from collections.abc import Callable

import pytest

from slotlock.domain.shared.text import (
    MAX_NORMALIZED_LENGTH,
    normalize_line,
    normalize_nfc,
    strip_blanks,
)
from slotlock.domain.users.email_addresses import normalize_email

MANY_MARKS = "a" + "\u0301" * 15_000 + "\u0316" * 15_000


def test_normalize_nfc_composes_a_text() -> None:
    assert normalize_nfc("Zoe\u0308") == "Zo\u00eb"


@pytest.mark.parametrize(
    "blank", [" ", "\t", "\n", "\r\n", "\u00a0", "\u2003", "\u2028", "\u3000", "\u200b", "\ufeff"]
)
def test_blanks_around_a_text_are_removed_and_those_inside_stay(blank: str) -> None:
    assert strip_blanks(f"{blank} a{blank}b {blank}") == f"a{blank}b"
    assert normalize_line(f"{blank}Zoe\u0308{blank}") == "Zo\u00eb"
    assert normalize_email(f"{blank}a@x.test{blank}") == "a@x.test"


@pytest.mark.parametrize("function", [normalize_nfc, normalize_line, normalize_email])
def test_texts_longer_than_any_valid_one_are_not_normalized(
    monkeypatch: pytest.MonkeyPatch, function: Callable[[str], object]
) -> None:
    lengths: list[int] = []

    def normalize(form: str, text: str) -> str:
        lengths.append(len(text))
        return text

    monkeypatch.setattr(unicodedata, "normalize", normalize)
    function(MANY_MARKS)
    function(f"{MANY_MARKS}@x.test")
    assert max(lengths, default=0) <= MAX_NORMALIZED_LENGTH
