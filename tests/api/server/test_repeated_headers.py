"""A request that repeats the header of the one before gets the response of any other request."""

import socket
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette

from slotlock.api.graphql_posts import GraphQLPosts
from slotlock.api.middleware.load_shedding import LoadSheddingMiddleware
from slotlock.api.server.direct_requests import DirectProtocol
from slotlock.api.server.repeated_headers import MAX_HEADER_BYTES, repeatable_header
from slotlock.graphql.transport.http import HttpEndpoint
from slotlock.graphql.transport.http_messages import HttpPost, HttpResponse
from tests.support.transport.raw_connection import read_until, read_until_closed
from tests.support.transport.uvicorn_server import Address, connected, running_server

FIELDS = b"Host: here\r\nX-Word: first\r\n"


class EchoEndpoint(HttpEndpoint):
    """Returns what it gets."""

    def __init__(self) -> None:
        pass

    async def respond(self, post: HttpPost) -> HttpResponse:
        """Return the headers and the body."""
        echo = {**post.headers, "": post.body.decode(), "host": post.client_host}
        return HttpResponse(200, ((b"x-kind", b"echo"),), orjson.dumps(echo) + b"END")


@asynccontextmanager
async def lifespan(_: Starlette) -> AsyncIterator[dict[str, GraphQLPosts]]:
    """Offer direct requests to the server."""
    yield {"graphql_posts": GraphQLPosts(EchoEndpoint(), limited.requests, has_cors=False)}


limited = LoadSheddingMiddleware(Starlette(lifespan=lifespan), max_requests=5, max_sockets=1)


@pytest.fixture(scope="module")
def address() -> Iterator[Address]:
    """Yield the address of a server that returns what it gets."""
    with running_server(limited, 1.0, lifespan="on") as (_, address):
        yield address


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Return the bodies of the requests that the parser reads from now on."""
    bodies: list[bytes] = []
    original = DirectProtocol.on_message_complete

    def recorded(self: DirectProtocol) -> None:
        bodies.append(self._held_body or b"")
        original(self)

    monkeypatch.setattr(DirectProtocol, "on_message_complete", recorded)
    return bodies


def post(body: bytes, fields: bytes = FIELDS, end: bytes = b"") -> bytes:
    """Return a request with more fields before and after the length of its body."""
    head = b"POST /graphql HTTP/1.1\r\n%sContent-Length: %d\r\n%s\r\n" % (fields, len(body), end)
    return head + body


def exchange(connection: socket.socket, request: bytes) -> bytes:
    """Send a request; return the response."""
    connection.sendall(request)
    return read_until(connection, b"END")


@pytest.mark.parametrize("end", [b"", b"X-Last: last\r\n"])
def test_a_header_is_parsed_once_for_bodies_of_any_length(
    address: Address, parsed: list[bytes], end: bytes
) -> None:
    bodies = [b"x" * size for size in (5, 5, 0, 123, 5, 10_000, 1)]
    with connected(address) as connection:
        for body in bodies:
            response = exchange(connection, post(body, end=end))
            echo = orjson.loads(response.partition(b"\r\n\r\n")[2].removesuffix(b"END"))
            assert echo[""].encode() == body
            assert echo["content-length"] == str(len(body))
            assert echo["x-word"] == "first"
    assert parsed == bodies[:1]


CHANGING_FIELDS = (b"date:", b"x-request-id:")


def without_changing_fields(response: bytes) -> bytes:
    """Return a response without the fields that change each second, or with each request."""
    lines = response.split(b"\r\n")
    return b"\r\n".join(line for line in lines if not line.startswith(CHANGING_FIELDS))


LAST = b"Host: here\r\nConnection: close\r\n"


@pytest.mark.parametrize(
    "reads",
    [
        [post(b"x") + post(b"y", LAST)],
        [post(b"x", FIELDS.replace(b"first", b"other")), post(b"y", LAST)],
        [post(b"x", FIELDS + b"X-More: more\r\n"), post(b"y", LAST)],
        [post(b"x"), b"\r\n", post(b"y"), post(b"z", LAST)],
        [post(b"parts")[:20], post(b"parts")[20:], post(b"y", LAST)],
        [post(b"parts")[:-3], post(b"parts")[-3:], post(b"y", LAST)],
        [post(b"longer") + post(b"y", LAST)[:9], post(b"y", LAST)[9:]],
        [post(b"longer").replace(b": 6", b": 3")],
        [post(b"x").replace(b": 1", b": +1")],
        [post(b"x").replace(b": 1", b": 01"), post(b"y", LAST)],
        [post(b"x").replace(b": 1", b": 0000000001"), post(b"y", LAST)],
        [post(b"x").replace(b": 1", b": ")],
        [post(b"x").replace(b": 1", b": \xb9")],
        [post(b"x").replace(b": 1", b": 1, 1")],
        [post(b"x").replace(b": 1", b": 1\r\nContent-Length: 1")],
        [post(b"x").replace(b": 1", b": 1\r\nTransfer-Encoding: chunked")],
        [post(b"x").replace(b"POST", b"PUT"), post(b"y", LAST)],
        [post(b"x").replace(b"/graphql", b"/other"), post(b"y", LAST)],
        [post(b"x").replace(b"HTTP/1.1", b"HTTP/1.0")],
        [post(b"x", LAST)],
    ],
)
def test_any_read_after_a_request_gets_the_response_that_it_gets_without_one(
    address: Address, reads: list[bytes]
) -> None:
    responses = []
    for has_repeated_header in (False, True):
        with connected(address) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if has_repeated_header:
                exchange(connection, post(b"before"))
            for read in reads:
                connection.sendall(read)
                time.sleep(0.02)
            responses.append(without_changing_fields(read_until_closed(connection)))
    assert responses[0] == responses[1]
    assert responses[0]


def test_long_headers_are_parsed_each_time(address: Address, parsed: list[bytes]) -> None:
    fields = b"Host: here\r\nX-Long: %s\r\n" % (b"x" * MAX_HEADER_BYTES)
    with connected(address) as connection:
        for _ in range(2):
            exchange(connection, post(b"x", fields))
    assert parsed == [b"x", b"x"]


@given(data=st.binary(max_size=200), body=st.binary(max_size=20))
def test_a_header_matches_itself_with_a_body_of_its_length_only(data: bytes, body: bytes) -> None:
    request = post(b"body")
    header = repeatable_header(request, HttpPost({"content-length": "4"}, None, b"body", None))
    assert header is not None
    repeated = header.find_post(post(body))
    assert repeated is not None
    assert repeated.body == body
    assert repeated.headers == {"content-length": str(len(body))}
    assert header.find_post(data) is None
    assert header.find_post(request + b"x") is None
    assert header.find_post(request[:-1]) is None
    assert header.find_post(request[: len(data)]) is None or len(data) >= len(request)
