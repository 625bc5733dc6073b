"""A client cannot fill the memory with bytes of no body, nor send a malformed header."""

import json
import re
from collections.abc import Iterator
from itertools import repeat

import httpx
import pytest

from slotlock.api.server.request_headers import MAX_HEADER_BYTES
from tests.support.apps.processes import AppProcess
from tests.support.clients.teams import CREATE_TEAM, create_team_clients
from tests.support.transport.raw_connection import (
    WEBSOCKET_HANDSHAKE,
    open_tcp_connection,
    read_until_closed,
)

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
    response = httpx.get(f"{small_app.url}/healthz", trust_env=False, timeout=30)
    assert response.status_code == 200


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


HOST = b"Host: slotlock\r\n"
JSON_TYPE = b"Content-Type: application/json\r\n"
LENGTH = b"Content-Length: %d\r\n" % len(BODY)
CHUNKED = b"Transfer-Encoding: chunked\r\n"
CHUNKS = b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)
LAST_REQUEST = b"GET /healthz HTTP/1.1\r\nHost: slotlock\r\nConnection: close\r\n\r\n"


def post(
    fields: bytes = b"",
    body: bytes = BODY,
    *,
    length: bytes = LENGTH,
    host: bytes = HOST,
    target: bytes = b"/graphql",
    version: bytes = b"HTTP/1.1",
) -> bytes:
    """Return a POST with more fields."""
    head = b"POST %s %s\r\n%s%s%s%s\r\n" % (target, version, host, JSON_TYPE, fields, length)
    return head + body


def chunked(fields: bytes = b"", body: bytes = CHUNKS, coding: bytes = b"", **more: bytes) -> bytes:
    """Return a POST in chunks, or with another transfer coding."""
    length = b"Transfer-Encoding: %s\r\n" % coding if coding else CHUNKED
    return post(fields, body, length=length, **more)


def send(app: AppProcess, request: bytes) -> bytes:
    """Return what the server sends to a request and LAST_REQUEST until it closes the connection."""
    with open_tcp_connection(app) as peer:
        peer.sendall(request + LAST_REQUEST)
        return read_until_closed(peer)


