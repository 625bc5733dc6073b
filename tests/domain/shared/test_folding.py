"""Searches and lists fold texts in the same way."""

import pytest

from slotlock.domain.shared.folding import (
    MAX_QUERY_WORDS,
    MAX_STORED_WORDS,
    UNBROKEN_LENGTH,
    fold,
    query_words,
    search_words,
)
from slotlock.domain.shared.text import MAX_NORMALIZED_LENGTH
from tests.support.domain.search_pairs import SEARCH_PAIRS


def is_found(query: str, text: str) -> bool:
    """Return whether words of the text begin with all words of the query."""
    wanted, words = query_words(query), search_words(text)
    return bool(wanted) and all(any(each.startswith(word) for each in words) for word in wanted)


@pytest.mark.parametrize(("query", "text", "found"), SEARCH_PAIRS)
def test_a_search_finds_a_text(query: str, text: str, found: bool) -> None:
    assert is_found(query, text) is found


@pytest.mark.parametrize("text", [text for _, text, _ in SEARCH_PAIRS if search_words(text)])
def test_a_text_is_found_by_itself(text: str) -> None:
    assert is_found(text, text)


def test_folding_a_folded_text_changes_nothing() -> None:
    for code_point in range(0x3_0000):
        folded = fold(chr(code_point))
        assert fold(folded) == folded


def test_equal_letters_are_neighbors_in_a_list() -> None:
    titles = ["Zoo", "Łódź", "lodge", "Éclair", "eclair", "Øster", "Straße 1", "ost", "Strasse 2"]
    assert sorted(titles, key=fold) == [
        *("Éclair", "eclair", "lodge", "Łódź", "ost", "Øster", "Straße 1", "Strasse 2", "Zoo")
    ]


def test_the_words_of_long_texts_are_bounded() -> None:
    long = "".join(map(chr, range(0x4E00, 0x4E00 + 20_000)))
    words = search_words(long)
    assert len(words) == MAX_STORED_WORDS
    assert max(map(len, words)) == UNBROKEN_LENGTH
    assert len(query_words(" ".join(map(str, range(1_000))))) == MAX_QUERY_WORDS
    assert len(fold("a" + "\u0301" * 30_000 + "b")) <= MAX_NORMALIZED_LENGTH
