"""What answers in one place is compared pair by pair: a document has few such pairs."""

import pytest
from graphql import parse

from slotlock.graphql.execution.documents import DocumentCache, DocumentError
from slotlock.graphql.limits.field_merging import (
    MAX_FIELD_PAIRS,
    MAX_VISITED_FIELDS,
    _MergeCostVisitor,
    field_merge_excess,
)
from slotlock.graphql.schema.schema import executable_schema

TEN = "id title startTime endTime timeZone capacity remaining isBooked version status"


def of_slots(fields: str) -> str:
    """A document that asks for these fields of slots."""
    return "{ slots { nodes { " + fields + " } } }"


def counted(text: str) -> _MergeCostVisitor:
    """The counts of the first operation."""
    document = parse(text)
    snapshot = _MergeCostVisitor(document)
    snapshot.visit([document.definitions[0].selection_set], frozenset())  # type: ignore[attr-defined]
    return snapshot


@pytest.mark.parametrize(
    "text",
    [
        of_slots("id " * 80),
        of_slots("nothing { more } " * 60),  # before validation, which would take long to say so
        of_slots("myBooking { id } " * 60),
        of_slots("myBooking { " + "id " * 9 + "} " + "myBooking { " + "id " * 75 + "}"),
        of_slots("...A " * 3 + "id " * 40) + "fragment A on Slot {" + "id " * 40 + "}",
        of_slots("... on Slot { id } ... on Node { id } " * 40),
        "{ __typename } fragment Unused on Slot {" + "id " * 80 + "}",
    ],
)
def test_a_document_with_too_many_pairs_is_refused(text: str) -> None:
    with pytest.raises(DocumentError) as refused:
        DocumentCache(executable_schema, introspection=True).resolve_operation(text, None)
    (error,) = refused.value.errors
    assert error["extensions"]["code"] == "LIMIT_EXCEEDED"
    assert f"at most {MAX_FIELD_PAIRS} pairs" in error["message"]


def test_fragments_that_ask_for_the_same_are_taken() -> None:
    fragments = "".join(f"fragment F{n} on Slot {{ {TEN} myBooking {{ id }} }}" for n in range(15))
    text = of_slots(" ".join(f"...F{n}" for n in range(15))) + fragments
    assert DocumentCache(executable_schema, introspection=True).resolve_operation(text, None)


def test_pairs_are_counted_in_each_place_and_not_across_places() -> None:
    assert counted("{ a b c }").pairs == 0
    assert counted("{ a a a }").pairs == 3
    assert counted("{ a: b a: c }").pairs == 1
    assert counted("{ a { x y } b { x y } }").pairs == 0
    assert counted("{ a { x y } a { x y } }").pairs == 1 + 2
    assert counted("{ a ...F ...F } fragment F on Query { a }").pairs == 1


def test_a_fragment_inside_itself_is_looked_at_once() -> None:
    assert counted("{ ...F } fragment F on Query { a { ...F } ...F }").fields == 1
    many = " ".join(f"fragment F{n} on Q {{ a {{ ...F{n + 1} }} ...F{n + 1} }}" for n in range(60))
    snapshot = counted("{ ...F0 } " + many + " fragment F60 on Q { a }")
    assert snapshot.fields <= MAX_VISITED_FIELDS + 61


def test_many_operations_are_looked_at_no_longer_than_one() -> None:
    fields = " ".join(f"f{n}" for n in range(300))
    operations = " ".join(f"query O{n} {{ ...F }}" for n in range(100))
    text = f"{operations} fragment F on Query {{ {fields} }}"
    assert field_merge_excess(parse(text)) == (
        f"The operations of a document may have at most {MAX_VISITED_FIELDS} fields."
    )
