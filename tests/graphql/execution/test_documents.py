"""The limits on the size of a document, which are checked before validation."""

from collections.abc import Callable
from dataclasses import astuple
from itertools import cycle, islice
from typing import Any

import pytest
from graphql import FieldNode, get_introspection_query, parse

from slotlock.graphql.execution.document_cache import DocumentCache, DocumentError
from slotlock.graphql.limits import complexity
from slotlock.graphql.schema.schema import executable_schema


def rejection_code(text: str) -> str | None:
    """Return the code with which a document is rejected; None if it may be executed."""
    try:
        DocumentCache(executable_schema, introspection=True).resolve_operation(text, None)
    except DocumentError as error:
        return str(error.errors[0]["extensions"]["code"])
    return None


def slots_query(fields: str) -> str:
    """Build a query for these fields of slots."""
    return "{ slots { nodes { " + fields + " } } }"


def deep_query(levels: int) -> str:
    """Build a query with this many levels of fields."""
    parents = ["slots", "nodes", *islice(cycle(["myBooking", "slot"]), levels - 3)]
    return "{" + "{".join([*parents, "id"]) + "}" * levels


def slot_fields(count: int) -> str:
    """Build this many fields of a slot at four places, to keep the number of equal fields low."""
    names = ("id", "title", "capacity", "remaining", "isBooked", "version", "status", "kind")
    per_place, remainder = divmod(count - 6, 4)
    text = " ".join(islice(cycle(names), per_place + remainder))
    for _ in range(3):
        text = " ".join(islice(cycle(names), per_place)) + " myBooking { slot { " + text + " } }"
    return text


