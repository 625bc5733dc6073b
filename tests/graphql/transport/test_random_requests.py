"""Whatever bytes arrive over HTTP: an answer that is no 5xx, no traceback, no hang.

SLOTLOCK_CAMPAIGN says how many requests are tried.
"""

import json
import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.apps.processes import AppProcess
from tests.support.clients.random_requests import request_bodies
from tests.support.clients.raw_connection import open_tcp_connection, read_until_closed

EXAMPLES = int(os.environ.get("SLOTLOCK_CAMPAIGN", "300"))
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

deep = st.builds(
    lambda opening, times, inside: opening * times + inside,
    st.sampled_from(OPENINGS),
    st.integers(1, 5_000),
    st.sampled_from([b"", b"1", b"]" * 5_000, b"}" * 5_000]),
)
bodies = st.one_of(
    request_bodies.map(lambda sent: json.dumps(sent).encode()),
    request_bodies.map(
        lambda sent: json.dumps(sent, ensure_ascii=False).encode("utf-8", "replace")
    ),
    request_bodies.map(lambda sent: json.dumps(sent).encode("utf-16")),
    st.lists(request_bodies, max_size=3).map(lambda batch: json.dumps(batch).encode()),
    st.binary(max_size=300),
    deep,
)
# What a header may hold by its grammar, and what only peers send that know none.
texts = st.binary(max_size=60).map(lambda raw: raw.translate(None, b"\r\n\0"))
headers = st.fixed_dictionaries(
    {"Content-Type": st.just(b"application/json") | st.sampled_from(CONTENT_TYPES) | texts},
    optional={
        "Accept": st.sampled_from(ACCEPTS) | texts,
        "Authorization": st.sampled_from(AUTHORIZATIONS) | texts,
        "Content-Encoding": st.sampled_from([b"gzip", b"identity"]) | texts,
    },
)
methods = st.sampled_from(["POST"] * 6 + ["GET", "GET", "PUT", "HEAD", "OPTIONS", "DELETE"])


def request_of(method: str, query: bytes, sent: dict[str, bytes], body: bytes, parts: int) -> bytes:
    """The bytes of a request, its body whole or in chunks."""
    lines = [f"{method} /graphql?".encode() + query + b" HTTP/1.1", b"Host: slotlock"]
    lines += [name.encode() + b": " + value for name, value in sent.items()]
    lines += [b"Connection: close"]
    if parts == 0:
        return b"\r\n".join([*lines, b"Content-Length: %d" % len(body), b"", body])
    size = len(body) // parts + 1
    chunks = [body[at : at + size] for at in range(0, len(body), size)]
    coded = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in (*chunks, b""))
    return b"\r\n".join([*lines, b"Transfer-Encoding: chunked", b"", coded])


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    method=methods,
    query=st.sampled_from([b"", b"query={__typename}", b"query=%FF&variables=[[", b"variables={"])
    | st.text("abcquery=&%{}[]1F+", max_size=40).map(str.encode),
    sent=headers,
    body=bodies,
    parts=st.sampled_from([0, 0, 1, 3]),
)
@pytest.mark.timeout(7200 if "SLOTLOCK_CAMPAIGN" in os.environ else 120)
def test_any_request_is_answered(
    error_free_app: AppProcess,
    method: str,
    query: bytes,
    sent: dict[str, bytes],
    body: bytes,
    parts: int,
) -> None:
    with open_tcp_connection(error_free_app) as peer:
        peer.sendall(request_of(method, query, sent, body, parts))
        answer = read_until_closed(peer)
    head, _, content = answer.partition(b"\r\n\r\n")
    assert 200 <= int(head.split()[1]) < 500, answer
    if b"content-type: application/json" in head.lower() and method != "HEAD":
        assert json.loads(content).keys() <= {"data", "errors"}
