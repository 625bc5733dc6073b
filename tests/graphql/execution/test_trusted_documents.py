"""A server with a list of documents executes these and no others, by text or by id."""

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import httpx
import orjson
import pytest

from slotlock.api.app_state import document_cache
from slotlock.api.board.documents import board_documents
from slotlock.api.settings.settings import Settings, SettingsError
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.graphql.execution.trusted_documents import load_trusted_documents
from slotlock.graphql.transport.graphql_server import (
    NOT_LISTED_MESSAGE,
    PERSISTED_QUERY_NOT_SUPPORTED,
)
from tests.support.apps.fork_server import forked_app
from tests.support.apps.processes import AppProcess, app_environment
from tests.support.clients.client import Json, open_websocket

TYPE = "query Type { __typename }"
SLOTS = "query Slots($first: Int) { slots(first: $first) { nodes { id } } }"
IDS = {"type": TYPE, "sha256:slots": SLOTS}
MANIFEST = {
    "format": "apollo-persisted-query-manifest",
    "version": 1,
    "operations": [
        {"id": id_, "body": text, "name": "Any", "type": "query"} for id_, text in IDS.items()
    ],
}
NOT_LISTED = {"errors": [{"message": NOT_LISTED_MESSAGE, "extensions": {"code": "BAD_USER_INPUT"}}]}
UNKNOWN_ID = {"errors": [PERSISTED_QUERY_NOT_SUPPORTED]}
GRAPHQL_JSON = "application/graphql-response+json"
DATA = {"data": {"__typename": "Query"}}


def persisted_query(text: str) -> Json:
    """Return the extension with which Apollo clients name a document."""
    hash_ = sha256(text.encode()).hexdigest()
    return {"persistedQuery": {"version": 1, "sha256Hash": hash_}}


@pytest.fixture(scope="module")
def closed_app(
    servers: EmbeddedServers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AppProcess]:
    """Yield an app that executes only the documents of IDS."""
    directory = tmp_path_factory.mktemp("closed_app")
    path = directory / "operations.json"
    path.write_bytes(orjson.dumps(IDS))
    settings = {**app_environment(servers, "closed_app"), "SLOTLOCK_OPERATIONS": str(path)}
    with forked_app(settings, directory) as app:
        yield app


REQUESTS = [
    pytest.param({"query": TYPE}, DATA, id="text"),
    pytest.param({"documentId": "type"}, DATA, id="id"),
    pytest.param(
        {"documentId": f"sha256:{sha256(TYPE.encode()).hexdigest()}"}, DATA, id="hash as id"
    ),
    pytest.param({"extensions": persisted_query(TYPE)}, DATA, id="extension"),
    pytest.param({"query": TYPE + " "}, NOT_LISTED, id="another text"),
    pytest.param({"query": "{"}, NOT_LISTED, id="invalid text"),
    pytest.param({"documentId": "other"}, UNKNOWN_ID, id="another id"),
    pytest.param({"extensions": persisted_query("{ a }")}, NOT_LISTED, id="another hash"),
    pytest.param({"extensions": {"persistedQuery": 7}}, NOT_LISTED, id="no extension"),
    pytest.param({}, NOT_LISTED, id="nothing"),
]


@pytest.mark.parametrize(("request_body", "expected"), REQUESTS)
async def test_over_http_only_listed_documents_are_executed(
    closed_app: AppProcess, http: httpx.AsyncClient, request_body: Json, expected: Json
) -> None:
    url = closed_app.url + "/graphql"
    response = await http.post(url, json=request_body)
    assert response.json() == expected
    assert response.status_code == (400 if expected is NOT_LISTED else 200)
    texts = {
        name: each if isinstance(each, str) else orjson.dumps(each).decode()
        for name, each in request_body.items()
    }
    accept = {"Accept": "application/json"}
    assert (await http.get(url, params=texts, headers=accept)).json() == expected
    events = await http.post(url, json=request_body, headers={"Accept": "text/event-stream"})
    assert orjson.dumps(expected).decode() in events.text


@pytest.mark.parametrize(("request_body", "expected"), REQUESTS)
async def test_over_a_websocket_only_listed_documents_are_executed(
    closed_app: AppProcess, request_body: Json, expected: Json
) -> None:
    async with open_websocket(closed_app) as socket:
        await socket.send({"id": "1", "type": "subscribe", "payload": request_body})
        message = await socket.receive()
    is_accepted = expected is DATA
    assert message == {
        "id": "1",
        "type": "next" if is_accepted else "error",
        "payload": expected if is_accepted else expected["errors"],
    }


