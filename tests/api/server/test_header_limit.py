"""A client cannot fill the memory of a process with bytes that belong to no body."""

import json
from collections.abc import Iterator
from itertools import repeat

import httpx
import pytest

from slotlock.api.server.header_limit import MAX_HEADER_BYTES
from tests.support.apps.processes import AppProcess
from tests.support.clients.teams import CREATE_TEAM, create_team_clients
from tests.support.transport.raw_connection import open_tcp_connection

BODY = json.dumps({"query": "{ __typename }"}).encode()
POST = b"POST /graphql HTTP/1.1\r\nHost: slotlock\r\nContent-Type: application/json\r\n"
CHUNKED_POST = POST + b"Transfer-Encoding: chunked\r\n\r\n"
UPGRADE = (
    b"GET /graphql HTTP/1.1\r\nHost: slotlock\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
)
READ_BYTES = 8 * 1024
# Far more than a process may buffer, and than the kernels between it and the test buffer.
ENDLESS_BYTES = 64 * 1024 * 1024
# The start of each request, and the bytes that follow without end.
ENDLESS_REQUESTS = {
    "a header field": (POST + b"X: ", b"a"),
    "a header field of a handshake": (UPGRADE + b"X: ", b"a"),
    "many header fields": (POST, b"x: a\r\n"),
    "a path": (b"GET /", b"a"),
    "a method": (b"", b"A"),
    "empty lines": (b"", b"\r\n"),
    "an extension of a chunk": (CHUNKED_POST + b"1;", b"a"),
    "a trailer": (CHUNKED_POST + b"1\r\n{\r\n0\r\nX: ", b"a"),
    "many trailers": (CHUNKED_POST + b"1\r\n{\r\n0\r\n", b"x: a\r\n"),
}


def resident_bytes(app: AppProcess) -> int:
    """Return the resident memory of a process."""
    with open(f"/proc/{app.process.pid}/statm") as statm:
        return int(statm.read().split()[1]) * 4096


@pytest.fixture
def small_app(app: AppProcess) -> Iterator[AppProcess]:
    """Yield the app, whose memory must not grow much during the test."""
    before = resident_bytes(app)
    yield app
    assert resident_bytes(app) - before < ENDLESS_BYTES // 2


@pytest.mark.parametrize("kind", ENDLESS_REQUESTS)
def test_an_endless_request_is_cut_off_and_not_buffered(small_app: AppProcess, kind: str) -> None:
    start, repeated = ENDLESS_REQUESTS[kind]
    piece = repeated * (READ_BYTES // len(repeated))
    with open_tcp_connection(small_app) as peer:
        peer.sendall(start)
        with pytest.raises(ConnectionError):  # noqa: PT012 - a later send notices the close
            for _ in repeat(None, ENDLESS_BYTES // len(piece)):
                peer.sendall(piece)
    assert httpx.get(f"{small_app.url}/healthz", trust_env=False).status_code == 200


def test_a_large_body_does_not_allow_endless_trailers(small_app: AppProcess) -> None:
    chunk, trailers = b"c8000\r\n%s\r\n" % (b" " * 0xC8000), b"x: a\r\n" * 2_000
    with open_tcp_connection(small_app) as peer:
        peer.sendall(CHUNKED_POST.replace(b"/graphql", b"/none"))
        for _ in range(25):
            peer.sendall(chunk)
        with pytest.raises(ConnectionError):  # noqa: PT012 - a later send notices the close
            peer.sendall(b"0\r\n")
            for _ in repeat(None, ENDLESS_BYTES // len(trailers)):
                peer.sendall(trailers)


def test_a_header_that_is_too_large_gets_431(app: AppProcess) -> None:
    with open_tcp_connection(app) as peer:
        peer.sendall(POST + b"X: " + b"a" * MAX_HEADER_BYTES)
        assert peer.recv(1_000).startswith(b"HTTP/1.1 431 ")


@pytest.mark.parametrize(
    "size", [MAX_HEADER_BYTES - 1_000, MAX_HEADER_BYTES, MAX_HEADER_BYTES + 1, 100_000, 200_000]
)
@pytest.mark.parametrize("part", ["field", "path"])
async def test_a_request_is_either_processed_with_200_or_rejected_with_431(
    app: AppProcess, http: httpx.AsyncClient, size: int, part: str
) -> None:
    (client,) = await create_team_clients(app, http, 1)
    body = json.dumps({"query": CREATE_TEAM, "variables": {"name": "T"}}).encode()
    start, padding = POST, b"a" * size
    if part == "path":
        start = start.replace(b"/graphql", b"/graphql?" + padding)
    else:
        start += b"X: %s\r\n" % padding
    start += b"Authorization: Bearer %s\r\n" % client.token.encode()
    with open_tcp_connection(app) as peer:
        peer.sendall(start + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        status = peer.recv(100_000).split(b" ")[1]
    assert status == (b"200" if size < MAX_HEADER_BYTES else b"431")
    assert len(await client.execute("{ myTeams { id } }")) == (status == b"200")


def test_a_large_header_and_a_body_in_one_byte_chunks_are_accepted(app: AppProcess) -> None:
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in b" " * 60_000 + BODY)
    with open_tcp_connection(app) as peer:
        for _ in range(2):
            peer.sendall(POST + b"X: " + b"a" * 50_000 + b"\r\n")
            peer.sendall(b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n")
            response = b""
            while not response.endswith(b'"Query"}}'):
                response += peer.recv(10_000) or pytest.fail(f"cut off after {response!r}")
            assert response.startswith(b"HTTP/1.1 200 ")


def test_a_thousand_requests_in_one_read_are_all_answered(app: AppProcess) -> None:
    request = POST + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY
    with open_tcp_connection(app) as peer:
        peer.sendall(request * 1_000)
        responses = b""
        while responses.count(b'"Query"}}') < 1_000:
            responses += peer.recv(100_000) or pytest.fail(f"cut off: {responses[-500:]!r}")
    assert responses.count(b"HTTP/1.1 200 ") == 1_000
