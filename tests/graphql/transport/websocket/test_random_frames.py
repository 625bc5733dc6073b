"""Malformed frames and peers that do not respond end their own socket and nothing else."""

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from graphql import DocumentNode, parse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.types import Message

from slotlock.api.app_state import AppState, open_app_state
from slotlock.api.server.websockets import MAX_FRAMES
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.graphql.execution import document_cache
from slotlock.graphql.transport import websocket
from slotlock.graphql.transport.websocket import PROTOCOL
from tests.support.apps.processes import AppProcess, app_settings
from tests.support.clients.client import Json
from tests.support.polling import wait_until
from tests.support.transport.random_requests import QUERIES, json_values, request_bodies
from tests.support.transport.raw_connection import (
    WEBSOCKET_HANDSHAKE,
    initialize_websocket,
    message_frame,
    open_tcp_connection,
    read_until,
    read_until_closed,
    websocket_frame,
)

INIT = message_frame({"type": "connection_init"})
BINARY, CLOSE, PING = 2, 8, 9
# In bytes: far more than the buffers between the server and the test hold.
MORE_THAN_ALL_BUFFERS = 64 * 1024 * 1024

ids = st.sampled_from(["1", "1", "2", "", "\N{SLOT MACHINE}" * 50]) | json_values
messages = st.one_of(
    st.builds(
        lambda id_, payload: {"id": id_, "type": "subscribe", "payload": payload},
        ids,
        request_bodies,
    ),
    st.builds(
        lambda id_, query: {"id": id_, "type": "subscribe", "payload": {"query": query}},
        st.sampled_from("123"),
        st.sampled_from(QUERIES),
    ),
    st.builds(lambda id_: {"id": id_, "type": "complete"}, ids),
    st.builds(
        lambda kind, payload: {"type": kind, "payload": payload},
        st.sampled_from(["connection_init", "ping", "pong", "next", "start", "connection_ack"]),
        json_values,
    ),
    json_values,
)
frames = st.one_of(
    messages.map(lambda content: websocket_frame(json.dumps(content).encode())),
    messages.map(lambda content: websocket_frame(json.dumps(content).encode())),
    st.binary(max_size=40).map(websocket_frame),
    st.binary(max_size=40).map(lambda raw: websocket_frame(raw, BINARY)),
    st.builds(websocket_frame, st.binary(max_size=130), st.integers(0, 15)),
    st.sampled_from(
        [
            websocket_frame(b"[" * 40_000),
            websocket_frame(b"x" * 70_000),
            websocket_frame(b"", CLOSE),
            websocket_frame(b"", PING),
        ]
    ),
    st.binary(min_size=1, max_size=30),
)
SCOPE = {"type": "websocket", "headers": [], "subprotocols": [PROTOCOL]}
INIT_MESSAGE = {"type": "connection_init"}
OPERATION_COUNT = 10


@pytest.fixture
def app_without_leftovers(error_free_app: AppProcess) -> Iterator[AppProcess]:
    """Yield the app, in which no subscription may stay open after the test."""
    yield error_free_app
    wait_until(
        lambda: error_free_app.metric("slotlock_subscriptions_active") == 0,
        "no subscription is open",
    )


