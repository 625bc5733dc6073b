"""Values are immutable and equal by attributes; texts are normalized and folded in bounded time."""

import unicodedata
from collections.abc import Callable
from dataclasses import field, replace

import pytest
from email_validator import EmailNotValidError, validate_email
from hypothesis import example, given
from hypothesis import strategies as st

from slotlock.domain.booking.booking import BookingId, BookingRef, SlotId
from slotlock.domain.shared.folding import (
    MAX_QUERY_WORDS,
    MAX_STORED_WORDS,
    UNBROKEN_LENGTH,
    fold,
    query_words,
    search_words,
)
from slotlock.domain.shared.pagination import MAX_COUNT, exact_count
from slotlock.domain.shared.sorting import sort_key
from slotlock.domain.shared.text import (
    MAX_NORMALIZED_LENGTH,
    normalize_line,
    normalize_nfc,
    strip_blanks,
)
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.email_addresses import normalize_email
from tests.support.domain.search_pairs import SEARCH_PAIRS

MANY_MARKS = "a" + "\u0301" * 15_000 + "\u0316" * 15_000


def change_a_value(ref: BookingRef) -> None:
    """Be rejected by the type checker, which else would report that the comment is unused."""
    ref.slot_id = ref.slot_id  # type: ignore[misc]


def test_values_with_equal_attributes_are_equal_and_have_the_same_hash() -> None:
    ref = BookingRef(SlotId("slot"), BookingId("booking"))

    assert ref == replace(ref)
    assert hash(ref) == hash(replace(ref))
    assert ref != replace(ref, slot_id=SlotId("another"))


def test_a_value_has_no_attributes_but_its_own() -> None:
    assert not hasattr(BookingRef(SlotId("slot"), BookingId("booking")), "__dict__")


def test_a_value_neither_compares_nor_shows_what_its_field_excludes() -> None:
    @value_object
    class Place:
        """A place, with what it was loaded from."""

        number: int
        row: str = "a"
        stored: dict[str, int] = field(default_factory=dict, compare=False, repr=False)

    first, other = Place(1), Place(1, stored={"number": 1})

    assert first == other
    assert hash(first) == hash(other)
    assert first not in (Place(2), (1, "a"))
    assert repr(other).endswith("Place(number=1, row='a')")


@pytest.mark.parametrize(
    ("count", "shown"), [(0, 0), (MAX_COUNT, MAX_COUNT), (MAX_COUNT + 1, None)]
)
def test_a_count_above_the_maximum_is_not_shown(count: int, shown: int | None) -> None:
    assert exact_count(count) == shown


def test_normalize_nfc_composes_a_text() -> None:
    assert normalize_nfc("Zoe\u0308") == "Zo\u00eb"


@pytest.mark.parametrize(
    "blank", [" ", "\t", "\n", "\r\n", "\u00a0", "\u2003", "\u2028", "\u3000", "\u200b", "\ufeff"]
)
def test_blanks_around_a_text_are_removed_and_those_inside_stay(blank: str) -> None:
    assert strip_blanks(f"{blank} a{blank}b {blank}") == f"a{blank}b"
    assert normalize_line(f"{blank}Zoe\u0308{blank}") == "Zo\u00eb"
    assert normalize_email(f"{blank}a@x.test{blank}") == "a@x.test"


@given(st.from_regex(r"[aZ9_+.-]{1,9}@([aZ9-]{1,5}\.){1,3}[aZ9]{1,3}", fullmatch=True))
@example("a" * 64 + "@" + "b" * 63 + ".example")
@example("a" * 65 + "@b.example")
@example("a@" + "b" * 64 + ".example")
@example("a@" + "b." * 125 + "de")
@example("a@" + "b." * 126 + "de")
@example("a@xn--zz.example")
def test_a_plain_address_is_what_the_library_makes_of_it(address: str) -> None:
    try:
        valid = validate_email(address, check_deliverability=False, globally_deliverable=False)
    except EmailNotValidError:
        assert normalize_email(address) is None
    else:
        assert normalize_email(address) == valid.normalized.lower()


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


def test_chinese_texts_are_in_the_order_of_pinyin_after_those_in_letters() -> None:
    in_order = ["Ünal", "Zoe", "阿明", "安娜", "陈静", "陈伟", "李娜", "李强", "欧阳雪", "王芳"]
    in_order += ["王婷", "张三", "赵喆", "郑爽", "한나"]
    assert sorted(in_order) != in_order
    assert sorted(in_order, key=sort_key) == in_order


@given(st.text(max_size=20), st.text(max_size=20))
def test_texts_have_the_same_key_only_if_they_fold_to_the_same(one: str, other: str) -> None:
    assert (sort_key(one) == sort_key(other)) == (fold(one) == fold(other))


def test_the_order_of_pinyin_has_each_chinese_character_once() -> None:
    han = set(map(chr, range(0x4E00, 0xA000)))
    assert {sort_key(each) for each in han} == han
