"""Plans of Strawberry schemas: results as of graphql-core, and which wrappers are not called."""

import functools
import gc
import weakref
from typing import Any

import pytest
from graphql import GraphQLObjectType, parse, validate

from comparison import comparable, run_compiled, run_reference
from strawberry_compiled import awaitables
from strawberry_compiled.operation import compile_operation
from strawberry_compiled.strawberry_fields import attribute_reader, direct_call
from strawberry_schema import EXECUTABLE, Shelf

WORKS = """{
  works { __typename number title where ... on Book { genre others { title genre } } ...S }
} fragment S on Song { seconds }"""
ANYTHING = """query($kind: String!) {
  anything(kind: $kind) {
    __typename
    ... on Work { number }
    ... on Song { seconds }
    ... on BookPage { items { genre } }
  }
}"""
DIRECTIVES = "query($no: Boolean!) { books { number @skip(if: $no) genre @include(if: $no) } }"
SEARCH = "query($search: Search!, $again: [Search!]) { search(search: $search, again: $again) }"
FULL_SEARCH: dict[str, Any] = {
    "text": "x",
    "genre": "VERSE",
    "spans": [{"start": 1}, {"start": 2, "end": 3}],
    "words": ["a", None],
    "pageSize": 5,
    "outermost": {"start": 4, "end": None},
}
REQUESTS: list[tuple[str, dict[str, Any]]] = [
    (WORKS, {}),
    ("{ books { title others(count: 1) { where } } }", {}),
    ("query($n: Int = 1) { books(first: $n) { number others(count: 5) { number } } }", {"n": 2}),
    *((ANYTHING, {"kind": kind}) for kind in ("book", "page", "cast", "error", "row", "none")),
    (SEARCH, {"search": FULL_SEARCH, "again": [FULL_SEARCH, {"text": "y"}]}),
    (SEARCH, {"search": {"text": "x", "genre": None}, "again": {"text": "z", "spans": []}}),
    (SEARCH, {"search": {"text": 1}}),
    (SEARCH, {"search": {"text": "x", "genre": "poem"}, "again": None}),
    (SEARCH, {"search": {"text": "x", "other": 1}}),
    ("query($t: String!, $g: Genre) { search(search: {text: $t, genre: $g}) }", {"t": "x"}),
    (
        "query($t: String!, $g: Genre) { search(search: {text: $t, genre: $g}) }",
        {"t": "x", "g": None},
    ),
    ('{ edit(edit: {name: "x"}) other: edit(edit: {note: null}) }', {}),
    ("query($edit: Edit!) { edit(edit: $edit) }", {"edit": {"name": None}}),
    ('{ renamed(someIds: [1, "x"]) other: renamed(someIds: 3, theGenre: NOVEL) }', {}),
    ('{ loud(word: "x") fixed(number: 4) parent rootParameter stream }', {}),
    ("{ books { number } forbidden }", {}),
    ("{ newest { number genre title } }", {}),
    *((DIRECTIVES, {"no": no}) for no in (True, False, 1)),
]


@pytest.mark.parametrize(("text", "variables"), REQUESTS)
async def test_results_equal_those_of_graphql_core(text: str, variables: dict[str, Any]) -> None:
    document = parse(text)
    assert not validate(EXECUTABLE, document)
    expected_shelf, shelf = Shelf(), Shelf()
    expected = await run_reference(EXECUTABLE, document, variables, expected_shelf)
    result = await run_compiled(EXECUTABLE, document, variables, shelf)
    assert result is not None
    assert comparable(result) == comparable(expected)
    assert shelf.batches == expected_shelf.batches


async def test_loaders_load_a_level_of_a_list_in_one_batch() -> None:
    shelf = Shelf()
    document = parse("{ books(first: 4) { title others(count: 1) { title } } }")
    assert await run_compiled(EXECUTABLE, document, {}, shelf)
    assert sorted(key for batch in shelf.batches for key in batch) == [0, 1, 2, 3, 10, 20, 30]
    assert len(shelf.batches) <= 2


@pytest.mark.parametrize("name", ["works", "books", "search", "renamed", "parent", "rootParameter"])
def test_resolvers_without_extensions_are_called_directly(name: str) -> None:
    assert direct_call(EXECUTABLE, EXECUTABLE.query_type.fields[name]) is not None


@pytest.mark.parametrize("name", ["forbidden", "loud", "edit"])
def test_permissions_extensions_and_rare_inputs_use_the_wrapper(name: str) -> None:
    assert direct_call(EXECUTABLE, EXECUTABLE.query_type.fields[name]) is None


def test_attributes_are_read_without_a_resolver() -> None:
    book = EXECUTABLE.type_map["Book"].fields
    readable = {name for name in book if attribute_reader(book[name]) is not None}
    assert readable == {"number", "genre"}


def test_a_replaced_resolver_is_called() -> None:
    field = EXECUTABLE.type_map["Song"].fields["seconds"]
    original = field.resolve
    try:
        field.resolve = lambda *_: 7.0
        assert attribute_reader(field) is None
    finally:
        field.resolve = original


async def test_the_class_of_an_awaited_object_is_checked_in_its_first_execution_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    book = EXECUTABLE.type_map["Book"]
    assert isinstance(book, GraphQLObjectType)
    assert book.is_type_of is not None
    checked: list[object] = []
    is_type_of = book.is_type_of

    @functools.wraps(is_type_of)
    def recorded(value: Any, info: Any) -> Any:
        checked.append(value)
        return is_type_of(value, info)

    monkeypatch.setattr(book, "is_type_of", recorded)
    awaitables.plain_types.clear()
    operation = compile_operation(EXECUTABLE, parse("{ newest { number } }"))
    assert operation is not None
    for _ in range(3):
        result: Any = operation.execute(context_value=Shelf())
        assert (await result).data == {"newest": {"number": 9}}
    assert len(checked) == 1


async def test_an_execution_is_freed_when_it_ends() -> None:
    class Context:
        pass

    document = parse('{ books { where } search(search: {text: "x"}) }')
    operation = compile_operation(EXECUTABLE, document)
    assert operation is not None
    context = Context()
    freed = weakref.ref(context)
    result: Any = operation.execute(context_value=context)
    gc.disable()
    try:
        assert (await result).errors is None
        del context, result
        assert freed() is None
    finally:
        gc.enable()
