"""Malformed requests get an error in JSON: never a 5xx and never a traceback."""

from collections.abc import AsyncIterator

import httpx
import pytest

from tests.support.apps.processes import AppProcess
from tests.support.clients.client import http_client

JSON = "application/json"
CODES = {"BAD_USER_INPUT", "GRAPHQL_PARSE_FAILED", "GRAPHQL_VALIDATION_FAILED"}


@pytest.fixture
async def http(app: AppProcess) -> AsyncIterator[httpx.AsyncClient]:
    errors_before = app.log.count(" ERROR ")
    async with http_client() as client:
        client.base_url = httpx.URL(app.url)
        yield client
    assert app.log.count(" ERROR ") == errors_before, app.log


def error_code(response: httpx.Response) -> str:
    """Return the code of a response without data."""
    assert response.status_code in (200, 400)
    assert response.headers["content-type"] == JSON
    assert "Traceback" not in response.text
    body = response.json()
    assert body.keys() == {"errors"}
    return str(body["errors"][0]["extensions"]["code"])


QUERY = (
    b'{"query": "query ($x: Int) { slots(first: $x) { nodes { id } } }", "variables": {"x": %s}}'
)


@pytest.mark.parametrize(
    "body",
    [
        b"", b" ", b"null", b"true", b"7", b'"{ __typename }"', b"{}", b"[]", b"{", b"\xff\xfe",
        b"\x00", b"\xef\xbb\xbf{}", "{ }".encode("utf-16"), b"[" * 60_000, b'{"a":' * 10_000,
        b'{"query": null}', b'{"query": 7}', b'{"query": ""}', b'{"query": ["{ __typename }"]}',
        b'{"query": " # nothing "}', b'{"query": "\\ud800"}', b'{"query": "\xed\xa0\x80"}',
        b'{"query": "{ slot(id: \\"\\\\ud800\\") { id } }"}', b'{"query": "\\u0000"}',
        b'{"query": "fragment F on Query { __typename }"}', b'{"query": "type A { a: Int }"}',
        b'{"query": "{ __typename }", "variables": []}',
        b'{"query": "{ __typename }", "variables": "{}"}',
        b'{"query": "{ __typename }", "operationName": 7}',
        b'{"query": "{ __typename }", "operationName": {}}',
        b'{"query": "{ __typename }", "operationName": "Other"}',
        b'{"query": "{ __typename }", "extensions": 7}',
        QUERY % b"NaN", QUERY % b"1e999", QUERY % (b"9" * 400), QUERY % b"1.5", QUERY % b"[[[1]]]",
        QUERY % b'{"a": {}}', QUERY % (b"[" * 900 + b"]" * 900), QUERY % b'"\\ud800"',
        QUERY % b"99999999999999999999",
    ],
)  # fmt: skip
async def test_a_malformed_body_gets_an_error_in_json(http: httpx.AsyncClient, body: bytes) -> None:
    response = await http.post("/graphql", content=body, headers={"Content-Type": JSON})
    assert error_code(response) in CODES


@pytest.mark.parametrize(
    "query",
    ["", "query=", "query=%FF", "query={node(id:\"%FF\"){id}}",
     "query={__typename}&variables=[]", "query={__typename}&variables={",
     "query={__typename}&variables=7", "query={__typename}&extensions=NaN", "variables={}"],
)  # fmt: skip
async def test_a_malformed_query_string_gets_an_error_in_json(
    http: httpx.AsyncClient, query: str
) -> None:
    response = await http.get(f"/graphql?{query}", headers={"Accept": "application/json"})
    assert error_code(response) in CODES
