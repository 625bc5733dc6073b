"""Names of sheets in a workbook: unique, and accepted by Excel."""

from hypothesis import given
from hypothesis import strategies as st

from slotlock.api.exports.workbook import MAX_SHEET_NAME_LENGTH, SheetNames


@given(st.lists(st.text(max_size=40), max_size=12))
def test_every_title_gives_a_unique_sheet_name_that_excel_accepts(titles: list[str]) -> None:
    names = SheetNames("Summary")
    sheet_names = [names.name(title) for title in [*titles, *titles, "summary", "SUMMARY"]]
    assert len({name.casefold() for name in [*sheet_names, "Summary"]}) == len(sheet_names) + 1
    for name in sheet_names:
        assert 1 <= len(name.encode("utf-16-le")) // 2 <= MAX_SHEET_NAME_LENGTH
        assert not set(name) & set("[]:*?/\\\0\n")
        assert not name.startswith("'")
        assert not name.endswith("'")
    second_names = SheetNames("Summary")
    assert [
        second_names.name(title) for title in [*titles, *titles, "summary", "SUMMARY"]
    ] == sheet_names


def test_equal_sheet_names_are_numbered() -> None:
    names = SheetNames()
    long_title = "Swimming for beginners of every age"
    assert [
        names.name(title) for title in (long_title, long_title.upper(), "'a/b'", "a b", "")
    ] == [
        "Swimming for beginners of every",
        "SWIMMING FOR BEGINNERS OF E (2)",
        "a b",
        "a b (2)",
        "Sheet",
    ]
