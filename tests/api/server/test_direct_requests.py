"""A request without ASGI gets the same response in one write as any other request in several."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager
from email import message_from_bytes
from email.message import Message

import orjson
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from slotlock.api.middleware.load_shedding import LoadSheddingMiddleware
from slotlock.api.middleware.response_headers import SECURITY_HEADERS, ResponseHeadersMiddleware
from slotlock.api.server.direct_posts import DirectPosts
from slotlock.graphql.transport.http import HttpEndpoint
from slotlock.graphql.transport.http_messages import HttpRequest, HttpResponse, send_response
from tests.support.polling import wait_until
from tests.support.transport.raw_connection import read_until, read_until_closed, reset_connection
from tests.support.transport.uvicorn_server import Address, connected, running_server

UNREAD_TIMEOUT_S = 1.0
# For clients that read: a busy machine may hold them up.
LONG_UNREAD_TIMEOUT_S = 30.0
LARGE_BODY = b"x" * 2**20
MAX_REQUESTS = 2
released = threading.Event()


async def respond(action: str, body: bytes, host: str | None, *, is_direct: bool) -> HttpResponse:
    """Return the body of the request, or what a header asks for."""
    headers = [(b"content-type", b"text/plain"), (b"x-direct", str(is_direct).encode())]
    if action == "close":
        headers.append((b"connection", b"close"))
    if action == "wait":
        while not released.is_set():
            await asyncio.sleep(0.01)
    if action == "host":
        body = str(host).encode()
    if action == "fail":
        raise LookupError
    return HttpResponse(200, tuple(headers), LARGE_BODY if action == "large" else body)


class Endpoint(HttpEndpoint):
    """An endpoint that needs no databases."""

    def __init__(self) -> None:
        pass

    async def respond(self, post: HttpRequest) -> HttpResponse:
        """Respond without ASGI."""
        action = post.headers.get("x-action", "")
        return await respond(action, post.content, post.client_host, is_direct=True)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond over ASGI."""
        request = Request(scope, receive)
        action = request.headers.get("x-action", "")
        host = request.client.host if request.client else None
        response = await respond(action, await request.body(), host, is_direct=False)
        await send_response(response, send)


@asynccontextmanager
async def lifespan(_: Starlette) -> AsyncIterator[dict[str, DirectPosts]]:
    """Offer direct requests to the server."""
    yield {"direct_posts": DirectPosts(endpoint, limited.requests, has_cors=True)}


endpoint = Endpoint()
application = Starlette(lifespan=lifespan)
application.mount("/", endpoint)
limited = LoadSheddingMiddleware(application, max_requests=MAX_REQUESTS, max_sockets=1)


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[tuple[uvicorn.Server, Address]]:
    """Yield a server with room for two requests at once, and its address.

    A test may give it another time for clients that read nothing.
    """
    released.clear()
    app = ResponseHeadersMiddleware(limited)
    unread_timeout_s = getattr(request, "param", LONG_UNREAD_TIMEOUT_S)
    with running_server(app, unread_timeout_s, lifespan="on") as running:
        yield running
        released.set()
    assert limited.requests.active == 0


@pytest.fixture
def address(server: tuple[uvicorn.Server, Address]) -> Address:
    """Return the address of the server."""
    return server[1]


def post(
    body: bytes,
    action: bytes = b"",
    fields: bytes = b"",
    version: bytes = b"1.1",
    path: bytes = b"/graphql",
) -> bytes:
    """Return a request."""
    head = b"POST %s HTTP/%s\r\nHost: here\r\nX-Action: %s\r\n%s" % (path, version, action, fields)
    return b"%sContent-Length: %d\r\n\r\n%s" % (head, len(body), body)


def read_response(connection: socket.socket) -> tuple[Message, bytes]:
    """Return the header fields and the body of the next response."""
    with connection.makefile("rb", buffering=0) as stream:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            byte = stream.read(1)
            assert byte, head
            head += byte
        status_line, _, fields = head.partition(b"\r\n")
        assert status_line.endswith((b" 200 OK", b" 503 Service Unavailable")), status_line
        headers = message_from_bytes(fields)
        body = b""
        while len(body) < int(headers["content-length"]):
            body += stream.read(int(headers["content-length"]) - len(body)) or b""
        return headers, body


