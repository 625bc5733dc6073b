"""Documents are measured before they cost anything, and each text is parsed once."""

from collections.abc import Callable
from itertools import cycle, islice

import pytest
from graphql import get_introspection_query

from slotlock.graphql.documents import MAX_REMEMBERED, DocumentError, Documents
from slotlock.graphql.schema import executable


def refusal(text: str) -> str | None:
    """The code with which a document is refused; None for one that may be executed."""
    try:
        Documents(executable).operation(text, None)
    except DocumentError as error:
        return str(error.errors[0]["extensions"]["code"])
    return None


def of_slots(fields: str) -> str:
    return "{ slots { nodes { " + fields + " } } }"


def deep(levels: int) -> str:
    """Fields inside fields, so many in all."""
    around = ["slots", "nodes", *islice(cycle(["myBooking", "slot"]), levels - 3)]
    return "{" + "{".join([*around, "id"]) + "}" * levels


def aliases_in_fragments(number: int) -> str:
    """A fragment with three aliases, used again and again, and single ones."""
    thrice = "fragment F on Slot { a: title b: title c: title }"
    more = " ".join(f"m{n}: title" for n in range(number % 3))
    return of_slots("...F " * (number // 3) + more) + thrice


@pytest.mark.parametrize(
    ("most", "of_size"),
    [
        pytest.param(20_000, "{ __typename }".ljust, id="characters"),
        pytest.param(
            1_000, lambda n: "{ nodes(ids: [" + '"" ' * (n - 12) + "]) { id } }", id="tokens"
        ),
        pytest.param(10, deep, id="depth"),
        pytest.param(
            15, lambda n: of_slots(" ".join(f"a{i}: title" for i in range(n))), id="aliases"
        ),
        pytest.param(15, aliases_in_fragments, id="aliases in fragments"),
        pytest.param(20, lambda n: of_slots("title @skip(if: true) " * n), id="directives"),
        pytest.param(
            20,
            lambda n: of_slots("... @skip(if: true) { title }" * n),
            id="directives on fragments",
        ),
        pytest.param(15, lambda n: "{" + "__typename " * n + "}", id="root fields"),
        pytest.param(400, lambda n: of_slots("title " * (n - 2)), id="fields"),
        pytest.param(
            400,
            lambda n: (
                of_slots("title " * (n % 2) + "...F " * (n // 2 - 1))
                + "fragment F on Slot { id title }"
            ),
            id="fields in fragments",
        ),
    ],
)
def test_a_document_may_be_as_large_as_the_limit_and_no_larger(
    most: int, of_size: Callable[[int], str]
) -> None:
    assert refusal(of_size(most)) is None
    assert refusal(of_size(most + 1)) == "LIMIT_EXCEEDED"


@pytest.mark.parametrize("spreads", [2, 3])
def test_sixty_levels_of_fragments_that_double_are_refused(spreads: int) -> None:
    levels = [f"fragment F{n} on Slot {{ {f'...F{n + 1} ' * spreads} }}" for n in range(60)]
    bomb = of_slots("...F0") + "".join(levels) + "fragment F60 on Slot { id }"
    assert refusal(bomb) == "LIMIT_EXCEEDED"
    assert refusal(bomb.replace(f"...F{30} ", "", spreads - 1)) == "LIMIT_EXCEEDED"


def test_sixty_levels_of_fragments_that_do_not_are_fine() -> None:
    levels = [f"fragment F{n} on Slot {{ ...F{n + 1} }}" for n in range(60)]
    assert refusal(of_slots("...F0") + "".join(levels) + "fragment F60 on Slot { id }") is None


@pytest.mark.parametrize(
    "fragments",
    [
        "fragment A on Slot { ...A }",
        "fragment A on Slot { ...B } fragment B on Slot { id ...A }",
        "fragment A on Slot { myBooking { slot { ...A } } }",
        "fragment A on Slot { ...B ...B } fragment B on Slot { ...C ...C } "
        "fragment C on Slot { ...A ...A }",
    ],
)
def test_fragments_inside_themselves_are_refused(fragments: str) -> None:
    assert refusal(of_slots("...A") + fragments) == "GRAPHQL_VALIDATION_FAILED"


NESTED: dict[str, Callable[[int], str]] = {
    "fields": lambda n: "{" + "me {" * n + "id" + "}" * n + "}",
    "inline fragments": lambda n: "{" + "... {" * n + "__typename" + "}" * n + "}",
    "introspection": lambda n: (
        "{ __schema { queryType {" + "ofType {" * n + "name" + "}" * n + "}}}"
    ),
    "lists": lambda n: "{ nodes(ids: " + "[" * n + "]" * n + ") { id } }",
    "objects": lambda n: "{ slots(filter: " + "{text:" * n + "1" + "}" * n + ") { nodes { id } } }",
    "types": lambda n: "query ($a: " + "[" * n + "ID" + "]" * n + ") { nodes(ids: $a) { id } }",
}


@pytest.mark.parametrize("kind", NESTED)
def test_no_depth_of_nesting_breaks_anything(kind: str) -> None:
    codes = {refusal(NESTED[kind](levels)) for levels in range(1, 480, 13)}
    assert codes <= {None, "LIMIT_EXCEEDED", "GRAPHQL_VALIDATION_FAILED"}
    assert refusal(NESTED[kind](480)) == "LIMIT_EXCEEDED"
    assert refusal(NESTED[kind](320)) == "LIMIT_EXCEEDED"


@pytest.mark.parametrize(
    "around", ["fields { type { %s } }", "possibleTypes { interfaces { %s } }"]
)
def test_introspection_that_multiplies_itself_is_refused(around: str) -> None:
    selection = "name"
    for _ in range(6):
        selection = around % selection
    assert refusal("{ __schema { types { " + selection + " } } }") == "GRAPHQL_VALIDATION_FAILED"


@pytest.mark.parametrize("everything", [False, True])
def test_the_standard_introspection_query_passes_every_limit(everything: bool) -> None:
    query = get_introspection_query(
        specified_by_url=everything,
        directive_is_repeatable=everything,
        schema_description=everything,
        input_value_deprecation=everything,
    )
    assert refusal(query) is None


def test_a_text_is_parsed_once() -> None:
    documents = Documents(executable)
    text = "query A { __typename } query B { me { id } }"
    first, second = documents.operation(text, "A"), documents.operation(str(text), "B")
    assert first.document is second.document
    assert first.name != second.name
    assert documents.operation(text + " ", "A").document is not first.document


def test_only_the_texts_used_lately_are_remembered() -> None:
    documents = Documents(executable)
    used, unused = "{ used: __typename }", "{ unused: __typename }"
    kept, forgotten = (documents.operation(text, None).document for text in (used, unused))
    for number in range(MAX_REMEMBERED - 1):
        documents.operation(f"{{ a{number}: __typename }}", None)
        assert documents.operation(used, None).document is kept
    assert documents.operation(unused, None).document is not forgotten


@pytest.mark.parametrize("name", [None, "C"])
def test_the_operation_that_is_meant_has_to_be_clear(name: str | None) -> None:
    with pytest.raises(DocumentError) as refused:
        Documents(executable).operation("query A { __typename } query B { __typename }", name)
    assert refused.value.errors[0]["extensions"]["code"] == "BAD_USER_INPUT"
