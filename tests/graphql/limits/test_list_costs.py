"""Lists multiply: what a document can ask for is bounded before anything is read."""

import pytest
from graphql import GraphQLSchema, build_schema, parse

from slotlock.graphql.limits import complexity
from slotlock.graphql.schema.schema import executable_schema

NESTED = build_schema(
    """
    type Query { a(first: Int!): AConnection!, ids(ids: [ID!]!): [A!]!, one: A }
    type AConnection { nodes: [A!]!, edges: [AEdge!]!, total: Int! }
    type AEdge { node: A! }
    type A { id: ID!, a(first: Int!): AConnection!, words: [String!], some: [A!]! }
    """
)


def values(text: str, schema: GraphQLSchema = NESTED) -> int:
    """How many values the first operation can ask for."""
    return next(iter(complexity._CostVisitor(schema, parse(text)).all_costs())).values


def pages(sizes: list[str], inmost: str = "id") -> str:
    """Pages inside pages, each with its arguments."""
    for size in reversed(sizes):
        inmost = f"a{size} {{ nodes {{ {inmost} }} }}"
    return "{" + inmost + "}"


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ("{ one { id } }", 2),
        ("{ a { total } }", 100 * 2),
        ("{ a(first: 3) { nodes { id } } }", 3 * 3),
        ("{ a(first: 3) { nodes { id } edges { node { id } } } }", 3 * 6),
        ("{ a(first: 3) { ... { nodes { ...F } } } } fragment F on A { id }", 3 * 3),
        ("{ a(first: 3) { ...C } } fragment C on AConnection { nodes { id } }", 3 * 3),
        ("{ a(first: 2) { nodes { a(first: 3) { nodes { id } } } } }", 2 * (2 + 3 * 3)),
        ("{ one { words some { id } } }", 1 + 5 + 5 * 2),
        ("{ ids(ids: [1, 2, 3]) { id } }", 3 * 2),
        ("query($ids: [ID!]!) { ids(ids: $ids) { id } }", 100 * 2),
        ("query($n: Int! = 1) { a(first: $n) { total } }", 100 * 2),
        ("{ a(first: 101) { total } }", 100 * 2),
        (f"{{ a(first: {'9' * 9000}) {{ total }} }}", 100 * 2),
        ("{ a(first: -5) { total } }", 1 * 2),
        ("{ a(first: 0) { total } }", 1 * 2),
        ('{ a(first: "x") { total } }', 100 * 2),
        ("{ a(first: null) { total } }", 100 * 2),
        ("{ nothing { a(first: 7) { total } } }", 3),
        ("subscription { a { nodes { id } } }", 3),
    ],
)
def test_a_list_counts_as_often_as_it_may_have_items(text: str, most: int) -> None:
    assert values(text) == most


def test_without_first_a_page_counts_as_what_the_schema_says() -> None:
    assert values("{ slots { nodes { id } } }", executable_schema) == 20 * 3


def test_a_fragment_counts_in_each_list_that_it_is_spread_in() -> None:
    once = "fragment F on A { id words }"
    assert values("{ one { ...F } a(first: 10) { nodes { ...F } } }" + once) == 1 + 6 + 10 * 8
    assert values("{ a(first: 10) { nodes { ...F } } one { ...F } }" + once) == 1 + 6 + 10 * 8


@pytest.mark.parametrize(
    "sizes",
    [["(first: 100)"] * 3, ["(first: $n)"] * 3, [""] * 4, ["(first: 100)"] * 2 + [""] * 40],
)
def test_pages_in_pages_in_pages_are_refused(sizes: list[str]) -> None:
    text = pages(sizes)
    assert complexity.exceeded_limit(NESTED, parse(text)) is not None


def test_a_hundred_of_anything_with_all_it_tells_is_fine() -> None:
    slot = """id title startTime endTime timeZone capacity remaining isBooked version status kind
      location meetings { startTime endTime } groupLimits { group limit }"""
    booking = "id status createdAt user { id name email groups } madeBy { id name }"
    history = "history { at action before after heldUntil overriddenLimits by { id name } }"
    for text in (
        f"query($n: Int!) {{ slots(first: $n) {{ nodes {{ {slot} }} pageInfo {{ endCursor }} }} }}",
        f'{{ slotRoster(slotId: "x", first: 100) {{ nodes {{ {booking} {history} }} }} }}',
        f"{{ myBookings(first: 100) {{ nodes {{ {booking} {history} slot {{ {slot} }} }} }} }}",
    ):
        assert complexity.exceeded_limit(executable_schema, parse(text)) is None
