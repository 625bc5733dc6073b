"""The size of a result is limited: nested lists as estimated and counted, and its bytes."""

import json

import pytest
from graphql import GraphQLSchema, build_schema, parse

from slotlock.graphql.limits import complexity
from slotlock.graphql.limits.complexity import DOCUMENT_LIMITS
from slotlock.graphql.limits.result_size import MAX_RESULT_BYTES, RESULT_TOO_LARGE_BODY
from slotlock.graphql.schema.schema import executable_schema
from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import BookingClient
from tests.support.clients.client import GraphQLTestClient, Json, open_websocket
from tests.support.clients.series import MONDAY_TIMES

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
COUNT = 15
DESCRIPTION_LENGTH = 10_000
CREATE = """mutation($input: CreateSlotSeriesInput!) { createSlotSeries(input: $input) {
  ... on SlotSeriesCreated { seriesId slots { id %s } }
} }"""
FOUND = """{ slots(filter: {text: "Zitherverein"}) {
  totalCount
} }"""
NODES = "query($ids: [ID!]!) { nodes(ids: $ids) { ... on Slot { %s } } }"


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


async def test_a_query_whose_result_is_too_large_gets_an_error(organizer: BookingClient) -> None:
    course = await organizer.execute(MUTATION % CREATE_SLOT % "course", input=COURSE)
    ten_fields = MEETINGS % " ".join(f"a{n}: startTime" for n in range(10))
    # Each meeting counts as an item and has ten fields.
    max_courses = DOCUMENT_LIMITS.values // (MEETING_COUNT * 11)
    courses = await organizer.execute(ten_fields, ids=[course["id"]] * max_courses)
    assert [len(slot["meetings"]) for slot in courses] == [MEETING_COUNT] * max_courses
    too_many = [course["id"]] * (max_courses + 1)
    assert await organizer.error_code(ten_fields, ids=too_many) == "LIMIT_EXCEEDED"
    assert len(await organizer.execute(MEETINGS % "startTime", ids=too_many)) == max_courses + 1


async def test_the_result_of_a_mutation_may_exceed_the_limit(organizer: BookingClient) -> None:
    names = [f"m{n}" for n in range(14)]
    assert len(names) * MEETING_COUNT * 4 > DOCUMENT_LIMITS.values
    mutation = MUTATION % " ".join(CREATE_SLOT % name for name in names)
    result = await organizer.send(mutation, input=COURSE)
    assert "errors" not in result
    meeting_counts = [len(result["data"][name]["meetings"]) for name in names]
    assert meeting_counts == [MEETING_COUNT] * len(names)


async def create_slots(organizer: GraphQLTestClient, character: str) -> list[str]:
    """Create as many slots as COUNT, with the longest description; return their ids."""
    created = await organizer.execute(CREATE % "", input=series_input(character))
    return [slot["id"] for slot in created["slots"]]


def series_input(character: str, title: str = "Yoga") -> Json:
    """Return the input of a series with the longest description."""
    description = character * DESCRIPTION_LENGTH
    slot = {"title": title, "timeZone": "Europe/Berlin", "description": description}
    return {"slot": {**slot, **MONDAY_TIMES}, "rrule": f"FREQ=DAILY;COUNT={COUNT}"}


def descriptions(count: int) -> str:
    """Select the description so many times."""
    return " ".join(f"a{n}: description" for n in range(count))


@pytest.mark.parametrize("character", ["x", "\N{HEAVY BLACK HEART}"])
async def test_a_response_beyond_the_limit_of_bytes_is_one_error_over_every_transport(
    app: AppProcess, organizer: BookingClient, character: str
) -> None:
    ids = await create_slots(organizer, character)
    allowed = MAX_RESULT_BYTES // (COUNT * DESCRIPTION_LENGTH * len(character.encode()))
    within = await organizer.execute(NODES % descriptions(allowed), ids=ids)
    assert [len(set(node.values())) for node in within] == [1] * COUNT
    beyond = {"query": NODES % descriptions(allowed + 1), "variables": {"ids": ids}}
    for accept in ("application/json", "application/graphql-response+json", "text/event-stream"):
        headers = {**organizer.headers, "Accept": accept}
        response = await organizer.http.post(app.url + "/graphql", json=beyond, headers=headers)
        assert response.status_code == 200
        data = response.text.removeprefix("event: next\ndata: ").partition("\n")[0]
        assert json.loads(data) == RESULT_TOO_LARGE_BODY
    async with open_websocket(app, organizer.token) as opened:
        await opened.send({"id": "1", "type": "subscribe", "payload": beyond})
        assert (await opened.receive())["payload"] == RESULT_TOO_LARGE_BODY


async def test_a_mutation_whose_result_is_too_large_has_been_executed_and_says_so(
    organizer: BookingClient,
) -> None:
    result = await organizer.send(
        CREATE % descriptions(COUNT), input=series_input("x", title="Zitherverein")
    )
    assert result == RESULT_TOO_LARGE_BODY
    assert "has been executed" in result["errors"][0]["message"]
    assert (await organizer.execute(FOUND))["totalCount"] == COUNT
