"""Stopping loses nothing: what is under way finishes, sockets are told, no lock stays."""

import asyncio
import json
import socket as sockets
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from redis import Redis
from websockets.exceptions import ConnectionClosed

from slotlock.devserver.embedded import EmbeddedServers
from tests.support.apps.deployment import (
    PausePoint,
    app_variant,
    assert_slot_consistent,
    lock_key,
    slot_document,
)
from tests.support.apps.processes import SERVE_COMMAND, AppProcess, app_process
from tests.support.clients.client import (
    BOOK_SLOT,
    WATCH_AVAILABILITY,
    GraphQLTestClient,
    http_client,
    open_websocket,
)
from tests.support.clients.raw_connection import (
    initialize_websocket,
    open_tcp_connection,
    read_until,
    read_until_closed,
    websocket_frame,
)
from tests.support.polling import wait_until
from tests.support.stores.users import UserTokens

Pair = tuple[AppProcess, AppProcess]

WORKERS = (*SERVE_COMMAND, "--workers", "2")
ASKED = json.dumps({"query": "{ __typename }"}).encode()
# The server says when it waits for the body.
BEGUN = (
    b"POST /graphql HTTP/1.1\r\nHost: slotlock\r\nContent-Type: application/json\r\n"
    b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(ASKED)
)
IDLE = b"GET / HTTP/1.1\r\nHost: slotlock\r\n\r\n"
PING = 9


@pytest.fixture
def redis(servers: EmbeddedServers) -> Iterator[Redis]:
    """The Redis of the apps, looked at from outside."""
    with Redis.from_url(servers.redis_url) as client:
        yield client


async def test_a_stop_closes_sockets_with_1001_and_ends_with_success(
    two_apps: Pair, user_tokens: UserTokens, log_dir: Path
) -> None:
    with app_process(two_apps[0].environment, log_dir) as app:
        async with http_client() as http, open_websocket(app) as watcher:
            slot = await GraphQLTestClient(http, app.url, user_tokens.organizer).create_slot()
            await watcher.subscribe("1", WATCH_AVAILABILITY, slots=[slot["id"]])
            await watcher.next_result()
            stopping = asyncio.create_task(asyncio.to_thread(app.stop))
            with pytest.raises(ConnectionClosed) as closed:
                await watcher.receive()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1001
        assert await stopping == 0
        assert "Traceback" not in app.log


@pytest.mark.parametrize("transport", ["http", "websocket"])
async def test_a_booking_under_way_finishes_when_the_app_is_stopped(
    two_apps: Pair, user_tokens: UserTokens, redis: Redis, log_dir: Path, transport: str
) -> None:
    stage = PausePoint(redis)
    async with http_client() as http:
        organiser = GraphQLTestClient(http, two_apps[0].url, user_tokens.organizer)
        slot_id = (await organiser.create_slot(capacity=1))["id"]
    with app_variant(two_apps[0].environment, log_dir, pause_at="commit", pause_point=stage) as app:
        async with http_client() as http, open_websocket(app, user_tokens.members[0]) as opened:
            if transport == "http":
                person = GraphQLTestClient(http, app.url, user_tokens.members[0])
                booking = asyncio.create_task(person.book(slot_id))
            else:
                await opened.subscribe("1", BOOK_SLOT, slot=slot_id)
                booking = asyncio.create_task(opened.next_result())
            await asyncio.to_thread(stage.wait_until_reached)
            stopping = asyncio.create_task(asyncio.to_thread(app.stop))
            if transport == "http":  # only once the app is stopping may the act go on
                with pytest.raises(ConnectionClosed):
                    await opened.receive()
            stage.resume()
            assert (await booking)["__typename"] == "Booked"
        assert await stopping == 0
    assert_slot_consistent(slot_document(two_apps[0].environment["SLOTLOCK_MONGO_URL"], slot_id), 1)
    assert not redis.exists(lock_key(slot_id))


async def test_while_a_stop_finishes_what_is_under_way_nobody_new_is_let_in(
    two_apps: Pair, user_tokens: UserTokens, redis: Redis, log_dir: Path
) -> None:
    stage = PausePoint(redis)
    async with http_client() as http:
        organiser = GraphQLTestClient(http, two_apps[0].url, user_tokens.organizer)
        slot_id = (await organiser.create_slot(capacity=1))["id"]
    with (
        app_variant(two_apps[0].environment, log_dir, pause_at="commit", pause_point=stage) as app,
        open_tcp_connection(app) as begun,
        open_tcp_connection(app) as idle,
    ):
        async with open_websocket(app, user_tokens.members[0]) as opened:
            begin(begun)
            idle.sendall(IDLE)
            read_until(idle, b"}")
            await opened.subscribe("1", BOOK_SLOT, slot=slot_id)
            await asyncio.to_thread(stage.wait_until_reached)
            stopping = asyncio.create_task(asyncio.to_thread(app.stop))
            await asyncio.to_thread(wait_until, lambda: refuses(app), "nobody is let in any more")
            assert read_until_closed(idle) == b""
            assert_answered_and_closed(begun)
            stage.resume()
            assert (await opened.next_result())["__typename"] == "Booked"
        assert await stopping == 0


