"""Limits on pairs of fields to compare and on values in variables to coerce."""

from typing import Any

import httpx
import pytest
from graphql import parse

from slotlock.graphql.execution.document_cache import DocumentCache, DocumentError
from slotlock.graphql.limits.complexity import MAX_VARIABLE_VALUES
from slotlock.graphql.limits.field_merging import (
    MAX_FIELD_PAIRS,
    MAX_VISITED_FIELDS,
    _MergeCostVisitor,
    field_merge_excess,
)
from slotlock.graphql.schema.schema import executable_schema
from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import create_booking_clients
from tests.support.clients.client import GraphQLTestClient, hours_from_now, open_websocket

TEN = "id title startTime endTime timeZone capacity remaining isBooked version status"
NODES = "query($ids: [ID!]!) { nodes(ids: $ids) { __typename } }"
BOOK_SLOTS = "mutation($input: BookSlotsInput!) { bookSlots(input: $input) { __typename } }"
CREATE_CAMPAIGN = """mutation($input: CreateCampaignInput!) {
  createCampaign(input: $input) { __typename ... on InvalidInput { fields { field message } } }
}"""
# The largest campaign that the domain allows.
GROUP_SETS, GROUPS_PER_SET, GROUP_LIMITS = 10, 200, 100


def slots_query(fields: str) -> str:
    """Build a query for these fields of slots."""
    return "{ slots { nodes { " + fields + " } } }"


def visit(text: str) -> _MergeCostVisitor:
    """Count the fields and pairs of the first operation."""
    document = parse(text)
    visitor = _MergeCostVisitor(document)
    visitor.visit([document.definitions[0].selection_set], frozenset())  # type: ignore[attr-defined]
    return visitor


@pytest.mark.parametrize(
    "text",
    [
        slots_query("id " * 80),
        slots_query("nothing { more } " * 60),  # rejected before the expensive validation
        slots_query("myBooking { id } " * 60),
        slots_query("myBooking { " + "id " * 9 + "} " + "myBooking { " + "id " * 75 + "}"),
        slots_query("...A " * 3 + "id " * 40) + "fragment A on Slot {" + "id " * 40 + "}",
        slots_query("... on Slot { id } ... on Node { id } " * 40),
        "{ __typename } fragment Unused on Slot {" + "id " * 80 + "}",
    ],
)
def test_a_document_with_too_many_pairs_is_rejected(text: str) -> None:
    with pytest.raises(DocumentError) as rejected:
        DocumentCache(executable_schema, introspection=True).resolve_operation(text, None)
    (error,) = rejected.value.errors
    assert error["extensions"]["code"] == "LIMIT_EXCEEDED"
    assert f"at most {MAX_FIELD_PAIRS} pairs" in error["message"]


def test_many_fragments_with_the_same_fields_are_within_the_limit() -> None:
    fragments = "".join(f"fragment F{n} on Slot {{ {TEN} myBooking {{ id }} }}" for n in range(15))
    text = slots_query(" ".join(f"...F{n}" for n in range(15))) + fragments
    assert DocumentCache(executable_schema, introspection=True).resolve_operation(text, None)


def test_pairs_are_counted_at_each_place_and_not_across_places() -> None:
    assert visit("{ a b c }").pairs == 0
    assert visit("{ a a a }").pairs == 3
    assert visit("{ a: b a: c }").pairs == 1
    assert visit("{ a { x y } b { x y } }").pairs == 0
    assert visit("{ a { x y } a { x y } }").pairs == 1 + 2
    assert visit("{ a ...F ...F } fragment F on Query { a }").pairs == 1


def test_a_fragment_inside_itself_is_visited_once() -> None:
    assert visit("{ ...F } fragment F on Query { a { ...F } ...F }").fields == 1
    many = " ".join(f"fragment F{n} on Q {{ a {{ ...F{n + 1} }} ...F{n + 1} }}" for n in range(60))
    visitor = visit("{ ...F0 } " + many + " fragment F60 on Q { a }")
    assert visitor.fields <= MAX_VISITED_FIELDS + 61


def test_the_limit_on_fields_covers_all_operations_together() -> None:
    fields = " ".join(f"f{n}" for n in range(300))
    operations = " ".join(f"query O{n} {{ ...F }}" for n in range(100))
    text = f"{operations} fragment F on Query {{ {fields} }}"
    assert field_merge_excess(parse(text)) == (
        f"The operations of a document may have at most {MAX_VISITED_FIELDS} fields."
    )


@pytest.mark.parametrize(
    ("query", "variables"),
    [
        (NODES, {"ids": [None] * MAX_VARIABLE_VALUES}),
        (NODES, {"ids": [1] * MAX_VARIABLE_VALUES}),
        (NODES, {"ids": [[[] for _ in range(MAX_VARIABLE_VALUES)]]}),
        (BOOK_SLOTS, {"input": {"claims": [{}] * MAX_VARIABLE_VALUES}}),
        (BOOK_SLOTS, {"input": {"claims": [{"slotId": ""}] * (MAX_VARIABLE_VALUES // 2)}}),
        ("{ __typename }", {str(number): 0 for number in range(MAX_VARIABLE_VALUES + 1)}),
    ],
)
async def test_variables_with_too_many_values_are_rejected(
    app: AppProcess, http: httpx.AsyncClient, query: str, variables: dict[str, Any]
) -> None:
    client = GraphQLTestClient(http, app.url)
    assert await client.error_code(query, **variables) == "LIMIT_EXCEEDED"
    async with open_websocket(app) as opened:
        await opened.subscribe("1", query, **variables)
        message = await opened.receive()
        assert message["type"] == "error"
        assert message["payload"][0]["extensions"]["code"] == "LIMIT_EXCEEDED"


async def test_variables_with_the_largest_number_of_values_are_coerced(
    app: AppProcess, http: httpx.AsyncClient
) -> None:
    client = GraphQLTestClient(http, app.url)
    variables = {"ids": [None] * (MAX_VARIABLE_VALUES - 1)}
    assert await client.error_code(NODES, **variables) == "BAD_USER_INPUT"


async def test_the_largest_campaign_is_possible(app: AppProcess, http: httpx.AsyncClient) -> None:
    _, organizer = create_booking_clients(http, 1, app)
    sets = [
        [f"{set_number}:{number}" for number in range(GROUPS_PER_SET)]
        for set_number in range(GROUP_SETS)
    ]
    limits = [{"group": f"g{number}", "limit": 1} for number in range(GROUP_LIMITS)]
    times = {"opensAt": hours_from_now(-1), "closesAt": hours_from_now(1)}
    created = await organizer.execute(
        CREATE_CAMPAIGN,
        input={"name": "All of them", **times, "eligibleGroups": sets, "groupLimits": limits},
    )
    assert created["__typename"] == "Campaign", created
