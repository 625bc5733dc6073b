"""A stop loses nothing: operations in progress finish, sockets are closed in order, no lock stays.

The limits on clients that read nothing are in test_slow_readers (HTTP) and in
graphql/transport/websocket/test_unresponsive_sockets (messages on a socket).
"""

import asyncio
import json
import signal
import socket
from contextlib import ExitStack
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import httpx
import pytest
from redis import Redis
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send
from websockets.exceptions import ConnectionClosed

from slotlock.api.server.graceful_shutdown import stop_accepting
from tests.support.apps.deployment import (
    PausePoint,
    app_variant,
    assert_slot_consistent,
    lock_key,
    slot_document,
)
from tests.support.apps.fork_server import forked_app
from tests.support.apps.processes import SERVE_COMMAND, AppProcess, Pair, app_process
from tests.support.clients.client import (
    BOOK_SLOT,
    WATCH_AVAILABILITY,
    GraphQLTestClient,
    http_client,
    open_websocket,
)
from tests.support.polling import wait_until
from tests.support.stores.users import UserTokens
from tests.support.transport.raw_connection import (
    initialize_websocket,
    open_tcp_connection,
    read_until,
    read_until_closed,
    websocket_frame,
)
from tests.support.transport.uvicorn_server import connected, running_server

TWO_WORKERS = (*SERVE_COMMAND, "--workers", "2")
BODY = json.dumps({"query": "{ __typename }"}).encode()
# The server responds "100 Continue" once it waits for the body.
HEADER = (
    b"POST /graphql HTTP/1.1\r\nHost: slotlock\r\nContent-Type: application/json\r\n"
    b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(BODY)
)
SMALL_REQUEST = b"GET / HTTP/1.1\r\nHost: slotlock\r\n\r\n"
DIRECT_REQUEST = HEADER.replace(b"Expect: 100-continue\r\n", b"") + BODY
PING_OPCODE = 9


async def create_slot(app: AppProcess, token: str) -> str:
    """Create a slot with one place; return its id."""
    async with http_client() as http:
        slot = await GraphQLTestClient(http, app.url, token).create_slot(capacity=1)
    return str(slot["id"])


def stop_in_background(app: AppProcess) -> "asyncio.Task[int]":
    """Start to stop an app; the task returns its exit code."""
    return asyncio.create_task(asyncio.to_thread(app.stop))


async def test_a_stop_closes_sockets_with_1001_and_exits_with_0(
    two_apps: Pair, user_tokens: UserTokens, log_dir: Path
) -> None:
    slot_id = await create_slot(two_apps[0], user_tokens.organizer)
    with app_process(two_apps[0].environment, log_dir) as app:
        async with open_websocket(app) as watcher:
            await watcher.subscribe("1", WATCH_AVAILABILITY, slots=[slot_id])
            await watcher.next_result()
            stopping = stop_in_background(app)
            with pytest.raises(ConnectionClosed) as closed:
                await watcher.receive()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1001
        assert await stopping == 0
        assert "Traceback" not in app.log


@pytest.mark.parametrize("transport", ["http", "websocket"])
async def test_a_booking_in_progress_finishes_during_a_stop(
    two_apps: Pair, user_tokens: UserTokens, redis: Redis, log_dir: Path, transport: str
) -> None:
    pause_point = PausePoint(redis)
    slot_id = await create_slot(two_apps[0], user_tokens.organizer)
    environment, token = two_apps[0].environment, user_tokens.members[0]
    with app_variant(environment, log_dir, pause_at="commit", pause_point=pause_point) as app:
        async with http_client() as http, open_websocket(app, token) as opened:
            if transport == "http":
                client = GraphQLTestClient(http, app.url, token)
                booking = asyncio.create_task(client.book(slot_id))
            else:
                await opened.subscribe("1", BOOK_SLOT, slot=slot_id)
                booking = asyncio.create_task(opened.next_result())
            await asyncio.to_thread(pause_point.wait_until_reached)
            stopping = stop_in_background(app)
            if transport == "http":  # the booking resumes only after the stop has started
                with pytest.raises(ConnectionClosed):
                    await opened.receive()
            pause_point.resume()
            assert (await booking)["__typename"] == "Booked"
        assert await stopping == 0
    assert_slot_consistent(slot_document(environment["SLOTLOCK_MONGO_URL"], slot_id), 1)
    assert not redis.exists(lock_key(slot_id))


async def test_a_stop_accepts_no_new_connections_while_it_finishes_operations(
    two_apps: Pair, user_tokens: UserTokens, redis: Redis, log_dir: Path
) -> None:
    pause_point = PausePoint(redis)
    slot_id = await create_slot(two_apps[0], user_tokens.organizer)
    environment = two_apps[0].environment
    with (
        app_variant(environment, log_dir, pause_at="commit", pause_point=pause_point) as app,
        open_tcp_connection(app) as waiting,
        open_tcp_connection(app) as idle,
    ):
        async with open_websocket(app, user_tokens.members[0]) as opened:
            send_header(waiting)
            idle.sendall(SMALL_REQUEST)
            read_until(idle, b"}")
            await opened.subscribe("1", BOOK_SLOT, slot=slot_id)
            await asyncio.to_thread(pause_point.wait_until_reached)
            stopping = stop_in_background(app)
            await asyncio.to_thread(wait_until, lambda: refuses_connections(app), "it refuses")
            assert read_until_closed(idle) == b""
            assert_answered_and_closed(waiting)
            pause_point.resume()
            assert (await opened.next_result())["__typename"] == "Booked"
        assert await stopping == 0


