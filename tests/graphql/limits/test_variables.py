"""Variables hold no more values than anybody needs, as each is given its type by itself."""

from typing import Any

import httpx
import pytest

from slotlock.graphql.limits.complexity import MAX_VARIABLE_VALUES
from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import create_booking_clients
from tests.support.clients.client import GraphQLTestClient, hours_from_now, open_websocket

NODES = "query($ids: [ID!]!) { nodes(ids: $ids) { __typename } }"
BOOK_ALL = "mutation($input: BookSlotsInput!) { bookSlots(input: $input) { __typename } }"
CREATE = """mutation($input: CreateCampaignInput!) {
  createCampaign(input: $input) { __typename ... on InvalidInput { fields { field message } } }
}"""
SETS, GROUPS, LIMITS = 10, 200, 100


@pytest.mark.parametrize(
    ("query", "variables"),
    [
        (NODES, {"ids": [None] * MAX_VARIABLE_VALUES}),
        (NODES, {"ids": [1] * MAX_VARIABLE_VALUES}),
        (NODES, {"ids": [[[] for _ in range(MAX_VARIABLE_VALUES)]]}),
        (BOOK_ALL, {"input": {"claims": [{}] * MAX_VARIABLE_VALUES}}),
        (BOOK_ALL, {"input": {"claims": [{"slotId": ""}] * (MAX_VARIABLE_VALUES // 2)}}),
        ("{ __typename }", {str(number): 0 for number in range(MAX_VARIABLE_VALUES + 1)}),
    ],
)
async def test_variables_of_more_values_than_anybody_needs_are_refused(
    app: AppProcess, http: httpx.AsyncClient, query: str, variables: dict[str, Any]
) -> None:
    client = GraphQLTestClient(http, app.url)
    assert await client.error_code(query, **variables) == "LIMIT_EXCEEDED"
    async with open_websocket(app) as opened:
        await opened.subscribe("1", query, **variables)
        refused = await opened.receive()
        assert refused["type"] == "error"
        assert refused["payload"][0]["extensions"]["code"] == "LIMIT_EXCEEDED"


async def test_one_value_less_is_judged_by_what_it_is(
    app: AppProcess, http: httpx.AsyncClient
) -> None:
    client = GraphQLTestClient(http, app.url)
    variables = {"ids": [None] * (MAX_VARIABLE_VALUES - 1)}
    assert await client.error_code(NODES, **variables) == "BAD_USER_INPUT"


async def test_the_largest_campaign_is_taken(app: AppProcess, http: httpx.AsyncClient) -> None:
    _, organizer = await create_booking_clients(http, 1, app)
    sets = [[f"{one}:{number}" for number in range(GROUPS)] for one in range(SETS)]
    limits = [{"group": f"g{number}", "limit": 1} for number in range(LIMITS)]
    times = {"opensAt": hours_from_now(-1), "closesAt": hours_from_now(1)}
    made = await organizer.execute(
        CREATE,
        input={"name": "All of them", **times, "eligibleGroups": sets, "groupLimits": limits},
    )
    assert made["__typename"] == "Campaign", made
