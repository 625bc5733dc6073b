"""Random HTTP requests: every one gets a response that is not a 5xx, and no traceback is logged.

TEST_CAMPAIGN sets the number of requests.
"""

import json
import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.apps.processes import AppProcess
from tests.support.transport.random_requests import request_bodies
from tests.support.transport.raw_connection import open_tcp_connection, read_until_closed

EXAMPLES = int(os.environ.get("TEST_CAMPAIGN", "300"))
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
    max_examples=EXAMPLES,
    deadline=None,
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
@pytest.mark.timeout(7200 if "TEST_CAMPAIGN" in os.environ else 120)
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
        assert json.loads(content).keys() <= {"data", "errors"}
