"""A response holds at most 2 MiB, however often aliases repeat a long text."""

import json

import httpx
import pytest

from slotlock.graphql.limits.result_size import MAX_RESULT_BYTES, RESULT_TOO_LARGE_BODY
from tests.support.apps.processes import AppProcess
from tests.support.clients.client import GraphQLTestClient, Json, open_websocket
from tests.support.clients.series import MONDAY_TIMES
from tests.support.stores.users import create_user_tokens

COUNT = 15
DESCRIPTION_LENGTH = 10_000
CREATE = """mutation($input: CreateSlotSeriesInput!) { createSlotSeries(input: $input) {
  ... on SlotSeriesCreated { seriesId slots { id %s } }
} }"""
FOUND = """{ slots(filter: {text: "Zitherverein"}) {
  totalCount
} }"""
NODES = "query($ids: [ID!]!) { nodes(ids: $ids) { ... on Slot { %s } } }"


@pytest.fixture
def organizer(app: AppProcess, http: httpx.AsyncClient) -> GraphQLTestClient:
    tokens = create_user_tokens(app.environment, 0)
    return GraphQLTestClient(http, app.url, tokens.organizer)


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
    app: AppProcess, organizer: GraphQLTestClient, character: str
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
    organizer: GraphQLTestClient,
) -> None:
    result = await organizer.send(
        CREATE % descriptions(COUNT), input=series_input("x", title="Zitherverein")
    )
    assert result == RESULT_TOO_LARGE_BODY
    assert "has been executed" in result["errors"][0]["message"]
    assert (await organizer.execute(FOUND))["totalCount"] == COUNT