def test_both_kinds_of_responses_have_the_same_headers(
    server: tuple[uvicorn.Server, Address],
) -> None:
    tasks = server[0].server_state.tasks
    with connected(server[1]) as connection:
        connection.sendall(post(b"whole"))
        whole, whole_body = read_response(connection)
        wait_until(lambda: not tasks, "the first request is over")
        head, _, body = post(b"parts").partition(b"\r\n\r\n")
        connection.sendall(head + b"\r\n\r\n")
        wait_until(lambda: bool(tasks), "the header is read without its body")
        connection.sendall(body)
        parts, parts_body = read_response(connection)
    assert (whole_body, parts_body) == (b"whole", b"parts")
    assert (whole["x-direct"], parts["x-direct"]) == ("True", "False")
    assert sorted(map(str.lower, whole.keys())) == sorted(map(str.lower, parts.keys()))
    for name, value in SECURITY_HEADERS:
        assert whole.get_all(name.decode()) == [value.decode()]
    assert whole["date"]
    assert "connection" not in whole


def test_a_client_that_waits_for_100_continue_gets_it(address: Address) -> None:
    with connected(address) as connection:
        connection.sendall(post(b"body", fields=b"Expect: 100-continue\r\n"))
        responses = read_until(connection, b"\r\n\r\nbody")
    assert b"x-direct: False\r\n" in responses
    assert responses.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n")


def test_pipelined_requests_get_their_responses_in_order(address: Address) -> None:
    bodies = [b"%d" % number for number in range(50)]
    requests = [post(b"direct", b"wait"), *map(post, bodies)]
    with connected(address) as connection:
        connection.sendall(requests[0])
        wait_until(lambda: limited.requests.active == 1, "the first is in progress")
        connection.sendall(b"".join(requests[1:]))
        released.set()
        responses = [read_response(connection) for _ in requests]
    assert [body for _, body in responses] == [b"direct", *bodies]
    assert responses[0][0]["x-direct"] == "True"


def test_a_stop_answers_each_request_that_takes_too_long_by_what_it_may_have_changed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    released.clear()
    incomplete = post(b"body", path=b"/other")[:-1]
    import_ = post(b"", b"wait", path=b"/other")
    export = import_.replace(b"POST", b"GET")
    requests = [incomplete, export, import_]
    with ExitStack() as stack:
        server, address = stack.enter_context(
            running_server(limited, UNREAD_TIMEOUT_S, lifespan="on", graceful_stop_s=1)
        )
        connections = [stack.enter_context(connected(address)) for _ in requests]
        for connection, request in zip(connections, requests, strict=True):
            connection.sendall(request)
        wait_until(lambda: len(server.server_state.tasks) == 3, "all are in progress")
        server.should_exit = True
        codes = []
        for connection in connections:
            headers, body = read_response(connection)
            assert headers["retry-after"]
            codes.append(orjson.loads(body)["errors"][0]["extensions"]["code"])
    assert codes == ["INTERNAL", "INTERNAL", "OUTCOME_UNKNOWN"]
    assert not [each.exc_info for each in caplog.records if each.exc_info]


@pytest.mark.parametrize(
    "request_",
    [post(b"x", fields=b"Connection: close\r\n"), post(b"x", version=b"1.0"), post(b"x", b"close")],
)
def test_the_connection_closes_after_the_response_if_one_side_asks(
    address: Address, request_: bytes
) -> None:
    with connected(address) as connection:
        connection.sendall(request_)
        response = read_until_closed(connection)
    assert response.endswith(b"\r\n\r\nx")
    assert response.lower().count(b"connection: close\r\n") == 1


def test_the_response_to_head_has_no_body(address: Address) -> None:
    with connected(address) as connection:
        connection.sendall(
            b"HEAD / HTTP/1.1\r\nHost: here\r\nX-Action: large\r\n\r\n" + post(b"next")
        )
        head = read_until(connection, b"\r\n\r\nnext")
    assert b"content-length: %d\r\n" % len(LARGE_BODY) in head
    assert b"xx" not in head


def is_full(address: Address) -> bool:
    """Return whether the server has no room for another request."""
    with connected(address) as connection:
        connection.sendall(post(b"small"))
        return read_response(connection)[1] != b"small"


