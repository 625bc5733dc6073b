"""Nobody fills the memory of a process with what is no request."""

import json
from collections.abc import Iterator
from itertools import repeat

import httpx
import pytest

from slotlock.api.server.header_limit import MAX_HEADER_BYTES
from tests.support.apps.processes import AppProcess
from tests.support.clients.raw_connection import open_tcp_connection
from tests.support.clients.teams import CREATE_TEAM, create_team_clients

ASKED = json.dumps({"query": "{ __typename }"}).encode()
START = b"POST /graphql HTTP/1.1\r\nHost: here\r\nContent-Type: application/json\r\n"
CHUNKED = START + b"Transfer-Encoding: chunked\r\n\r\n"
UPGRADE = b"GET /graphql HTTP/1.1\r\nHost: here\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
PIECE = 8 * 1024
# Far more than a process may keep, and than the buffers between it and us hold.
ENOUGH = 64 * 1024 * 1024
ENDLESS = {
    "one header": (START + b"X: ", b"a"),
    "one of a socket": (UPGRADE + b"X: ", b"a"),
    "many headers": (START, b"x: a\r\n"),
    "an address": (b"GET /", b"a"),
    "a method": (b"", b"A"),
    "empty lines": (b"", b"\r\n"),
    "an extension of a chunk": (CHUNKED + b"1;", b"a"),
    "a trailer": (CHUNKED + b"1\r\n{\r\n0\r\nX: ", b"a"),
    "many trailers": (CHUNKED + b"1\r\n{\r\n0\r\n", b"x: a\r\n"),
}


def resident(app: AppProcess) -> int:
    """The bytes of memory that a process has."""
    with open(f"/proc/{app.process.pid}/statm") as told:
        return int(told.read().split()[1]) * 4096


@pytest.fixture
def light(app: AppProcess) -> Iterator[AppProcess]:
    before = resident(app)
    yield app
    assert resident(app) - before < ENOUGH // 2


@pytest.mark.parametrize("what", ENDLESS)
def test_what_has_no_end_is_cut_off_and_not_kept(light: AppProcess, what: str) -> None:
    start, more = ENDLESS[what]
    piece = more * (PIECE // len(more))
    with open_tcp_connection(light) as connection:
        connection.sendall(start)
        with pytest.raises(ConnectionError):  # noqa: PT012 - what is cut off is told by a later one
            for _ in repeat(None, ENOUGH // len(piece)):
                connection.sendall(piece)
    assert httpx.get(f"{light.url}/healthz", trust_env=False).status_code == 200


def test_a_large_body_earns_no_trailers(light: AppProcess) -> None:
    chunk, trailers = b"c8000\r\n%s\r\n" % (b" " * 0xC8000), b"x: a\r\n" * 2_000
    with open_tcp_connection(light) as connection:
        connection.sendall(CHUNKED.replace(b"/graphql", b"/none"))
        for _ in range(25):
            connection.sendall(chunk)
        with pytest.raises(ConnectionError):  # noqa: PT012 - what is cut off is told by a later one
            connection.sendall(b"0\r\n")
            for _ in repeat(None, ENOUGH // len(trailers)):
                connection.sendall(trailers)


def test_who_sends_a_header_that_is_too_large_is_told(app: AppProcess) -> None:
    with open_tcp_connection(app) as connection:
        connection.sendall(START + b"X: " + b"a" * MAX_HEADER_BYTES)
        assert connection.recv(1_000).startswith(b"HTTP/1.1 431 ")


@pytest.mark.parametrize(
    "size", [MAX_HEADER_BYTES - 1_000, MAX_HEADER_BYTES, MAX_HEADER_BYTES + 1, 100_000, 200_000]
)
@pytest.mark.parametrize("where", ["field", "address"])
async def test_what_is_done_is_answered_and_what_is_too_large_is_not_done(
    app: AppProcess, http: httpx.AsyncClient, size: int, where: str
) -> None:
    (person,) = await create_team_clients(app, http, 1)
    body = json.dumps({"query": CREATE_TEAM, "variables": {"name": "T"}}).encode()
    start, long = START, b"a" * size
    if where == "address":
        start = start.replace(b"/graphql", b"/graphql?" + long)
    else:
        start += b"X: %s\r\n" % long
    with open_tcp_connection(app) as connection:
        connection.sendall(
            start
            + b"Authorization: Bearer %s\r\n" % person.token.encode()
            + b"Content-Length: %d\r\n\r\n" % len(body)
            + body
        )
        status = connection.recv(100_000).split(b" ")[1]
    assert status == (b"200" if size < MAX_HEADER_BYTES else b"431")
    assert len(await person.execute("{ myTeams { id } }")) == (status == b"200")


def test_a_large_header_and_a_body_in_the_smallest_chunks_are_taken(app: AppProcess) -> None:
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in b" " * 60_000 + ASKED)
    with open_tcp_connection(app) as connection:
        for _ in range(2):
            connection.sendall(START + b"X: " + b"a" * 50_000 + b"\r\n")
            connection.sendall(b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n")
            answer = b""
            while not answer.endswith(b'"Query"}}'):
                answer += connection.recv(10_000) or pytest.fail(f"cut off after {answer!r}")
            assert answer.startswith(b"HTTP/1.1 200 ")


def test_many_requests_in_one_piece_are_all_answered(app: AppProcess) -> None:
    one = START + b"Content-Length: %d\r\n\r\n" % len(ASKED) + ASKED
    with open_tcp_connection(app) as connection:
        connection.sendall(one * 1_000)
        answers = b""
        while answers.count(b'"Query"}}') < 1_000:
            answers += connection.recv(100_000) or pytest.fail(f"cut off: {answers[-500:]!r}")
    assert answers.count(b"HTTP/1.1 200 ") == 1_000