async def test_a_request_on_an_idle_connection_is_answered_at_a_stop_and_ends_it(
    two_apps: Pair, log_dir: Path
) -> None:
    environment = two_apps[0].environment
    with (
        app_variant(environment, log_dir, without_guards="long-idle-stop") as app,
        open_tcp_connection(app) as direct,
        open_tcp_connection(app) as parsed,
    ):
        app.process.send_signal(signal.SIGTERM)
        await asyncio.to_thread(wait_until, lambda: refuses_connections(app), "it refuses")
        direct.sendall(DIRECT_REQUEST)
        parsed.sendall(SMALL_REQUEST)
        response = read_until_closed(direct)
        assert b"__typename" in response
        assert b"connection: close" in response
        assert read_until_closed(parsed).startswith(b"HTTP/1.1 ")
        assert await asyncio.to_thread(app.process.wait, 30) == 0


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize("has_guard", [True, False])
def test_connections_that_nobody_has_accepted_are_served_at_a_stop(
    loop: Literal["asyncio", "uvloop"], has_guard: bool
) -> None:
    waiting: list[socket.socket] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/stop":  # the server accepts nothing while this runs
            for _ in range(3):
                waiting.append(stack.enter_context(connected(address)))
                waiting[-1].sendall(SMALL_REQUEST)
            if has_guard:
                stop_accepting(server)
            else:
                server.servers[0].close()
        await PlainTextResponse("served")(scope, receive, send)

    with ExitStack() as stack:
        server, address = stack.enter_context(running_server(app, 10, loop=loop))
        stopping = stack.enter_context(connected(address))
        stopping.sendall(SMALL_REQUEST.replace(b"/", b"/stop", 1))
        read_until(stopping, b"served")
        for connection in waiting:
            if has_guard:
                assert b"served" in read_until_closed(connection)
            else:
                with pytest.raises(ConnectionResetError):
                    connection.recv(1)


async def test_workers_stop_together_and_accept_nothing_new(two_apps: Pair, log_dir: Path) -> None:
    with (
        app_process(two_apps[0].environment, log_dir, TWO_WORKERS) as app,
        open_tcp_connection(app) as waiting,
    ):
        send_header(waiting)
        stopping = stop_in_background(app)
        await asyncio.to_thread(wait_until, lambda: refuses_connections(app), "it refuses")
        assert_answered_and_closed(waiting)
        assert await stopping == 0
        wait_until(lambda: not _responds(app), "no worker responds")


async def test_a_socket_that_reads_nothing_delays_no_stop(two_apps: Pair, log_dir: Path) -> None:
    # Without a limit of its own, the stop would take minutes.
    settings = {**two_apps[0].environment, "SLOTLOCK_GRACEFUL_STOP_S": "600"}
    with (
        app_variant(settings, log_dir, without_guards="slow-close") as app,
        open_tcp_connection(app, receive_buffer=4096) as peer,
    ):
        await asyncio.to_thread(fill_send_buffer, peer)
        assert await asyncio.to_thread(app.stop) == 0


async def test_a_stop_completes_event_streams(
    two_apps: Pair, user_tokens: UserTokens, log_dir: Path
) -> None:
    slot_id = await create_slot(two_apps[0], user_tokens.organizer)
    body = {"query": WATCH_AVAILABILITY, "variables": {"slots": [slot_id]}}
    headers = {"Accept": "text/event-stream"}
    with forked_app(two_apps[0].environment, log_dir) as app:
        async with (
            http_client() as http,
            http.stream("POST", app.url + "/graphql", json=body, headers=headers) as response,
        ):
            lines = response.aiter_lines()
            assert await anext(lines) == "event: next"
            stopping = stop_in_background(app)
            assert "event: complete" in [line async for line in lines]
        assert await stopping == 0


async def test_workers_stop_when_their_parent_is_killed(two_apps: Pair, log_dir: Path) -> None:
    with app_process(two_apps[0].environment, log_dir, TWO_WORKERS) as app:
        assert "with 2 server processes" in app.log
        app.kill()
        wait_until(lambda: not _responds(app), "no worker responds")


def send_header(connection: socket.socket) -> None:
    """Send the header of a request, and wait until the server waits for the body."""
    connection.sendall(HEADER)
    read_until(connection, b"100 Continue\r\n\r\n")


def assert_answered_and_closed(connection: socket.socket) -> None:
    """Send the body; the response is complete and announces the end of the connection."""
    connection.sendall(BODY)
    head, _, body = read_until_closed(connection).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    assert b"connection: close" in head.lower()
    assert json.loads(body) == {"data": {"__typename": "Query"}}


def refuses_connections(app: AppProcess) -> bool:
    """Return whether the app refuses new connections."""
    address = urlsplit(app.url)
    assert address.hostname is not None
    assert address.port is not None
    try:
        socket.create_connection((address.hostname, address.port), 20).close()
    except (ConnectionRefusedError, ConnectionResetError):  # reset: while it closes the listener
        return True
    return False


def fill_send_buffer(peer: socket.socket) -> None:
    """Ping the server without reading its pongs until it can send no more."""
    pings = websocket_frame(b"x" * 125, PING_OPCODE) * 100
    initialize_websocket(peer)
    peer.settimeout(1)
    unsent = b""
    try:
        while True:
            unsent = unsent or pings
            unsent = unsent[peer.send(unsent) :]
    except TimeoutError:
        peer.settimeout(20)


def _responds(app: AppProcess) -> bool:
    try:
        return httpx.get(app.url + "/healthz", trust_env=False, timeout=30).is_success
    except httpx.TransportError:
        return False
