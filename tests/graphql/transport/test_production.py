"""The production profile: no introspection, and no GET by links or images of other pages."""

from typing import cast

import httpx
import pytest

from slotlock.api.app_state import document_cache
from slotlock.api.settings.fields import SecretStr
from slotlock.api.settings.settings import Settings
from slotlock.graphql.context import Context
from slotlock.graphql.execution.document_cache import DocumentCache, DocumentError
from slotlock.graphql.execution.subscriptions import execute_stream
from slotlock.graphql.schema.schema import executable_schema
from tests.support.apps.processes import SECRET, AppProcess
from tests.support.clients.client import GraphQLTestClient, Json, http_client, open_websocket

QUERY = {"query": "{ __typename }"}
SCHEMA = "{ __schema { queryType { name } } }"
CREATE = "mutation($input: CreateSlotInput!) { createSlot(input: $input) { __typename } }"
NODES = "query($ids: [ID!]!) { nodes(ids: $ids) { id } }"
LIST = "query($filter: SlotsFilter) { slots(filter: $filter) { nodes { id } } }"


async def request_errors(documents: DocumentCache, text: str, variables: Json | None) -> list[Json]:
    """Return the errors of a request that is rejected before a resolver needs the context."""
    unused_context = cast("Context", None)
    try:
        operation = documents.resolve_operation(text, None)
        (result,) = [each async for each in execute_stream(operation, variables, unused_context)]
    except DocumentError as error:
        return error.errors
    return list(result.body["errors"])


@pytest.mark.parametrize("introspection", [False, True])
@pytest.mark.parametrize(
    ("text", "variables"),
    [
        pytest.param("{ slotz { nodes { id } } }", None, id="field"),
        pytest.param("{ node(id: 1) { startTime } }", None, id="field of a type"),
        pytest.param("{ me }", None, id="fields of a field"),
        pytest.param("{ slots(furst: 1) { nodes { id } } }", None, id="argument"),
        pytest.param("{ __typename @skip(iff: true) }", None, id="argument of a directive"),
        pytest.param("{ node(id: 1) { ... on Slott { id } } }", None, id="type"),
        pytest.param("query($a: SlotFilter) { __typename }", None, id="type of a variable"),
        pytest.param("{ slots(orderBy: START_ASK) { nodes { id } } }", None, id="enum value"),
        pytest.param("{ slots(filter: {kin: X}) { nodes { id } } }", None, id="input field"),
        pytest.param(LIST, {"filter": {"kin": "X"}}, id="input field in a variable"),
        pytest.param(LIST, {"filter": {"kind": "COURS"}}, id="enum value in a variable"),
        pytest.param(CREATE, {"input": {"titel": "x"}}, id="several in a variable"),
        pytest.param(
            "subscription($ids: [ID!]!) { slotAvailabilty(slotIds: $ids) { at } }",
            {"ids": []},
            id="field of a subscription",
        ),
    ],
)
async def test_errors_suggest_names_only_with_introspection(
    text: str, variables: Json | None, introspection: bool
) -> None:
    documents = DocumentCache(executable_schema, introspection=introspection)
    errors = await request_errors(documents, text, variables)
    assert ("Did you mean" in str(errors)) is introspection


@pytest.mark.parametrize("query", [SCHEMA, '{ __type(name: "Slot") { name } }'])
async def test_production_rejects_introspection(app: AppProcess, query: str) -> None:
    async with http_client() as http, open_websocket(app) as opened:
        code = await GraphQLTestClient(http, app.url).error_code(query)
        assert code == "GRAPHQL_VALIDATION_FAILED"
        await opened.subscribe("1", query)
        message = await opened.receive()
        assert message["type"] == "error"
        assert message["payload"][0]["extensions"]["code"] == code
        await opened.subscribe("1", QUERY["query"])
        assert await opened.next_result() == "Query"


@pytest.mark.parametrize("development", [False, True])
@pytest.mark.parametrize("setting", [None, False, True])
def test_the_setting_decides_about_introspection_or_else_the_profile_does(
    setting: bool | None, development: bool
) -> None:
    settings = Settings(introspection=setting, secret_key=(SecretStr(SECRET),))
    documents = document_cache(settings, development=development)
    if development if setting is None else setting:
        assert documents.resolve_operation(SCHEMA, None)
    else:
        with pytest.raises(DocumentError):
            documents.resolve_operation(SCHEMA, None)


async def send_get(app: AppProcess, query: str, headers: dict[str, str]) -> httpx.Response:
    async with http_client() as http:
        return await http.get(app.url + "/graphql", params={"query": query}, headers=headers)


@pytest.mark.parametrize(
    "accept",
    [
        "*/*",
        "application/*, text/*",
        "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8",
        "image/avif,image/webp,*/*",
        "application/json;q=0, */*",
    ],
)
@pytest.mark.parametrize("query", ["{ __typename }", "subscription { myBookings { action } }"])
async def test_a_get_that_names_no_media_type_of_graphql_gets_406(
    app: AppProcess, query: str, accept: str
) -> None:
    response = await send_get(app, query, {"Accept": accept})
    assert response.status_code == 406
    (error,) = response.json()["errors"]
    assert error["extensions"]["code"] == "BAD_USER_INPUT"
    assert "in `Accept`: application/json" in error["message"]


@pytest.mark.parametrize(
    "accept",
    [
        "application/json",
        "application/graphql-response+json, application/json;q=0.9",
        "application/graphql-response+json, application/graphql+json, application/json, "
        "text/event-stream, multipart/mixed",
    ],
)
async def test_a_get_for_a_graphql_type_is_executed(app: AppProcess, accept: str) -> None:
    response = await send_get(app, QUERY["query"], {"Accept": accept})
    assert response.json() == {"data": {"__typename": "Query"}}


@pytest.mark.parametrize(
    "body",
    [
        {"query": "{ __typename @aa@aa@aa@aa@aa@aa@aa@aa@aa@aa }"},
        {"query": "{" + " ".join(f"nothing{n}" for n in range(15)) + "}"},
        {"query": SCHEMA.replace("name", " ".join(f"nothing{n}" for n in range(50)))},
        {"query": NODES, "variables": {"ids": [None] * 50}},
    ],
)
async def test_a_response_has_at_most_five_errors_and_a_note(app: AppProcess, body: Json) -> None:
    async with http_client() as http:
        response = await http.post(app.url + "/graphql", json=body)
    assert len(response.json()["errors"]) == 5 + 1  # the last one says that there are more
