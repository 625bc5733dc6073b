"""GraphQL over HTTP keeps to the specification, whatever it is sent."""

import asyncio
import gzip
import json
import sys
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from slotlock.devserver.embedded import EmbeddedServers
from tests.support.apps.processes import AppProcess, app_environment, app_process
from tests.support.clients.client import http_client

JSON = "application/json"
GRAPHQL_JSON = "application/graphql-response+json"
NAME = {"query": "{ __typename }"}
ANSWER = {"data": {"__typename": "Query"}}
# What a client says by GET, and neither a link nor a picture does.
NAMED = {"Accept": GRAPHQL_JSON}
# Refused by the parser, by validation and, for a variable, by the executor.
UNREADABLE = {"query": "{"}
INVALID = {"query": "{ nothing }"}
MISFIT = {"query": "query ($id: ID!) { slot(id: $id) { id } }", "variables": {"id": None}}
NOBODYS = {"query": "{ myBookings { nodes { id } } }"}


@pytest.fixture
async def http(app: AppProcess) -> AsyncIterator[httpx.AsyncClient]:
    async with http_client() as client:
        client.base_url = httpx.URL(app.url)
        yield client


def code_of(response: httpx.Response) -> str:
    """The code of an answer without data, which has to be well-formed."""
    assert response.status_code < 500, response.text
    assert response.headers["content-type"].partition(";")[0] in (JSON, GRAPHQL_JSON)
    answer = response.json()
    assert answer.keys() == {"errors"}
    assert all(isinstance(error["message"], str) for error in answer["errors"])
    return str(answer["errors"][0]["extensions"]["code"])


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
async def test_the_answer_has_the_media_type_that_the_client_prefers(
    http: httpx.AsyncClient, accept: str, media_type: str
) -> None:
    response = await http.post("/graphql", json=NAME, headers={"Accept": accept})
    assert response.status_code == 200
    assert response.headers["content-type"] == media_type
    assert response.json() == ANSWER


@pytest.mark.parametrize("accept", ["text/html", "image/*", f"{JSON};q=0", f"{JSON};q=nan"])
async def test_a_client_that_takes_none_of_our_media_types_is_told_so(
    http: httpx.AsyncClient, accept: str
) -> None:
    response = await http.post("/graphql", json=NAME, headers={"Accept": accept})
    assert response.status_code == 406
    assert code_of(response) == "BAD_USER_INPUT"


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (UNREADABLE, "GRAPHQL_PARSE_FAILED"),
        (INVALID, "GRAPHQL_VALIDATION_FAILED"),
        (MISFIT, "BAD_USER_INPUT"),
    ],
)
@pytest.mark.parametrize(("accept", "status"), [(GRAPHQL_JSON, 400), (JSON, 200)])
async def test_what_is_not_executed_is_a_400_unless_the_client_wants_plain_json(
    http: httpx.AsyncClient, sent: dict[str, Any], code: str, accept: str, status: int
) -> None:
    response = await http.post("/graphql", json=sent, headers={"Accept": accept})
    assert (response.status_code, response.headers["content-type"]) == (status, accept)
    assert code_of(response) == code


@pytest.mark.parametrize("accept", [GRAPHQL_JSON, JSON])
async def test_what_is_executed_is_a_200_even_when_a_field_fails(
    http: httpx.AsyncClient, accept: str
) -> None:
    response = await http.post("/graphql", json=NOBODYS, headers={"Accept": accept})
    assert response.status_code == 200
    answer = response.json()
    assert answer["data"] is None
    assert answer["errors"][0]["extensions"]["code"] == "UNAUTHENTICATED"
    assert answer["errors"][0]["path"] == ["myBookings"]


async def test_a_query_may_come_by_get(http: httpx.AsyncClient) -> None:
    parameters = {
        "query": "query A($on: Boolean!) { __typename @include(if: $on) } query B { me { id } }",
        "variables": '{"on": true}',
        "operationName": "A",
        "extensions": "{}",
    }
    response = await http.get("/graphql", params=parameters, headers=NAMED)
    assert response.json() == ANSWER


async def test_a_mutation_never_comes_by_get(http: httpx.AsyncClient) -> None:
    mutation = {"query": "mutation { logout }"}
    response = await http.get("/graphql", params=mutation, headers=NAMED)
    assert (response.status_code, response.headers["allow"]) == (405, "POST")
    assert code_of(response) == "BAD_USER_INPUT"


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS"])
async def test_other_methods_are_told_which_there_are(http: httpx.AsyncClient, method: str) -> None:
    response = await http.request(method, "/graphql", json=NAME)
    assert (response.status_code, response.headers["allow"]) == (405, "GET, POST")
    assert code_of(response) == "BAD_USER_INPUT"


@pytest.mark.parametrize(
    "content_type",
    ["", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=b",
     "application/graphql", "application/json; charset=utf-16", "application/json; charset=latin1",
     "application/graphql+json", "text/plain; application/json", "application/json, text/plain"],
)  # fmt: skip
async def test_a_body_that_is_not_json_is_refused_by_its_content_type(
    http: httpx.AsyncClient, content_type: str
) -> None:
    headers = {"Content-Type": content_type} if content_type else {}
    response = await http.post("/graphql", content=json.dumps(NAME), headers=headers)
    assert response.status_code == 415
    assert code_of(response) == "BAD_USER_INPUT"


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        'Application/JSON ;Charset="UTF-8"',
        "application/json; a=b; charset=utf-8",
    ],
)
async def test_a_body_of_json_in_utf_8_is_taken_however_it_is_written(
    http: httpx.AsyncClient, content_type: str
) -> None:
    headers = {"Content-Type": content_type}
    response = await http.post("/graphql", content=json.dumps(NAME), headers=headers)
    assert response.json() == ANSWER