@settings(
    max_examples=3 * settings().max_examples,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(initialize=st.booleans(), sent=st.lists(frames, max_size=12), at_once=st.booleans())
@pytest.mark.timeout(600)
def test_any_frames_end_in_a_closed_socket(
    app_without_leftovers: AppProcess, initialize: bool, sent: list[bytes], at_once: bool
) -> None:
    all_frames = [INIT, *sent] if initialize else sent
    with open_tcp_connection(app_without_leftovers) as peer:
        peer.sendall(WEBSOCKET_HANDSHAKE)
        read_until(peer, b"\r\n\r\n")
        with contextlib.suppress(OSError):  # the server may close the socket meanwhile
            for data in [b"".join(all_frames)] if at_once else all_frames:
                peer.sendall(data)
            peer.sendall(websocket_frame(b"", CLOSE))
            peer.shutdown(socket.SHUT_WR)
        read_until_closed(peer)


@pytest.mark.parametrize(
    "handshake",
    [
        WEBSOCKET_HANDSHAKE.replace(b"GET", b"POST"),
        WEBSOCKET_HANDSHAKE.replace(b"Host", b"X: " + b"x" * 20_000 + b"\r\nHost"),
        WEBSOCKET_HANDSHAKE.replace(b": 13", b": 8"),
        WEBSOCKET_HANDSHAKE.replace(b"==", b""),
    ],
)
def test_a_malformed_handshake_gets_a_4xx(error_free_app: AppProcess, handshake: bytes) -> None:
    with open_tcp_connection(error_free_app) as peer:
        peer.sendall(handshake)
        assert read_until_closed(peer).startswith(b"HTTP/1.1 4")


def test_text_that_is_not_utf_8_closes_with_1007(error_free_app: AppProcess) -> None:
    with open_tcp_connection(error_free_app) as peer:
        peer.sendall(WEBSOCKET_HANDSHAKE)
        read_until(peer, b"\r\n\r\n")
        peer.sendall(websocket_frame(b"\xff"))
        assert read_until_closed(peer) == b"\x88\x02" + (1007).to_bytes(2)


def test_a_message_of_too_many_frames_closes_with_1009(error_free_app: AppProcess) -> None:
    first_frame, empty_frame = b"\x01\x80" + bytes(4), b"\x00\x80" + bytes(4)
    with open_tcp_connection(error_free_app) as peer:
        peer.sendall(WEBSOCKET_HANDSHAKE)
        read_until(peer, b"\r\n\r\n")
        peer.sendall(first_frame + empty_frame * MAX_FRAMES)
        assert read_until_closed(peer) == b"\x88\x02" + (1009).to_bytes(2)


def test_the_server_reads_no_pings_of_a_peer_that_does_not_read_the_pongs(
    error_free_app: AppProcess,
) -> None:
    pings = websocket_frame(b"x" * 125, PING) * 500
    with open_tcp_connection(error_free_app, receive_buffer=4096) as peer:
        initialize_websocket(peer)
        sent_bytes = 0
        peer.settimeout(1)
        with pytest.raises(TimeoutError):  # noqa: PT012 - a later send notices the full buffers
            while sent_bytes < MORE_THAN_ALL_BUFFERS:
                sent_bytes += peer.send(pings[sent_bytes % len(pings) :])
        peer.settimeout(20)
        received_bytes = 0
        while received_bytes < sent_bytes // 2:
            received_bytes += len(peer.recv(65_536)) or pytest.fail("the server closed")


@pytest.fixture
async def state(servers: EmbeddedServers) -> AsyncIterator[AppState]:
    settings = app_settings(servers, "unresponsive")
    async with open_app_state(settings, development=False) as opened:
        yield opened


def subscribe_message(number: int) -> Json:
    """Build a message that starts an operation with a new document."""
    payload = {"query": f"{{ a{number}: __typename }}"}
    return {"id": str(number), "type": "subscribe", "payload": payload}


class Peer:
    """A client that sends all messages at once; if it is unresponsive, it reads no results."""

    def __init__(self, *messages: Json, unresponsive: bool = False) -> None:
        self.events: asyncio.Queue[Message] = asyncio.Queue()
        self.events.put_nowait({"type": "websocket.connect"})
        for message in messages:
            text = json.dumps(message)
            self.events.put_nowait({"type": "websocket.receive", "text": text})
        self.unresponsive = unresponsive
        self.results: asyncio.Queue[Json] = asyncio.Queue()

    async def receive_from_server(self, message: Message) -> None:
        """Store a result; an unresponsive peer blocks from the first one on."""
        content = json.loads(message.get("text", "{}"))
        is_result = content.get("type") == "next"
        if is_result:
            self.results.put_nowait(content)
        if self.unresponsive and (is_result or not self.results.empty()):
            await asyncio.Event().wait()

    def disconnect(self) -> None:
        """Let the connection end."""
        self.events.put_nowait({"type": "websocket.disconnect", "code": 1006})


def serve(state: AppState, peer: Peer) -> asyncio.Task[None]:
    """Start to serve a socket."""
    serving = state.graphql_websocket(SCOPE, peer.events.get, peer.receive_from_server)
    return asyncio.create_task(serving)


async def test_a_shutdown_does_not_wait_for_an_unresponsive_peer(
    state: AppState, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(websocket, "SHUTDOWN_SEND_TIMEOUT_S", 0.1)
    peer = Peer(INIT_MESSAGE, subscribe_message(1), unresponsive=True)
    serving = serve(state, peer)
    async with asyncio.timeout(20):
        while peer.results.empty():
            await asyncio.sleep(0.01)
        await state.graphql_server.shutdown.run()
    peer.disconnect()
    await serving


async def test_other_tasks_run_between_new_documents_that_arrive_at_once(
    state: AppState, monkeypatch: pytest.MonkeyPatch
) -> None:
    iteration, parsed_in_iterations = 0, []

    def recording_parse(text: str, **options: Any) -> DocumentNode:
        parsed_in_iterations.append(iteration)
        return parse(text, **options)

    async def count_iterations() -> None:
        nonlocal iteration
        while True:
            iteration += 1
            await asyncio.sleep(0)

    monkeypatch.setattr(document_cache, "parse", recording_parse)
    peer = Peer(INIT_MESSAGE, *map(subscribe_message, range(OPERATION_COUNT)))
    counting = asyncio.create_task(count_iterations())
    serving = serve(state, peer)
    async with asyncio.timeout(20):
        for _ in range(OPERATION_COUNT):
            await peer.results.get()
    peer.disconnect()
    await serving
    counting.cancel()
    assert len(set(parsed_in_iterations)) == OPERATION_COUNT
