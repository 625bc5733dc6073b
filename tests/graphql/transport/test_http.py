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


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        ("*/*", JSON),
        ("", JSON),
        (GRAPHQL_JSON, GRAPHQL_JSON),
        (f"{GRAPHQL_JSON}; charset=utf-8, {JSON}; charset=utf-8; q=0.9", GRAPHQL_JSON),
        (f"{GRAPHQL_JSON};q=0.1, application/*", JSON),
        (f"{JSON};q=0.2, application/*;q=0.5", GRAPHQL_JSON),
        (f"text/event-stream;q=0.5, {JSON}", JSON),
        (f"text/event-stream, {JSON}", JSON),
        (f"text/event-stream, {GRAPHQL_JSON}", GRAPHQL_JSON),
        ("text/event-stream, */*", JSON),
        ("text/event-stream;q=0, */*;q=0.1", JSON),
        ("text/html, */*;q=0.1", JSON),
    ],
)
async def test_a_response_has_the_media_type_that_the_client_prefers(
    http: httpx.AsyncClient, accept: str, media_type: str
) -> None:
    response = await http.post("/graphql", json=QUERY, headers={"Accept": accept})
    assert response.status_code == 200
    assert response.headers["content-type"] == media_type
    assert response.json() == RESULT


@pytest.mark.parametrize("accept", ["text/html", "image/*", f"{JSON};q=0", f"{JSON};q=nan"])
async def test_a_client_that_accepts_none_of_the_media_types_gets_406(
    http: httpx.AsyncClient, accept: str
) -> None:
    response = await http.post("/graphql", json=QUERY, headers={"Accept": accept})
    assert response.status_code == 406
    assert error_code(response) == "BAD_USER_INPUT"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (NOT_PARSABLE, "GRAPHQL_PARSE_FAILED"),
        (NOT_VALID, "GRAPHQL_VALIDATION_FAILED"),
        (BAD_VARIABLES, "BAD_USER_INPUT"),
    ],
)
@pytest.mark.parametrize(("accept", "status"), [(GRAPHQL_JSON, 400), (JSON, 200)])
async def test_a_request_that_is_not_executed_gets_400_or_200_by_its_media_type(
    http: httpx.AsyncClient, body: dict[str, Any], code: str, accept: str, status: int
) -> None:
    response = await http.post("/graphql", json=body, headers={"Accept": accept})
    assert (response.status_code, response.headers["content-type"]) == (status, accept)
    assert error_code(response) == code


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


async def test_a_query_may_be_sent_by_get(http: httpx.AsyncClient) -> None:
    parameters = {
        "query": "query A($on: Boolean!) { __typename @include(if: $on) } query B { me { id } }",
        "variables": '{"on": true}',
        "operationName": "A",
        "extensions": "{}",
    }
    response = await http.get("/graphql", params=parameters, headers=GET_HEADERS)
    assert response.json() == RESULT


@pytest.mark.parametrize("name", ["variables", "extensions", "operationName"])
async def test_an_empty_parameter_of_a_get_is_not_set(http: httpx.AsyncClient, name: str) -> None:
    response = await http.get("/graphql", params={**QUERY, name: ""}, headers=GET_HEADERS)
    assert (response.status_code, response.json()) == (200, RESULT)


async def test_the_path_may_end_with_a_slash(http: httpx.AsyncClient) -> None:
    responses = [
        await http.post("/graphql/", json=QUERY),
        await http.get("/graphql/", params=QUERY, headers=GET_HEADERS),
        await http.post("/graphql/", json=QUERY, headers={"Accept": "text/event-stream"}),
    ]
    assert [response.status_code for response in responses] == [200, 200, 200]
    assert json.dumps(RESULT, separators=(",", ":")) in responses[2].text