def test_responses_wait_until_the_client_has_read_earlier_ones(address: Address) -> None:
    with connected(address) as first, connected(address) as second:
        for connection in (first, second):
            connection.sendall(post(b"", b"large") * 8)
        for connection in (first, second):
            assert [read_response(connection)[1] for _ in range(8)] == [LARGE_BODY] * 8


@pytest.mark.parametrize("server", [UNREAD_TIMEOUT_S], indirect=True)
def test_clients_that_read_nothing_take_no_places(address: Address) -> None:
    with contextlib.ExitStack() as peers:
        for _ in range(2 * MAX_REQUESTS):
            peer = peers.enter_context(connected(address))
            peer.sendall(post(b"", b"large") * 8)
            peer.recv(1)
        wait_until(lambda: limited.requests.active == 0, "no request is in progress")
        wait_until(lambda: not is_full(address), "there is room")


@pytest.mark.parametrize("end", [reset_connection, socket.socket.close])
def test_a_client_that_disconnects_while_it_waits_leaves_its_neighbors_unharmed(
    address: Address, end: Callable[[socket.socket], None], caplog: pytest.LogCaptureFixture
) -> None:
    with connected(address) as leaving, connected(address) as staying:
        leaving.sendall(post(b"leaving", b"wait") * 2)
        staying.sendall(post(b"staying", b"wait") * 2)
        wait_until(lambda: is_full(address), "both are processed")
        end(leaving)
        released.set()
        assert [read_response(staying)[1] for _ in range(2)] == [b"staying"] * 2
        wait_until(lambda: not is_full(address), "both places are free")
    assert not caplog.records


@pytest.mark.parametrize(
    "request_",
    [
        post(b"x", path=b"/other"),
        post(b"x", path=b"/graphql?query=x"),
        post(b"x", fields=b"Origin: https://example.org\r\n"),
        post(b"x", fields=b"Accept: text/event-stream\r\n"),
        post(b"x", fields=b"Accept: text/*, application/json;q=0.5\r\n"),
        post(b"x").replace(b"POST", b"PUT"),
        post(b"1\r\nx\r\n0\r\n\r\n").replace(b"Content-Length: 11", b"Transfer-Encoding: chunked"),
    ],
)
def test_unusual_requests_go_over_asgi(address: Address, request_: bytes) -> None:
    with connected(address) as connection:
        connection.sendall(request_)
        headers, body = read_response(connection)
    assert (headers["x-direct"], body) == ("False", b"x")


def test_a_request_after_malformed_bytes_is_not_served(address: Address) -> None:
    chunked = b"POST /graphql HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n"
    with connected(address) as connection:
        connection.sendall(chunked + b"not a size\r\n" + post(b"next"))
        response = read_until_closed(connection)
    assert response.startswith(b"HTTP/1.1 400 ")
    assert response.count(b"HTTP/1.1") == 1


def test_an_error_of_the_server_itself_closes_the_connection(
    address: Address, caplog: pytest.LogCaptureFixture
) -> None:
    with connected(address) as connection:
        connection.sendall(post(b"", b"fail"))
        response = read_until_closed(connection)
    assert response.startswith(b"HTTP/1.1 500 ")
    for name, value in SECURITY_HEADERS:
        assert b"%s: %s\r\n" % (name, value) in response
    assert [each.message for each in caplog.records] == ["a direct request failed"]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], b"127.0.0.1"),
        ([b""], b"127.0.0.1"),
        ([b"198.51.100.7"], b"198.51.100.7"),
        ([b"203.0.113.1, 198.51.100.7:80, 127.0.0.1"], b"198.51.100.7"),
        ([b"203.0.113.1", b"[2001:db8::1]:99"], b"2001:db8::1"),
    ],
)
def test_a_trusted_proxy_names_the_client_of_every_request(
    address: Address, values: list[bytes], expected: bytes
) -> None:
    fields = b"".join(b"X-Forwarded-For: %s\r\n" % value for value in values)
    with connected(address) as connection:
        connection.sendall(post(b"", b"host", fields) + post(b"", b"host", fields, path=b"/other"))
        assert [read_response(connection)[1] for _ in range(2)] == [expected] * 2
