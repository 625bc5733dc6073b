"""A socket that reads nothing delays no stop; one that sends much at once leaves others turns."""

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
OPERATIONS = 10


@pytest.fixture
async def state(servers: EmbeddedServers) -> AsyncIterator[AppState]:
    settings = Settings(
        mongo_url=database_url(servers, "deaf"),
        redis_url=servers.redis_url,
        secret_key=(SecretStr(SECRET),),
    )
    async with open_app_state(settings, development=False) as opened:
        yield opened


def asks(number: int) -> Json:
    """A message that begins an operation by a document of its own."""
    payload = {"query": f"{{ a{number}: __typename }}"}
    return {"id": str(number), "type": "subscribe", "payload": payload}


class Peer:
    """The other end of a socket, which sends all at once; a deaf one reads from no answer on."""

    def __init__(self, *messages: Json, deaf: bool = False) -> None:
        self.coming: asyncio.Queue[Message] = asyncio.Queue()
        self.coming.put_nowait({"type": "websocket.connect"})
        for message in messages:
            text = json.dumps(message)
            self.coming.put_nowait({"type": "websocket.receive", "text": text})
        self.deaf = deaf
        self.answers: asyncio.Queue[Json] = asyncio.Queue()

    async def send(self, message: Message) -> None:
        """What the server tells it."""
        told = json.loads(message.get("text", "{}"))
        if told.get("type") == "next":
            self.answers.put_nowait(told)
        if self.deaf and (told.get("type") == "next" or not self.answers.empty()):
            await asyncio.Event().wait()

    def leave(self) -> None:
        """It is gone."""
        self.coming.put_nowait({"type": "websocket.disconnect", "code": 1006})


async def test_a_stop_does_not_wait_until_a_deaf_socket_reads(
    state: AppState, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(websocket, "SHUTDOWN_SEND_TIMEOUT_S", 0.1)
    peer = Peer(INIT, asks(1), deaf=True)
    serving = asyncio.create_task(state.graphql_websocket(SCOPE, peer.coming.get, peer.send))
    async with asyncio.timeout(20):
        while peer.answers.empty():
            await asyncio.sleep(0.01)
        await state.graphql_server.shutdown.run()
    peer.leave()
    await serving


async def test_others_have_a_turn_between_new_documents_that_come_in_one_piece(
    state: AppState, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns, read_at = 0, []

    def read(text: str, **how: Any) -> DocumentNode:
        read_at.append(turns)
        return parse(text, **how)

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    monkeypatch.setattr(documents, "parse", read)
    peer = Peer(INIT, *map(asks, range(OPERATIONS)))
    taking_turns = asyncio.create_task(others())
    serving = asyncio.create_task(state.graphql_websocket(SCOPE, peer.coming.get, peer.send))
    async with asyncio.timeout(20):
        for _ in range(OPERATIONS):
            await peer.answers.get()
    peer.leave()
    await serving
    taking_turns.cancel()
    assert len(set(read_at)) == OPERATIONS
