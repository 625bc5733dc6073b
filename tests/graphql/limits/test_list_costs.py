"""Nested lists multiply: the estimated size of a result is limited, and so is the actual one."""

import httpx
import pytest
from graphql import GraphQLSchema, build_schema, parse

from slotlock.graphql.limits import complexity
from slotlock.graphql.limits.complexity import DOCUMENT_LIMITS
from slotlock.graphql.schema.schema import executable_schema
from tests.support.apps.processes import AppProcess
from tests.support.clients.client import GraphQLTestClient, Json
from tests.support.stores.users import create_user_tokens

NESTED_SCHEMA = build_schema(
    """
    type Query { a(first: Int!): AConnection!, ids(ids: [ID!]!): [A!]!, one: A }
    type AConnection { nodes: [A!]!, edges: [AEdge!]!, total: Int! }
    type AEdge { node: A! }
    type A { id: ID!, a(first: Int!): AConnection!, words: [String!], some: [A!]!
      few(first: Int! = 500): [A!]! }
    """
)
WEEKDAYS = ("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY")
MEETING_COUNT = 365
COURSE: Json = {
    "title": "Latin",
    "kind": "COURSE",
    "timetable": {
        "first": "2031-01-01",
        "last": "2031-12-31",
        "weekly": [{"weekday": day, "startTime": "09:00", "endTime": "10:00"} for day in WEEKDAYS],
    },
}
MUTATION = "mutation($input: CreateSlotInput!) { %s }"
CREATE_SLOT = (
    "%s: createSlot(input: $input) { ... on Slot { id meetings { startTime endTime __typename } } }"
)
MEETINGS = "query($ids: [ID!]!) { nodes(ids: $ids) { ... on Slot { meetings { %s } } } }"


def estimated_values(text: str, schema: GraphQLSchema = NESTED_SCHEMA) -> int:
    """Return the estimated number of values in the result of the first operation."""
    return next(iter(complexity._CostVisitor(schema, parse(text)).all_costs())).values


def nested_pages(arguments: list[str], selection: str = "id") -> str:
    """Build a query of pages inside pages with these arguments."""
    for argument in reversed(arguments):
        selection = f"a{argument} {{ nodes {{ {selection} }} }}"
    return "{" + selection + "}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{ one { id } }", 2),
        ("{ a { total } }", 100 * 2),
        ("{ a(first: 3) { nodes { id } } }", 3 * 3),
        ("{ a(first: 3) { nodes { id } edges { node { id } } } }", 3 * 6),
        ("{ a(first: 3) { ... { nodes { ...F } } } } fragment F on A { id }", 3 * 3),
        ("{ a(first: 3) { ...C } } fragment C on AConnection { nodes { id } }", 3 * 3),
        ("{ a(first: 2) { nodes { a(first: 3) { nodes { id } } } } }", 2 * (2 + 3 * 3)),
        ("{ one { words some { id } } }", 1 + 5 + 5 * 2),
        ("{ one { few { id } } }", 1 + 5 * 2),
        ("{ one { few(first: 2) { id } } }", 1 + 2 * 2),
        ("query($n: Int!) { one { few(first: $n) { id } } }", 1 + 100 * 2),
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
def test_fields_in_a_list_count_once_for_each_possible_item(text: str, expected: int) -> None:
    assert estimated_values(text) == expected


def test_a_page_without_first_counts_the_default_of_the_schema() -> None:
    assert estimated_values("{ slots { nodes { id } } }", executable_schema) == 20 * 3


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{ auditLog(filter: {}, first: 100) { nodes { booking { id slot { id } } } } }", 100 * 6),
        ("{ slots(first: 10) { nodes { series { id } } } }", 10 * 4),
        ("{ slots(first: 10) { nodes { series { slots { nodes { id } } } } } }", 10 * 63),
        ("{ slots(first: 99) { nodes { series { slots(first: 99) { nodes { id } } } } } }", 29_700),
    ],
)
def test_what_a_reference_shows_counts_in_each_item(text: str, expected: int) -> None:
    assert estimated_values(text, executable_schema) == expected
    is_rejected = complexity.exceeded_limit(executable_schema, parse(text)) is not None
    assert is_rejected == (expected > DOCUMENT_LIMITS.values)


def test_a_fragment_counts_in_each_list_that_spreads_it() -> None:
    fragment = "fragment F on A { id words }"
    in_one, in_list = "one { ...F }", "a(first: 10) { nodes { ...F } }"
    assert estimated_values(f"{{ {in_one} {in_list} }} {fragment}") == 1 + 6 + 10 * 8
    assert estimated_values(f"{{ {in_list} {in_one} }} {fragment}") == 1 + 6 + 10 * 8


@pytest.mark.parametrize(
    "arguments",
    [["(first: 100)"] * 3, ["(first: $n)"] * 3, [""] * 4, ["(first: 100)"] * 2 + [""] * 40],
)
def test_deeply_nested_pages_exceed_the_limit(arguments: list[str]) -> None:
    document = parse(nested_pages(arguments))
    assert complexity.exceeded_limit(NESTED_SCHEMA, document) is not None


def test_a_hundred_items_with_all_their_fields_are_within_the_limit() -> None:
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


@pytest.fixture
def organizer(app: AppProcess, http: httpx.AsyncClient) -> GraphQLTestClient:
    tokens = create_user_tokens(app.environment, 0)
    return GraphQLTestClient(http, app.url, tokens.organizer)


async def test_a_query_whose_result_exceeds_the_limit_gets_an_error(
    organizer: GraphQLTestClient,
) -> None:
    course = await organizer.execute(MUTATION % CREATE_SLOT % "course", input=COURSE)
    ten_fields = MEETINGS % " ".join(f"a{n}: startTime" for n in range(10))
    # Each meeting counts as an item and has ten fields.
    max_courses = DOCUMENT_LIMITS.values // (MEETING_COUNT * 11)
    courses = await organizer.execute(ten_fields, ids=[course["id"]] * max_courses)
    assert [len(slot["meetings"]) for slot in courses] == [MEETING_COUNT] * max_courses
    too_many = [course["id"]] * (max_courses + 1)
    assert await organizer.error_code(ten_fields, ids=too_many) == "LIMIT_EXCEEDED"
    assert len(await organizer.execute(MEETINGS % "startTime", ids=too_many)) == max_courses + 1


async def test_the_result_of_a_mutation_may_exceed_the_limit(organizer: GraphQLTestClient) -> None:
    names = [f"m{n}" for n in range(14)]
    assert len(names) * MEETING_COUNT * 4 > DOCUMENT_LIMITS.values
    mutation = MUTATION % " ".join(CREATE_SLOT % name for name in names)
    result = await organizer.send(mutation, input=COURSE)
    assert "errors" not in result
    meeting_counts = [len(result["data"][name]["meetings"]) for name in names]
    assert meeting_counts == [MEETING_COUNT] * len(names)