async def test_a_compressed_body_is_refused_by_its_encoding(http: httpx.AsyncClient) -> None:
    headers = {"Content-Type": JSON, "Content-Encoding": "gzip"}
    body = gzip.compress(json.dumps(NAME).encode())
    response = await http.post("/graphql", content=body, headers=headers)
    assert response.status_code == 415
    assert code_of(response) == "BAD_USER_INPUT"


async def test_a_body_that_is_said_to_be_too_large_is_not_waited_for(app: AppProcess) -> None:
    head = "POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    url = httpx.URL(app.url)
    reader, writer = await asyncio.open_connection(url.host, url.port)
    with closing(writer):
        writer.write(f"{head}Content-Length: 65537\r\nExpect: 100-continue\r\n\r\n".encode())
        assert (await reader.readline()).split()[1] == b"413"


@pytest.mark.parametrize("accept", [GRAPHQL_JSON, JSON])
async def test_what_is_refused_before_it_is_read_is_in_the_form_that_is_preferred(
    http: httpx.AsyncClient, accept: str
) -> None:
    response = await http.post("/graphql", content=b"{", headers={"Accept": accept})
    assert (response.status_code, response.headers["content-type"]) == (415, accept)
    code_of(response)


SECRET_WORD = "hunter2hunter2"
REGISTER = "mutation($input: RegisterInput!) { register(input: $input) { __typename } }"


@pytest.mark.parametrize(
    "given",
    [
        {"password": SECRET_WORD},
        {"name": "A", "email": "a@b.test", "password": SECRET_WORD, "role": "ADMIN"},
        {"name": "A", "email": "a@b.test", "passwort": SECRET_WORD},
        {"name": "A", "email": "a@b.test", "password": [SECRET_WORD]},
        SECRET_WORD,
    ],
)
async def test_an_error_does_not_repeat_what_was_sent(http: httpx.AsyncClient, given: Any) -> None:
    sent = [{"query": REGISTER, "variables": {"input": given}}]
    if isinstance(given, dict):
        inline = ", ".join(f"{name}: {json.dumps(value)}" for name, value in given.items())
        text = REGISTER.replace("($input: RegisterInput!)", "").replace("$input", f"{{{inline}}}")
        sent.append({"query": text})
    for each in sent:
        response = await http.post("/graphql", json=each)
        assert code_of(response) in ("BAD_USER_INPUT", "GRAPHQL_VALIDATION_FAILED")
        assert SECRET_WORD not in response.text


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_body_over_64_kib_is_refused(http: httpx.AsyncClient, chunked: bool) -> None:
    body = json.dumps(NAME).encode().ljust(64 * 1024 + 1)

    async def chunks() -> AsyncIterator[bytes]:
        yield body[:60_000]
        yield body[60_000:]

    headers = {"Content-Type": JSON}
    content = chunks() if chunked else body
    response = await http.post("/graphql", content=content, headers=headers)
    assert response.status_code == 413
    assert code_of(response) == "LIMIT_EXCEEDED"
    largest = await http.post("/graphql", content=body[:-1], headers=headers)
    assert largest.json() == ANSWER


async def test_a_batch_is_refused(http: httpx.AsyncClient) -> None:
    response = await http.post("/graphql", json=[NAME, NAME])
    assert response.status_code == 400
    assert code_of(response) == "BAD_USER_INPUT"
    assert "Batches" in response.json()["errors"][0]["message"]


async def test_one_of_two_operations_has_to_be_named(http: httpx.AsyncClient) -> None:
    both = "query A { __typename } query B { me { id } }"
    assert code_of(await http.post("/graphql", json={"query": both})) == "BAD_USER_INPUT"
    named = await http.post("/graphql", json={"query": both, "operationName": "A"})
    assert named.json() == ANSWER


async def test_graphiql_is_there_for_browsers_in_development_only(
    app: AppProcess, servers: EmbeddedServers, tmp_path: Path
) -> None:
    browser = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
    settings = {
        **app_environment(servers, "development"),
        "SLOTLOCK_DATA_DIR": str(tmp_path / "data"),
    }
    command = (sys.executable, "-m", "slotlock", "dev")
    async with http_client() as http:
        with app_process(settings, tmp_path, command) as development:
            page = await http.get(development.url + "/graphql", headers=browser)
            assert (page.status_code, page.headers["content-type"]) == (
                200,
                "text/html; charset=utf-8",
            )
            assert "GraphiQL" in page.text
            program = await http.post(development.url + "/graphql", json=NAME, headers=browser)
            assert program.json() == ANSWER
            plain = await http.get(development.url + "/graphql", params=NAME)
            assert plain.json() == ANSWER
            schema = {"query": "{ __schema { queryType { name } } }"}
            asked = await http.post(development.url + "/graphql", json=schema)
            assert asked.json() == {"data": {"__schema": {"queryType": {"name": "Query"}}}}
        page = await http.get(app.url + "/graphql", headers=browser)
        assert page.headers["content-type"] == JSON
        assert code_of(page) == "BAD_USER_INPUT"