def aliases_in_fragments(count: int) -> str:
    """Build a query with this many aliases, most of them in a fragment of three."""
    fragment = "fragment F on Slot { a: title b: title c: title }"
    others = " ".join(f"m{n}: title" for n in range(count % 3))
    return slots_query("...F " * (count // 3) + others) + fragment


def test_a_document_that_only_the_short_way_uses_outlives_a_thousand_newer_ones() -> None:
    documents = DocumentCache(executable_schema, introspection=False)
    text = "query Used { __typename }"

    def use_by_two(other: str) -> None:
        operations = documents.parse(text) if other == text else {}
        documents._accepted.put(other, operations, "one")
        documents._accepted.use(other, "another")

    use_by_two(text)
    for number in range(1_000):
        assert documents.find_operation(text, "Used") is not None, number
        use_by_two(f"query Q{number} {{ __typename }}")
    assert documents.find_operation("query Q0 { __typename }", "Q0") is None


@pytest.mark.parametrize(
    ("maximum", "build"),
    [
        pytest.param(20_000, "{ __typename }".ljust, id="bytes"),
        pytest.param(
            20_000,
            lambda n: "{ __typename } #" + "ä" * 5_000 + "x" * (n - 10_016),
            id="bytes of UTF-8",
        ),
        pytest.param(
            1_000, lambda n: "{ nodes(ids: [" + '"" ' * (n - 12) + "]) { id } }", id="tokens"
        ),
        pytest.param(400, lambda n: "{ node(id: " + "1" * n + ") { id } }", id="digits in a row"),
        pytest.param(10, deep_query, id="depth"),
        pytest.param(
            15, lambda n: slots_query(" ".join(f"a{i}: title" for i in range(n))), id="aliases"
        ),
        pytest.param(15, aliases_in_fragments, id="aliases in fragments"),
        pytest.param(20, lambda n: slots_query("title @skip(if: true) " * n), id="directives"),
        pytest.param(
            20,
            lambda n: slots_query("... @skip(if: true) { title }" * n),
            id="directives on fragments",
        ),
        pytest.param(
            20, lambda n: "query" + " @x" * (n - 1) + "{ id @x }", id="directives on operations"
        ),
        pytest.param(
            20,
            lambda n: "query ($a: ID" + " @x" * (n - 1) + ") { id @x }",
            id="directives on variables",
        ),
        pytest.param(
            20,
            lambda n: slots_query("...F") + "fragment F on Slot" + " @x" * n + "{ id }",
            id="directives on definitions of fragments",
        ),
        pytest.param(
            20,
            lambda n: "{ __typename } fragment F on Slot" + " @x" * n + "{ id }",
            id="directives on unused fragments",
        ),
        pytest.param(15, lambda n: "{" + "__typename " * n + "}", id="root fields"),
        pytest.param(
            20_000,
            lambda n: (
                "{" + "__typename " * (n % 100) + "slots(first: 100) {"
                "nodes {" + slot_fields(n // 100 - 2) + "} } }"
            ),
            id="values",
        ),
        pytest.param(400, lambda n: slots_query(slot_fields(n - 2)), id="fields"),
        pytest.param(2_000, lambda n: "\n" * n + "{ __typename }", id="line ends"),
        pytest.param(2_000, lambda n: "\r" * n + "{ __typename }", id="carriage returns"),
        pytest.param(
            400,
            lambda n: (
                slots_query("title " * (n % 2) + "...F " * (n // 2 - 1))
                + "fragment F on Slot { id title }"
            ),
            id="fields in fragments",
        ),
    ],
)
def test_a_document_may_reach_each_limit_and_not_exceed_it(
    maximum: int, build: Callable[[int], str]
) -> None:
    assert rejection_code(build(maximum)) in (None, "GRAPHQL_VALIDATION_FAILED")
    assert rejection_code(build(maximum + 1)) == "LIMIT_EXCEEDED"


@pytest.mark.parametrize("spreads", [2, 3])
def test_nested_fragments_that_multiply_are_rejected(spreads: int) -> None:
    levels = [f"fragment F{n} on Slot {{ {f'...F{n + 1} ' * spreads} }}" for n in range(60)]
    text = slots_query("...F0") + "".join(levels) + "fragment F60 on Slot { id }"
    assert rejection_code(text) == "LIMIT_EXCEEDED"
    assert rejection_code(text.replace(f"...F{30} ", "", spreads - 1)) == "LIMIT_EXCEEDED"


def test_each_field_of_many_fragments_is_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[str] = []
    field_cost = complexity._CostVisitor._field_cost

    def recording_field_cost(
        self: complexity._CostVisitor, node: FieldNode, *rest: Any
    ) -> complexity.DocumentCost:
        measured.append(node.name.value)
        return field_cost(self, node, *rest)

    monkeypatch.setattr(complexity._CostVisitor, "_field_cost", recording_field_cost)
    levels = [f"fragment F{n} on Slot {{ {f'...F{n + 1} ' * 3} id }}" for n in range(60)]
    text = slots_query("...F0") + "".join(levels) + "fragment F60 on Slot { id }"
    assert rejection_code(text) == "LIMIT_EXCEEDED"
    assert len(measured) == 2 + 61


@pytest.mark.parametrize("spreads", [1, 2, 400])
def test_costs_stop_at_a_ceiling_above_every_limit(spreads: int) -> None:
    fragments = (f"fragment F{n} on Slot {{ {f'...F{n + 1} ' * spreads} }}" for n in range(60))
    last = "fragment F60 on Slot { history { by { id } } ...F0 }"
    document = parse(slots_query("...F0 " * spreads) + "".join(fragments) + last)
    costs = list(complexity._CostVisitor(executable_schema, document).all_costs())
    assert all(max(astuple(c)) <= complexity.COUNT_CEILING for c in costs)


def test_nested_fragments_that_do_not_multiply_are_accepted() -> None:
    levels = [f"fragment F{n} on Slot {{ ...F{n + 1} }}" for n in range(60)]
    assert (
        rejection_code(slots_query("...F0") + "".join(levels) + "fragment F60 on Slot { id }")
        is None
    )


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
def test_fragments_inside_themselves_are_rejected(fragments: str) -> None:
    assert rejection_code(slots_query("...A") + fragments) == "GRAPHQL_VALIDATION_FAILED"


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
def test_every_depth_of_nesting_gets_a_code(kind: str) -> None:
    codes = {rejection_code(NESTED[kind](levels)) for levels in range(1, 480, 13)}
    assert codes <= {None, "LIMIT_EXCEEDED", "GRAPHQL_VALIDATION_FAILED", "BAD_USER_INPUT"}
    assert rejection_code(NESTED[kind](480)) == "LIMIT_EXCEEDED"
    assert rejection_code(NESTED[kind](320)) == "LIMIT_EXCEEDED"


@pytest.mark.parametrize(
    "nesting", ["fields { type { %s } }", "possibleTypes { interfaces { %s } }"]
)
def test_introspection_that_multiplies_is_rejected(nesting: str) -> None:
    selection = "name"
    for _ in range(6):
        selection = nesting % selection
    assert rejection_code("{ __schema { types { " + selection + " } } }") == "LIMIT_EXCEEDED"


@pytest.mark.parametrize("with_options", [False, True])
def test_the_standard_introspection_query_is_within_every_limit(with_options: bool) -> None:
    query = get_introspection_query(
        specified_by_url=with_options,
        directive_is_repeatable=with_options,
        schema_description=with_options,
        input_value_deprecation=with_options,
    )
    assert rejection_code(query) is None


@pytest.mark.parametrize("name", [None, "C"])
def test_an_ambiguous_or_unknown_operation_name_is_rejected(name: str | None) -> None:
    with pytest.raises(DocumentError) as rejected:
        DocumentCache(executable_schema, introspection=True).resolve_operation(
            "query A { __typename } query B { __typename }", name
        )
    assert rejected.value.errors[0]["extensions"]["code"] == "BAD_USER_INPUT"
