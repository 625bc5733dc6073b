"""Malformed and random requests get a response that is no 5xx, and log no traceback."""

import json
import re
from collections.abc import AsyncIterator

import httpx
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.support.apps.processes import AppProcess
from tests.support.clients.client import http_client
from tests.support.transport.random_requests import request_bodies
from tests.support.transport.raw_connection import open_tcp_connection, read_until_closed

JSON = "application/json"
CODES = {"BAD_USER_INPUT", "GRAPHQL_PARSE_FAILED", "GRAPHQL_VALIDATION_FAILED"}
OPENINGS = [b"[", b'{"a":', b'{"query":"{a', b'{"query":"{ a }","variables":{"x":[']
CONTENT_TYPES = [
    b"application/json; charset=utf-8",
    b"application/json;;=;charset",
    b"text/plain",
    b"*",
]
ACCEPTS = [
    b"*/*",
    b"text/event-stream",
    b"application/json;q=x",
    b"text/html",
    b",;q=1,",
    b"a/b;" * 500,
]
AUTHORIZATIONS = [b"Bearer", b"Bearer a.b.c", b"Basic eDp5", b"Bearer \xff"]

nested_bodies = st.builds(
    lambda opening, times, inner: opening * times + inner,
    st.sampled_from(OPENINGS),
    st.integers(1, 5_000),
    st.sampled_from([b"", b"1", b"]" * 5_000, b"}" * 5_000]),
)
bodies = st.one_of(
    request_bodies.map(lambda body: json.dumps(body).encode()),
    request_bodies.map(
        lambda body: json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
    ),
    request_bodies.map(lambda body: json.dumps(body).encode("utf-16")),
    st.lists(request_bodies, max_size=3).map(lambda batch: json.dumps(batch).encode()),
    st.binary(max_size=300),
    nested_bodies,
)
# Values of headers, including those that the grammar of HTTP forbids.
header_values = st.binary(max_size=60).map(lambda raw: raw.translate(None, b"\r\n\0"))
header_sets = st.fixed_dictionaries(
    {"Content-Type": st.just(b"application/json") | st.sampled_from(CONTENT_TYPES) | header_values},
    optional={
        "Accept": st.sampled_from(ACCEPTS) | header_values,
        "Authorization": st.sampled_from(AUTHORIZATIONS) | header_values,
        "Content-Encoding": st.sampled_from([b"gzip", b"identity"]) | header_values,
    },
)
methods = st.sampled_from(["POST"] * 6 + ["GET", "GET", "PUT", "HEAD", "OPTIONS", "DELETE"])


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


def encode_request(
    method: str, query: bytes, headers: dict[str, bytes], body: bytes, chunk_count: int
) -> bytes:
    """Return the bytes of a request; with a `chunk_count` of 0 the body is not chunked."""
    lines = [f"{method} /graphql?".encode() + query + b" HTTP/1.1", b"Host: slotlock"]
    lines += [name.encode() + b": " + value for name, value in headers.items()]
    lines += [b"Connection: close"]
    if chunk_count == 0:
        return b"\r\n".join([*lines, b"Content-Length: %d" % len(body), b"", body])
    size = len(body) // chunk_count + 1
    chunks = [body[start : start + size] for start in range(0, len(body), size)]
    encoded = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in (*chunks, b""))
    return b"\r\n".join([*lines, b"Transfer-Encoding: chunked", b"", encoded])


@settings(
    max_examples=6 * settings().max_examples,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    method=methods,
    query=st.sampled_from([b"", b"query={__typename}", b"query=%FF&variables=[[", b"variables={"])
    | st.text("abcquery=&%{}[]1F+", max_size=40).map(str.encode),
    headers=header_sets,
    body=bodies,
    chunk_count=st.sampled_from([0, 0, 1, 3]),
)
@pytest.mark.timeout(600)
def test_any_request_gets_a_response_that_is_not_a_5xx(
    error_free_app: AppProcess,
    method: str,
    query: bytes,
    headers: dict[str, bytes],
    body: bytes,
    chunk_count: int,
) -> None:
    with open_tcp_connection(error_free_app) as peer:
        peer.sendall(encode_request(method, query, headers, body, chunk_count))
        response = read_until_closed(peer)
    head, _, content = response.partition(b"\r\n\r\n")
    assert 200 <= int(head.split()[1]) < 500, response
    if b"content-type: application/json" in head.lower() and method != "HEAD":
        keys = json.loads(content).keys()
        # What is no request of GraphQL has a code outside of it.
        assert keys <= {"data", "errors"} or keys == {"error", "code"}


VARYING = re.compile(rb"date:|x-request-id: (?!same\r)")


def responses(app: AppProcess, request: bytes) -> list[tuple[list[bytes], bytes]]:
    """Return the headers and the bodies of the responses with and without the fast front.

    Only the parser, before ASGI, reads capitals in the value of the field `Connection`.
    """
    found = []
    for value in (b"keep-alive", b"Keep-Alive"):
        with open_tcp_connection(app) as peer, peer.makefile("rb") as reader:
            peer.sendall(request.replace(b"Connection: close", b"Connection: " + value, 1))
            lines = [line.lower() for line in iter(reader.readline, b"\r\n") if line]
            length = [int(line.split()[1]) for line in lines if line.startswith(b"content-length")]
            body = reader.read(*length) if length else b""  # an event stream goes on
        # A request that is no HTTP gets a new id.
        lines = [line for line in lines if not VARYING.match(line)]
        found.append((sorted(lines), body))
    return found


@settings(
    max_examples=2 * settings().max_examples,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(headers=header_sets, body=bodies, query=st.sampled_from([b"", b"", b"", b"a=b"]))
@example(headers={"Content-Type": b"text/plain"}, body=b"[" * 66_500, query=b"")
@pytest.mark.timeout(600)
def test_any_request_gets_the_same_response_with_and_without_the_fast_front(
    error_free_app: AppProcess, headers: dict[str, bytes], body: bytes, query: bytes
) -> None:
    request = encode_request("POST", query, headers | {"X-Request-Id": b"same"}, body, 0)
    request = request if query else request.replace(b"/graphql?", b"/graphql", 1)
    direct, parsed = responses(error_free_app, request)
    assert direct == parsed
