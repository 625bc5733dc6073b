"""Documents are measured before they cost anything."""

from collections.abc import Callable
from itertools import cycle, islice
from typing import Any

import pytest
from graphql import FieldNode, get_introspection_query, parse

from slotlock.graphql.execution.documents import DocumentCache, DocumentError
from slotlock.graphql.limits import complexity
from slotlock.graphql.schema.schema import executable_schema


def refusal(text: str) -> str | None:
    """The code with which a document is refused; None for one that may be executed."""
    try:
        DocumentCache(executable_schema, introspection=True).resolve_operation(text, None)
    except DocumentError as error:
        return str(error.errors[0]["extensions"]["code"])
    return None


def of_slots(fields: str) -> str:
    return "{ slots { nodes { " + fields + " } } }"


def deep(levels: int) -> str:
    """Fields inside fields, so many in all."""
    around = ["slots", "nodes", *islice(cycle(["myBooking", "slot"]), levels - 3)]
    return "{" + "{".join([*around, "id"]) + "}" * levels


def wide(number: int) -> str:
    """So many fields of a slot in four places, so that few answer under one name in one place."""
    names = ("id", "title", "capacity", "remaining", "isBooked", "version", "status", "kind")
    each, more = divmod(number - 6, 4)
    text = " ".join(islice(cycle(names), each + more))
    for _ in range(3):
        text = " ".join(islice(cycle(names), each)) + " myBooking { slot { " + text + " } }"
    return text


def aliases_in_fragments(number: int) -> str:
    """A fragment with three aliases, used again and again, and single ones."""
    thrice = "fragment F on Slot { a: title b: title c: title }"
    more = " ".join(f"m{n}: title" for n in range(number % 3))
    return of_slots("...F " * (number // 3) + more) + thrice


@pytest.mark.parametrize(
    ("most", "of_size"),
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
            lambda n: of_slots("...F") + "fragment F on Slot" + " @x" * n + "{ id }",
            id="directives on definitions of fragments",
        ),
        pytest.param(
            20,
            lambda n: "{ __typename } fragment F on Slot" + " @x" * n + "{ id }",
            id="directives on fragments that nobody uses",
        ),
        pytest.param(15, lambda n: "{" + "__typename " * n + "}", id="root fields"),
        pytest.param(
            20_000,
            lambda n: (
                "{" + "__typename " * (n % 100) + "slots(first: 100) {"
                "nodes {" + wide(n // 100 - 2) + "} } }"
            ),
            id="values",
        ),
        pytest.param(400, lambda n: of_slots(wide(n - 2)), id="fields"),
        pytest.param(2_000, lambda n: "\n" * n + "{ __typename }", id="line ends"),
        pytest.param(2_000, lambda n: "\r" * n + "{ __typename }", id="other line ends"),
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
    assert refusal(of_size(most)) in (None, "GRAPHQL_VALIDATION_FAILED")
    assert refusal(of_size(most + 1)) == "LIMIT_EXCEEDED"


@pytest.mark.parametrize("spreads", [2, 3])
def test_sixty_levels_of_fragments_that_double_are_refused(spreads: int) -> None:
    levels = [f"fragment F{n} on Slot {{ {f'...F{n + 1} ' * spreads} }}" for n in range(60)]
    bomb = of_slots("...F0") + "".join(levels) + "fragment F60 on Slot { id }"
    assert refusal(bomb) == "LIMIT_EXCEEDED"
    assert refusal(bomb.replace(f"...F{30} ", "", spreads - 1)) == "LIMIT_EXCEEDED"


def test_each_field_of_a_bomb_is_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[str] = []
    field = complexity._CostVisitor._field_cost

    def counted(
        self: complexity._CostVisitor, node: FieldNode, *rest: Any
    ) -> complexity.DocumentCost:
        measured.append(node.name.value)
        return field(self, node, *rest)

    monkeypatch.setattr(complexity._CostVisitor, "_field_cost", counted)
    levels = [f"fragment F{n} on Slot {{ {f'...F{n + 1} ' * 3} id }}" for n in range(60)]
    bomb = of_slots("...F0") + "".join(levels) + "fragment F60 on Slot { id }"
    assert refusal(bomb) == "LIMIT_EXCEEDED"
    assert len(measured) == 2 + 61


@pytest.mark.parametrize("spreads", [1, 2, 400])
def test_sums_stop_at_a_number_that_any_limit_refuses(spreads: int) -> None:
    fragments = (f"fragment F{n} on Slot {{ {f'...F{n + 1} ' * spreads} }}" for n in range(60))
    last = "fragment F60 on Slot { history { by { id } } ...F0 }"
    document = parse(of_slots("...F0 " * spreads) + "".join(fragments) + last)
    sizes = list(complexity._CostVisitor(executable_schema, document).all_costs())
    assert all(max(getattr(s, n) for n in s.__slots__) <= complexity.COUNT_CEILING for s in sizes)


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
    assert refusal("{ __schema { types { " + selection + " } } }") == "LIMIT_EXCEEDED"


@pytest.mark.parametrize("everything", [False, True])
def test_the_standard_introspection_query_passes_every_limit(everything: bool) -> None:
    query = get_introspection_query(
        specified_by_url=everything,
        directive_is_repeatable=everything,
        schema_description=everything,
        input_value_deprecation=everything,
    )
    assert refusal(query) is None


@pytest.mark.parametrize("name", [None, "C"])
def test_the_operation_that_is_meant_has_to_be_clear(name: str | None) -> None:
    with pytest.raises(DocumentError) as refused:
        DocumentCache(executable_schema, introspection=True).resolve_operation(
            "query A { __typename } query B { __typename }", name
        )
    assert refused.value.errors[0]["extensions"]["code"] == "BAD_USER_INPUT"