@pytest.mark.parametrize(
    "parameter",
    [
        {"access_token": "x"},
        {"authToken": "x"},
        {"Authorization": "Bearer x"},
        {"key": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIx.x"},
    ],
)
async def test_a_token_in_the_address_is_not_ignored(
    http: httpx.AsyncClient, parameter: dict[str, str]
) -> None:
    for response in (
        await http.post("/graphql", params=parameter, json=QUERY),
        await http.get("/graphql", params=QUERY | parameter, headers=GET_HEADERS),
    ):
        assert response.status_code == 400
        assert "Authorization" in response.json()["errors"][0]["message"]


async def test_a_mutation_by_get_gets_405(http: httpx.AsyncClient) -> None:
    mutation = {"query": "mutation { logout }"}
    response = await http.get("/graphql", params=mutation, headers=GET_HEADERS)
    assert (response.status_code, response.headers["allow"]) == (405, "POST")
    assert error_code(response) == "BAD_USER_INPUT"


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS"])
async def test_other_methods_get_405_with_the_allowed_ones(
    http: httpx.AsyncClient, method: str
) -> None:
    response = await http.request(method, "/graphql", json=QUERY)
    assert (response.status_code, response.headers["allow"]) == (405, "GET, POST")
    assert error_code(response) == "BAD_USER_INPUT"


@pytest.mark.parametrize(
    "content_type",
    ["", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=b",
     "application/graphql", "application/json; charset=utf-16", "application/json; charset=latin1",
     "application/graphql+json", "text/plain; application/json", "application/json, text/plain"],
)  # fmt: skip
async def test_another_content_type_gets_415(http: httpx.AsyncClient, content_type: str) -> None:
    headers = {"Content-Type": content_type} if content_type else {}
    response = await http.post("/graphql", content=json.dumps(QUERY), headers=headers)
    assert response.status_code == 415
    assert error_code(response) == "BAD_USER_INPUT"


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        'Application/JSON ;Charset="UTF-8"',
        "application/json; a=b; charset=utf-8",
        "application/json; charset=utf8",
        "application/json; charset='UTF_8'",
        "application/json; charset=",
    ],
)
async def test_the_content_type_of_json_in_utf_8_may_be_written_in_any_way(
    http: httpx.AsyncClient, content_type: str
) -> None:
    headers = {"Content-Type": content_type}
    response = await http.post("/graphql", content=json.dumps(QUERY), headers=headers)
    assert response.json() == RESULT


async def test_a_compressed_body_gets_415(http: httpx.AsyncClient) -> None:
    headers = {"Content-Type": JSON, "Content-Encoding": "gzip"}
    body = gzip.compress(json.dumps(QUERY).encode())
    response = await http.post("/graphql", content=body, headers=headers)
    assert response.status_code == 415
    assert error_code(response) == "BAD_USER_INPUT"


async def test_a_content_length_that_is_too_large_gets_413_at_once(app: AppProcess) -> None:
    head = "POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    url = httpx.URL(app.url)
    reader, writer = await asyncio.open_connection(url.host, url.port)
    with closing(writer):
        writer.write(f"{head}Content-Length: 65537\r\nExpect: 100-continue\r\n\r\n".encode())
        assert (await reader.readline()).split()[1] == b"413"


@pytest.mark.parametrize("accept", [GRAPHQL_JSON, JSON])
async def test_an_early_rejection_has_the_media_type_that_the_client_prefers(
    http: httpx.AsyncClient, accept: str
) -> None:
    response = await http.post("/graphql", content=b"{", headers={"Accept": accept})
    assert (response.status_code, response.headers["content-type"]) == (415, accept)
    assert error_code(response) == "BAD_USER_INPUT"


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


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_body_of_more_than_64_kib_gets_413(http: httpx.AsyncClient, chunked: bool) -> None:
    body = json.dumps(QUERY).encode().ljust(64 * 1024 + 1)

    async def chunks() -> AsyncIterator[bytes]:
        yield body[:60_000]
        yield body[60_000:]

    headers = {"Content-Type": JSON}
    content = chunks() if chunked else body
    response = await http.post("/graphql", content=content, headers=headers)
    assert response.status_code == 413
    assert error_code(response) == "LIMIT_EXCEEDED"
    largest = await http.post("/graphql", content=body[:-1], headers=headers)
    assert largest.json() == RESULT


async def test_a_batch_gets_400(http: httpx.AsyncClient) -> None:
    response = await http.post("/graphql", json=[QUERY, QUERY])
    assert response.status_code == 400
    assert error_code(response) == "BAD_USER_INPUT"
    assert "Batches" in response.json()["errors"][0]["message"]


async def test_a_document_of_several_operations_needs_a_name(http: httpx.AsyncClient) -> None:
    two_operations = "query A { __typename } query B { me { id } }"
    assert (
        error_code(await http.post("/graphql", json={"query": two_operations})) == "BAD_USER_INPUT"
    )
    named = await http.post("/graphql", json={"query": two_operations, "operationName": "A"})
    assert named.json() == RESULT


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