@pytest.mark.parametrize("has_list", [True, False])
async def test_the_board_names_its_documents_whether_there_is_a_list_or_not(
    app: AppProcess, closed_app: AppProcess, http: httpx.AsyncClient, has_list: bool
) -> None:
    url = (closed_app if has_list else app).url + "/graphql"
    documents = board_documents()
    id_ = next(each for each in documents if "/campaigns/" in each)
    variables = {"variables": {"first": 1}}
    for request in ({"documentId": id_}, {"query": documents[id_]}):
        response = (await http.post(url, json=request | variables)).json()
        assert response.keys() == {"data"}
        assert response["data"]["campaigns"].keys() == {"nodes", "pageInfo"}
    other = {"documentId": "board/campaigns/0"} | variables
    assert (await http.post(url, json=other)).json() == UNKNOWN_ID


@pytest.mark.parametrize("has_list", [True, False])
@pytest.mark.parametrize("id_", [7, False, ["type"], {}])
async def test_an_id_that_is_no_string_is_an_error_that_says_so(
    app: AppProcess, closed_app: AppProcess, http: httpx.AsyncClient, id_: object, has_list: bool
) -> None:
    url = (closed_app if has_list else app).url + "/graphql"
    response = await http.post(url, json={"documentId": id_})
    (error,) = response.json()["errors"]
    assert (response.status_code, error["extensions"]) == (400, {"code": "BAD_USER_INPUT"})
    assert error["message"] == "`documentId` must be a string or null."


@pytest.mark.parametrize("accept", ["*/*", GRAPHQL_JSON, "text/event-stream"])
@pytest.mark.parametrize("query", [{}, {"query": None}, {"query": ""}])
async def test_without_a_list_clients_of_apollo_fall_back_to_the_text(
    app: AppProcess, http: httpx.AsyncClient, accept: str, query: Json
) -> None:
    url, extensions = app.url + "/graphql", persisted_query(TYPE)
    persisted, headers = {**query, "extensions": extensions}, {"Accept": accept}
    expected = {"errors": [PERSISTED_QUERY_NOT_SUPPORTED]}
    response = await http.post(url, json=persisted, headers=headers)
    assert (response.status_code, response.json()) == (200, expected)
    parameters = {"query": "", "extensions": orjson.dumps(extensions).decode()}
    by_get = {"Accept": GRAPHQL_JSON}
    response = await http.get(url, params=parameters, headers=by_get)
    assert (response.status_code, response.json()) == (200, expected)
    assert expected["errors"][0]["message"] == "PersistedQueryNotSupported"
    complete = {"query": TYPE, "extensions": extensions}
    assert (await http.post(url, json=complete)).json() == DATA


@pytest.mark.parametrize("content", [IDS, MANIFEST])
def test_the_list_is_a_manifest_or_documents_by_id(tmp_path: Path, content: Json) -> None:
    path = tmp_path / "operations.json"
    path.write_bytes(orjson.dumps(content))
    hashes = {sha256(text.encode()).hexdigest(): text for text in (TYPE, SLOTS)}
    assert load_trusted_documents(path) == {"type": TYPE, "slots": SLOTS, **hashes}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{", "is not JSON"),
        ("[]", "is neither a persisted query manifest nor"),
        ("7", "is neither a persisted query manifest nor"),
        ('{"a": 7}', "is neither a persisted query manifest nor"),
        ('{"operations": [{"id": "a"}]}', "is neither a persisted query manifest nor"),
        ('{"operations": {"a": "{ __typename }"}}', "is neither a persisted query manifest nor"),
        ("{}", "lists no document"),
        ('{"a": "{ nothing }"}', "the document a is invalid: Cannot query field 'nothing'"),
        ('{"a": "{"}', "the document a is invalid: Syntax Error"),
        ('{"a": "{ __schema { types { name } } }"}', "the document a is invalid: "),
        (None, "cannot be read: No such file or directory"),
    ],
)
def test_a_list_that_cannot_be_used_stops_the_start_with_the_reason(
    tmp_path: Path, content: str | None, reason: str
) -> None:
    path = tmp_path / "operations.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(SettingsError) as error:
        document_cache(Settings(operations=path), development=False)
    assert str(error.value).startswith("SLOTLOCK_OPERATIONS: ")
    assert reason in str(error.value)