async def test_workers_that_stop_let_nobody_in_either(two_apps: Pair, log_dir: Path) -> None:
    with (
        app_process(two_apps[0].environment, log_dir, WORKERS) as app,
        open_tcp_connection(app) as begun,
    ):
        begin(begun)
        stopping = asyncio.create_task(asyncio.to_thread(app.stop))
        await asyncio.to_thread(wait_until, lambda: refuses(app), "nobody is let in any more")
        assert_answered_and_closed(begun)
        assert await stopping == 0


async def test_a_socket_that_reads_nothing_holds_up_no_stop(two_apps: Pair, log_dir: Path) -> None:
    # Without a bound of its own a stop would last for minutes.
    settings = {**two_apps[0].environment, "SLOTLOCK_GRACEFUL_STOP_S": "600"}
    with (
        app_variant(settings, log_dir, without_guards="slow-close") as app,
        open_tcp_connection(app, receive_buffer=4096) as deaf,
    ):
        await asyncio.to_thread(leave_all_unread, deaf)
        assert await asyncio.to_thread(app.stop) == 0


async def test_an_event_stream_ends_with_the_app(
    two_apps: Pair, user_tokens: UserTokens, log_dir: Path
) -> None:
    with app_process(two_apps[0].environment, log_dir) as app:
        async with http_client() as http:
            slot = await GraphQLTestClient(http, app.url, user_tokens.organizer).create_slot()
            body = {"query": WATCH_AVAILABILITY, "variables": {"slots": [slot["id"]]}}
            headers = {"Accept": "text/event-stream"}
            async with http.stream("POST", app.url + "/graphql", json=body, headers=headers) as got:
                lines = got.aiter_lines()
                assert await anext(lines) == "event: next"
                stopping = asyncio.create_task(asyncio.to_thread(app.stop))
                rest = [line async for line in lines]
                assert "event: complete" in rest
            assert await stopping == 0


async def test_workers_stop_together(two_apps: Pair, log_dir: Path) -> None:
    with app_process(two_apps[0].environment, log_dir, WORKERS) as app:
        assert await asyncio.to_thread(app.stop) == 0
        wait_until(lambda: not _answers(app), "no worker answers any more")


async def test_workers_end_when_the_process_that_started_them_is_killed(
    two_apps: Pair, log_dir: Path
) -> None:
    with app_process(two_apps[0].environment, log_dir, WORKERS) as app:
        assert "with 2 workers" in app.log
        app.kill()
        wait_until(lambda: not _answers(app), "no worker answers any more")


def begin(connection: sockets.socket) -> None:
    """Begin a request that waits for its body."""
    connection.sendall(BEGUN)
    read_until(connection, b"100 Continue\r\n\r\n")


def assert_answered_and_closed(connection: sockets.socket) -> None:
    """Send the body; the answer comes whole and says that it is the last one."""
    connection.sendall(ASKED)
    head, _, body = read_until_closed(connection).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    assert b"connection: close" in head.lower()
    assert json.loads(body) == {"data": {"__typename": "Query"}}


def refuses(app: AppProcess) -> bool:
    """Whether it takes no new connection."""
    address = urlsplit(app.url)
    assert address.hostname is not None
    assert address.port is not None
    try:
        sockets.create_connection((address.hostname, address.port), 1).close()
    except ConnectionRefusedError:
        return True
    return False


def leave_all_unread(peer: sockets.socket) -> None:
    """Have so much told on a socket that the server can send no more, and read none of it."""
    pings = websocket_frame(b"x" * 125, PING) * 100
    initialize_websocket(peer)
    peer.settimeout(1)
    rest = b""
    try:
        while True:
            rest = rest or pings
            rest = rest[peer.send(rest) :]
    except TimeoutError:
        peer.settimeout(20)


def _answers(app: AppProcess) -> bool:
    try:
        return httpx.get(app.url + "/healthz", trust_env=False).is_success
    except httpx.TransportError:
        return False
