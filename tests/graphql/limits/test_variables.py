"""The limit on values in variables, each of which has to be coerced."""

from typing import Any

import httpx
import pytest

from slotlock.graphql.limits.complexity import MAX_VARIABLE_VALUES
from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import create_booking_clients
from tests.support.clients.client import GraphQLTestClient, hours_from_now, open_websocket

NODES = "query($ids: [ID!]!) { nodes(ids: $ids) { __typename } }"
BOOK_SLOTS = "mutation($input: BookSlotsInput!) { bookSlots(input: $input) { __typename } }"
CREATE_CAMPAIGN = """mutation($input: CreateCampaignInput!) {
  createCampaign(input: $input) { __typename ... on InvalidInput { fields { field message } } }
}"""
# The largest campaign that the domain allows.
GROUP_SETS, GROUPS_PER_SET, GROUP_LIMITS = 10, 200, 100


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


async def test_the_largest_campaign_is_within_the_limit(
    app: AppProcess, http: httpx.AsyncClient
) -> None:
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
