"""Sockets that do not read, or that send many documents at once, do not affect other clients."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from graphql import DocumentNode, parse
from pydantic import SecretStr
from starlette.types import Message

from slotlock.api.app_state import AppState, open_app_state
from slotlock.api.settings.settings import Settings
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.graphql.execution import documents
from slotlock.graphql.transport import websocket
from slotlock.graphql.transport.websocket import PROTOCOL
from tests.support.apps.processes import SECRET, database_url
from tests.support.clients.client import Json

SCOPE = {"type": "websocket", "headers": [], "subprotocols": [PROTOCOL]}
INIT = {"type": "connection_init"}
OPERATION_COUNT = 10


@pytest.fixture
async def state(servers: EmbeddedServers) -> AsyncIterator[AppState]:
    settings = Settings(
        mongo_url=database_url(servers, "unresponsive"),
        redis_url=servers.redis_url,
        secret_key=(SecretStr(SECRET),),
    )
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
    peer = Peer(INIT, subscribe_message(1), unresponsive=True)
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

    monkeypatch.setattr(documents, "parse", recording_parse)
    peer = Peer(INIT, *map(subscribe_message, range(OPERATION_COUNT)))
    counting = asyncio.create_task(count_iterations())
    serving = serve(state, peer)
    async with asyncio.timeout(20):
        for _ in range(OPERATION_COUNT):
            await peer.results.get()
    peer.disconnect()
    await serving
    counting.cancel()
    assert len(set(parsed_in_iterations)) == OPERATION_COUNT
