"""Sockets that each watch a slot, opened in a process of their own and left at rest."""

import asyncio
import json
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import cast

import uvloop

OPENING_AT_ONCE = 50
OPEN_TIMEOUT_S = 120.0
TEXT, PING, PONG = 0x81, 0x89, 0x8A
SUBSCRIPTION = "subscription($id: ID!) { slotAvailability(slotIds: [$id]) { slotId remaining } }"


@dataclass(frozen=True, slots=True)
class Watch:
    """The slot of each socket; the first ones sign in with a token each."""

    port: int
    slot_ids: tuple[str, ...]
    tokens: tuple[str, ...] = ()


class Watcher(asyncio.Protocol):
    """One WebSocket with a subscription; the first state opens it.

    Thousands of them fit into a small process, since nothing is parsed.
    """

    def __init__(self, slot_id: str, token: str) -> None:
        self._slot_id, self._token = slot_id, token
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask for a WebSocket."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.write(
            b"GET /graphql HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\n"
            b"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
            b"Sec-WebSocket-Protocol: graphql-transport-ws\r\n\r\n"
        )

    def data_received(self, data: bytes) -> None:
        """Subscribe, answer pings, and note the first state. No message of this server is split."""
        if data.startswith(b"HTTP/1.1 101"):
            authorization = {"Authorization": f"Bearer {self._token}"} if self._token else {}
            query = {"query": SUBSCRIPTION, "variables": {"id": self._slot_id}}
            self._send({"type": "connection_init", "payload": authorization})
            self._send({"id": "1", "type": "subscribe", "payload": query})
        elif data[0] == PING:
            self._transport.write(_frame(PONG, data[2 : 2 + data[1]]))
        if b'"remaining":' in data and not self.opened.done():
            self.opened.set_result(None)

    def _send(self, message: dict[str, object]) -> None:
        self._transport.write(_frame(TEXT, json.dumps(message).encode()))

    def connection_lost(self, _: Exception | None) -> None:
        """Fail, if the subscription was never open."""
        if not self.opened.done():
            self.opened.set_exception(ConnectionError("the server closed a watcher"))


def _frame(kind: int, payload: bytes) -> bytes:
    """Return a frame of a client; its mask of zeros leaves the payload as it is."""
    size = len(payload)
    head = bytes((kind, 0x80 | size)) if size < 126 else bytes((kind, 0xFE)) + size.to_bytes(2)
    return head + bytes(4) + payload


def watch_slots(pipe: Connection, watch: Watch) -> None:
    """Open the sockets, say so, and leave them open until the process ends."""
    uvloop.run(_watch_slots(pipe, watch))


async def _watch_slots(pipe: Connection, watch: Watch) -> None:
    loop, opening = asyncio.get_running_loop(), asyncio.Semaphore(OPENING_AT_ONCE)

    async def open_watcher(number: int, slot_id: str) -> None:
        token = watch.tokens[number] if number < len(watch.tokens) else ""
        async with opening:
            watcher = Watcher(slot_id, token)
            await loop.create_connection(lambda: watcher, "127.0.0.1", watch.port)
            await watcher.opened

    async with asyncio.timeout(OPEN_TIMEOUT_S):
        await asyncio.gather(*(open_watcher(*each) for each in enumerate(watch.slot_ids)))
    pipe.send(None)
    await asyncio.Event().wait()