MALFORMED = {
    "no host": post(host=b""),
    "two hosts": post(host=HOST + HOST),
    "two different hosts": post(host=HOST + b"Host: other\r\n"),
    "two hosts in HTTP/1.0": post(host=HOST + HOST, version=b"HTTP/1.0"),
    "hosts joined by a comma": post(host=b"Host: here, there\r\n"),
    "a host with a space": post(host=b"Host: a b\r\n"),
    "a host with a path": post(host=b"Host: a/b\r\n"),
    "a host with a user": post(host=b"Host: user@a\r\n"),
    "a host outside ASCII": post(host=b"Host: \xc3\xa9\r\n"),
    "a port that is no number": post(host=b"Host: a:8x\r\n"),
    "two authorizations": post(b"Authorization: Bearer a\r\nAuthorization: Bearer b\r\n"),
    "two types": post(JSON_TYPE),
    "two origins": post(b"Origin: https://a\r\norigin: https://b\r\n"),
    "a coding before chunked": chunked(coding=b"gzip, chunked"),
    "codings in two fields": chunked(b"Transfer-Encoding: gzip\r\n"),
    "chunked twice": chunked(coding=b"chunked, chunked"),
    "chunked in two fields": chunked(CHUNKED),
    "an unknown coding": chunked(coding=b"gzip"),
    "an empty coding": chunked(coding=b" "),
    "identity": chunked(coding=b"identity"),
    "chunks in HTTP/1.0": chunked(version=b"HTTP/1.0"),
    "a length and chunks": chunked(LENGTH),
    "two equal lengths": post(LENGTH),
    "two different lengths": post(b"Content-Length: 1\r\n"),
    "a list of lengths": post(length=LENGTH.replace(b"\r", b", %d\r" % len(BODY))),
    "a length with a sign": post(length=LENGTH.replace(b": ", b": +")),
    "a negative length": post(length=b"Content-Length: -1\r\n"),
    "an empty length": post(length=b"Content-Length:\r\n"),
    "a length beyond 64 bits": post(length=b"Content-Length: %s\r\n" % (b"9" * 30)),
    "a folded line": post(b"X: a\r\n b\r\n"),
    "a space before the colon": post(b"X : a\r\n"),
    "a space before the first field": post(host=b" " + HOST),
    "a field without a name": post(b": a\r\n"),
    "a field without a colon": post(b"X\r\n"),
    "NUL in a name": post(b"X\0: a\r\n"),
    "NUL in a value": post(b"X: a\0b\r\n"),
    "CR in a value": post(b"X: a\rb\r\n"),
    "lines without CR": post().replace(b"\r\n", b"\n"),
    "HTTP/2.0": post(version=b"HTTP/2.0"),
    "HTTP/0.9": post(version=b"HTTP/0.9"),
    "no version": b"GET /healthz\r\n\r\n",
    "the preface of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "a target with a fragment": post(target=b"/graphql#part"),
    "a target with a space": post(target=b"/graph ql"),
    "a target with NUL": post(target=b"/graphql\0"),
    "a target without a slash": post(target=b"graphql"),
    "an unknown method": post().replace(b"POST", b"FETCH"),
    "a size that is no number": chunked(body=CHUNKS.replace(b"\r", b"z\r", 1)),
    "a negative size": chunked(body=b"-" + CHUNKS),
    "a size beyond 64 bits": chunked(body=b"f" * 17 + CHUNKS),
    "a chunk longer than its size": chunked(body=CHUNKS.replace(b"}", b"}}")),
    "two authorizations of a handshake": WEBSOCKET_HANDSHAKE.replace(
        b"\r\n\r\n", b"\r\nAuthorization: a\r\nAuthorization: b\r\n\r\n"
    ),
    "a handshake without a host": WEBSOCKET_HANDSHAKE.replace(HOST, b""),
    "two keys of a handshake": WEBSOCKET_HANDSHAKE.replace(
        b"\r\n\r\n", b"\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    ),
}


@pytest.mark.parametrize("target", [b"/graphql", b"/users/import"])
@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_request_gets_400_and_is_the_last_of_its_connection(
    app: AppProcess, name: str, target: bytes
) -> None:
    response = send(app, MALFORMED[name].replace(b"/graphql", target))
    assert re.findall(rb"HTTP/1\.1 (\d+)", response) == [b"400"]
    assert json.loads(response.partition(b"\r\n\r\n")[2])["code"] == "BAD_USER_INPUT"


# A client upgrades a connection only when it expects no response.
@pytest.mark.parametrize("name", [name for name in MALFORMED if "handshake" not in name])
def test_a_malformed_request_is_answered_after_those_that_arrived_before_it(
    app: AppProcess, name: str
) -> None:
    response = send(app, 2 * post() + MALFORMED[name])
    assert re.findall(rb"HTTP/1\.1 (\d+)", response) == [b"200", b"200", b"400"]


UNUSUAL = {
    "HTTP/1.0 without a host": post(host=b"", version=b"HTTP/1.0"),
    "an empty host": post(host=b"Host:\r\n"),
    "a host with a port": post(host=b"Host: my_host.example:80\r\n"),
    "an address of IPv6": post(host=b"Host: [::1]:80\r\n"),
    "an absolute target": post(target=b"http://slotlock/graphql"),
    "chunked in capitals": chunked(coding=b"CHUNKED"),
    "chunked in a list with an empty element": chunked(coding=b", chunked"),
    "an extension of a chunk": chunked(body=CHUNKS.replace(b"\r", b";a=b\r", 1)),
    "no space before a value": post(host=b"Host:slotlock\r\n"),
    "spaces around a value": post(host=b"Host: \t slotlock \t \r\n"),
    "a tab and Latin-1 in a value": post(b"X: a\tb\xe9\r\n"),
    "several values of a list": post(b"Accept: text/csv\r\nAccept: application/json\r\n"),
    "two fields of no interest": post(b"X: a\r\nX: b\r\n"),
    "an empty line before the request": b"\r\n" + post(),
}


@pytest.mark.parametrize("name", UNUSUAL)
def test_an_unusual_request_is_served(app: AppProcess, name: str) -> None:
    response = send(app, UNUSUAL[name])
    assert response.startswith(b"HTTP/1.1 200 ")
    assert b'{"data":{"__typename":"Query"}}' in response


def test_a_trailer_is_no_part_of_the_header(app: AppProcess) -> None:
    body = json.dumps({"query": "{ me { id } }"}).encode()
    trailer = b"0\r\nAuthorization: Bearer none\r\n\r\n"
    chunk = b"%x\r\n%s\r\n" % (len(body), body)
    as_header = send(app, chunked(b"Authorization: Bearer none\r\n", chunk + b"0\r\n\r\n"))
    as_trailer, no_token = (send(app, chunked(body=chunk + end)) for end in (trailer, b"0\r\n\r\n"))
    body_of = re.compile(rb"\{.*?\}(?=HTTP)")
    assert body_of.findall(as_trailer) == body_of.findall(no_token) != body_of.findall(as_header)
