"""Texts are composed only as far as what it costs is bounded."""

import unicodedata
from collections.abc import Callable

import pytest

from slotlock.auth.accounts import normalize_email
from slotlock.domain.shared.text import MAX_NORMALIZED_LENGTH, normalize_name, normalize_nfc

MARKS = "a" + "\u0301" * 15_000 + "\u0316" * 15_000


def test_a_text_is_composed() -> None:
    assert normalize_nfc("Zoe\u0308") == "Zo\u00eb"


@pytest.mark.parametrize("read", [normalize_nfc, normalize_name, normalize_email])
def test_no_text_is_composed_that_is_longer_than_anything_may_be(
    monkeypatch: pytest.MonkeyPatch, read: Callable[[str], object]
) -> None:
    lengths: list[int] = []

    def normalize(form: str, text: str) -> str:
        lengths.append(len(text))
        return text

    monkeypatch.setattr(unicodedata, "normalize", normalize)
    read(MARKS)
    read(f"{MARKS}@x.test")
    assert max(lengths, default=0) <= MAX_NORMALIZED_LENGTH
