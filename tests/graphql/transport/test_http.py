"""GraphQL over HTTP follows the specification: media types, methods, statuses and bodies."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.graphql.transport.graphiql import graphiql_page
from tests.support.apps.fork_server import forked_app
from tests.support.apps.processes import AppProcess, app_environment
from tests.support.clients.client import http_client

JSON = "application/json"
GRAPHQL_JSON = "application/graphql-response+json"
QUERY = {"query": "{ __typename }"}
RESULT = {"data": {"__typename": "Query"}}
# GraphQL clients name the media type of a GET; links and images of other pages do not.
GET_HEADERS = {"Accept": GRAPHQL_JSON}
# Rejected by the parser, by validation and by the coercion of variables.
NOT_PARSABLE = {"query": "{"}
NOT_VALID = {"query": "{ nothing }"}
BAD_VARIABLES = {"query": "query ($id: ID!) { slot(id: $id) { id } }", "variables": {"id": None}}
NEEDS_IDENTITY = {"query": "{ myBookings { nodes { id } } }"}
MAX_BODY_BYTES = 64 * 1024


@pytest.fixture
async def http(app: AppProcess) -> AsyncIterator[httpx.AsyncClient]:
    async with http_client() as client:
        client.base_url = httpx.URL(app.url)
        yield client


def error_code(response: httpx.Response) -> str:
    """Return the code of a well-formed response without data."""
    assert response.status_code < 500, response.text
    assert response.headers["content-type"].partition(";")[0] in (JSON, GRAPHQL_JSON)
    body = response.json()
    assert body.keys() == {"errors"}
    assert all(isinstance(error["message"], str) for error in body["errors"])
    return str(body["errors"][0]["extensions"]["code"])


def sent(body: Any = QUERY, method: str = "POST", **headers: str | None) -> dict[str, Any]:
    """Return a request without the headers that are None; a body that is not bytes is JSON."""
    fields: dict[str, str | None] = {"content_type": JSON, **headers}
    named = {name.replace("_", "-"): value for name, value in fields.items() if value is not None}
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return {"method": method, "headers": named, "content": content}


def got(parameters: dict[str, str], **headers: str) -> dict[str, Any]:
    """Return a GET with these parameters."""
    return {"method": "GET", "params": parameters, "headers": GET_HEADERS | headers}


TWO_OPERATIONS = "query A { __typename } query B { me { id } }"
ALL_PARAMETERS = {
    "query": "query A($on: Boolean!) { __typename @include(if: $on) } query B { me { id } }",
    "variables": '{"on": true}',
    "operationName": "A",
    "extensions": "{}",
}
EXECUTED: list[tuple[str, dict[str, Any]]] = [
    # the media type that the client prefers
    (JSON, sent(accept="*/*")),
    (JSON, sent(accept="")),
    (GRAPHQL_JSON, sent(accept=GRAPHQL_JSON)),
    (
        GRAPHQL_JSON,
        sent(accept=f"{GRAPHQL_JSON}; charset=utf-8, {JSON}; charset=utf-8; q=0.9"),
    ),
    (JSON, sent(accept=f"{GRAPHQL_JSON};q=0.1, application/*")),
    (GRAPHQL_JSON, sent(accept=f"{JSON};q=0.2, application/*;q=0.5")),
    (JSON, sent(accept=f"text/event-stream;q=0.5, {JSON}")),
    (JSON, sent(accept=f"text/event-stream, {JSON}")),
    (GRAPHQL_JSON, sent(accept=f"text/event-stream, {GRAPHQL_JSON}")),
    (JSON, sent(accept="text/event-stream, */*")),
    (JSON, sent(accept="text/event-stream;q=0, */*;q=0.1")),
    (JSON, sent(accept="text/html, */*;q=0.1")),
    # JSON in UTF-8, written in any way
    (JSON, sent(content_type='Application/JSON ;Charset="UTF-8"')),
    (JSON, sent(content_type="application/json; a=b; charset=utf-8")),
    (JSON, sent(content_type="application/json; charset=utf8")),
    (JSON, sent(content_type="application/json; charset='UTF_8'")),
    (JSON, sent(content_type="application/json; charset=")),
    # a query by GET; an empty parameter is not set
    (GRAPHQL_JSON, got(ALL_PARAMETERS)),
    (GRAPHQL_JSON, got({**QUERY, "variables": ""})),
    (GRAPHQL_JSON, got({**QUERY, "extensions": ""})),
    (GRAPHQL_JSON, got({**QUERY, "operationName": ""})),
    # the name of one of several operations, and the largest body
    (JSON, sent({"query": TWO_OPERATIONS, "operationName": "A"})),
    (JSON, sent(json.dumps(QUERY).encode().ljust(MAX_BODY_BYTES))),
]


@pytest.mark.parametrize(("media_type", "request_"), EXECUTED)
async def test_a_request_is_executed_and_has_the_media_type_that_the_client_prefers(
    http: httpx.AsyncClient, media_type: str, request_: dict[str, Any]
) -> None:
    response = await http.request(url="/graphql", **request_)
    assert (response.status_code, response.headers["content-type"]) == (200, media_type)
    assert response.json() == RESULT


BAD, TOKEN_IN_ADDRESS = "BAD_USER_INPUT", (400, "BAD_USER_INPUT", "Authorization")
OTHER_CONTENT_TYPES = (
    *(None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=b"),
    *("application/graphql", "application/json; charset=utf-16", "application/graphql+json"),
    *("application/json; charset=latin1", "text/plain; application/json"),
    "application/json, text/plain",
)
TOKENS = (
    {"access_token": "x"},
    {"authToken": "x"},
    {"Authorization": "Bearer x"},
    {"key": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIx.x"},
)
# The status, the code and a word of the message.
REFUSED: list[tuple[tuple[int, str, str], dict[str, Any]]] = [
    *(
        ((406, BAD, "The response can be"), sent(accept=each))
        for each in ("text/html", "image/*", f"{JSON};q=0", f"{JSON};q=nan")
    ),
    # not executed: 400 or 200 by the media type
    *(
        ((status, code, ""), sent(body, accept=accept))
        for accept, status in ((GRAPHQL_JSON, 400), (JSON, 200))
        for body, code in (
            (NOT_PARSABLE, "GRAPHQL_PARSE_FAILED"),
            (NOT_VALID, "GRAPHQL_VALIDATION_FAILED"),
            (BAD_VARIABLES, BAD),
        )
    ),
    ((400, BAD, ""), sent({"query": TWO_OPERATIONS}, accept=GRAPHQL_JSON)),
    ((400, BAD, "Batches"), sent([QUERY, QUERY])),
    ((405, BAD, ""), got({"query": "mutation { logout }"})),
    *(((405, BAD, ""), sent(method=each)) for each in ("PUT", "DELETE", "PATCH", "OPTIONS")),
    *(((415, BAD, ""), sent(content_type=each)) for each in OTHER_CONTENT_TYPES),
    ((415, BAD, ""), sent(b"{", content_type=None, accept=GRAPHQL_JSON)),
    ((415, BAD, ""), sent(b"{", content_type=None, accept=JSON)),
    ((415, BAD, ""), sent(gzip.compress(json.dumps(QUERY).encode()), content_encoding="gzip")),
    ((413, "LIMIT_EXCEEDED", ""), sent(json.dumps(QUERY).encode().ljust(MAX_BODY_BYTES + 1))),
    *((TOKEN_IN_ADDRESS, sent() | {"params": each}) for each in TOKENS),
    *((TOKEN_IN_ADDRESS, got(QUERY | each)) for each in TOKENS),
]


@pytest.mark.parametrize(("refusal", "request_"), REFUSED)
async def test_a_refused_request_gets_its_status_and_code_in_the_media_type_of_the_client(
    http: httpx.AsyncClient, refusal: tuple[int, str, str], request_: dict[str, Any]
) -> None:
    status, code, word = refusal
    response = await http.request(url="/graphql", **request_)
    assert (response.status_code, error_code(response)) == (status, code)
    assert word in response.json()["errors"][0]["message"]
    if (accept := request_["headers"].get("accept")) in (JSON, GRAPHQL_JSON):
        assert response.headers["content-type"] == accept
    if status == 405:
        allowed = "POST" if request_["method"] == "GET" else "GET, POST"
        assert response.headers["allow"] == allowed


@pytest.mark.parametrize("accept", [GRAPHQL_JSON, JSON])
async def test_an_executed_request_gets_200_even_if_a_field_fails(
    http: httpx.AsyncClient, accept: str
) -> None:
    response = await http.post("/graphql", json=NEEDS_IDENTITY, headers={"Accept": accept})
    assert response.status_code == 200
    body = response.json()
    assert body["data"] is None
    assert body["errors"][0]["extensions"]["code"] == "UNAUTHENTICATED"
    assert body["errors"][0]["path"] == ["myBookings"]


async def test_the_path_may_end_with_a_slash(http: httpx.AsyncClient) -> None:
    responses = [
        await http.post("/graphql/", json=QUERY),
        await http.get("/graphql/", params=QUERY, headers=GET_HEADERS),
        await http.post("/graphql/", json=QUERY, headers={"Accept": "text/event-stream"}),
    ]
    assert [response.status_code for response in responses] == [200, 200, 200]
    assert json.dumps(RESULT, separators=(",", ":")) in responses[2].text


async def test_a_body_that_is_too_large_gets_413_at_once_or_in_chunks(app: AppProcess) -> None:
    head = b"POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    large = b"%x\r\n%s\r\n0\r\n\r\n" % (MAX_BODY_BYTES + 1, bytes(MAX_BODY_BYTES + 1))
    url = httpx.URL(app.url)
    for rest in (
        b"Content-Length: %d\r\nExpect: 100-continue\r\n\r\n" % (MAX_BODY_BYTES + 1),
        b"Transfer-Encoding: chunked\r\n\r\n" + large,
    ):
        reader, writer = await asyncio.open_connection(url.host, url.port)
        with closing(writer):
            writer.write(head + rest)
            assert (await reader.readline()).split()[1] == b"413"


SECRET_WORD = "hunter2hunter2"
REGISTER = "mutation($input: RegisterInput!) { register(input: $input) { __typename } }"


@pytest.mark.parametrize(
    "register_input",
    [
        {"password": SECRET_WORD},
        {"name": "A", "email": "a@b.test", "password": SECRET_WORD, "role": "ADMIN"},
        {"name": "A", "email": "a@b.test", "passwort": SECRET_WORD},
        {"name": "A", "email": "a@b.test", "password": [SECRET_WORD]},
        SECRET_WORD,
    ],
)
async def test_errors_do_not_repeat_the_values_of_the_request(
    http: httpx.AsyncClient, register_input: Any
) -> None:
    bodies = [{"query": REGISTER, "variables": {"input": register_input}}]
    if isinstance(register_input, dict):
        pairs = (f"{name}: {json.dumps(value)}" for name, value in register_input.items())
        literal = "{" + ", ".join(pairs) + "}"
        query = REGISTER.replace("($input: RegisterInput!)", "").replace("$input", literal)
        bodies.append({"query": query})
    for body in bodies:
        response = await http.post("/graphql", json=body)
        assert error_code(response) in ("BAD_USER_INPUT", "GRAPHQL_VALIDATION_FAILED")
        assert SECRET_WORD not in response.text


async def test_only_development_serves_graphiql_to_browsers(
    app: AppProcess, servers: EmbeddedServers, tmp_path: Path
) -> None:
    browser = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
    settings = {
        **app_environment(servers, "development"),
        "SLOTLOCK_DATA_DIR": str(tmp_path / "data"),
        "VARIANT_COMMAND": "dev",
    }
    async with http_client() as http:
        with forked_app(settings, tmp_path) as development:
            page = await http.get(development.url + "/graphql", headers=browser)
            assert page.status_code == 200
            assert page.headers["content-type"] == "text/html; charset=utf-8"
            assert "GraphiQL" in page.text
            policy = graphiql_page().headers["content-security-policy"]
            assert page.headers.get_list("content-security-policy") == [policy]
            response = await http.post(development.url + "/graphql", json=QUERY, headers=browser)
            assert response.json() == RESULT
            response = await http.get(development.url + "/graphql", params=QUERY)
            assert response.json() == RESULT
            schema = {"query": "{ __schema { queryType { name } } }"}
            response = await http.post(development.url + "/graphql", json=schema)
            assert response.json() == {"data": {"__schema": {"queryType": {"name": "Query"}}}}
        page = await http.get(app.url + "/graphql", headers=browser)
        assert page.headers["content-type"] == JSON
        assert error_code(page) == "BAD_USER_INPUT"
