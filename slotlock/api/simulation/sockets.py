"""One person's WebSocket: several subscriptions on it, opened again when it breaks.

The protocol is graphql-transport-ws: https://github.com/enisdenjo/graphql-ws/blob/master/PROTOCOL.md
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import aiohttp
import orjson

from slotlock.api.simulation.http import failure, reason_of
from slotlock.api.simulation.plan import SimulationError, UnreachedError

PROTOCOL = "graphql-transport-ws"
MOST_OPERATIONS = 10
ACKNOWLEDGED_WITHIN_S = 30.0
BROKEN = "broken sockets"

Message = dict[str, Any]


@dataclass(slots=True)
class _Connection:
    """A socket while it lasts, and who waits for which of its messages; None says it broke."""

    socket: aiohttp.ClientWebSocketResponse
    streams: dict[str, asyncio.Queue[Message | None]] = field(default_factory=dict)
    reading: asyncio.Task[None] | None = None

    @property
    def broken(self) -> bool:
        """Whether nothing is read from it any more."""
        return self.socket.closed or self.reading is None or self.reading.done()

    async def read(self) -> None:
        """Hand out the messages until the socket closes."""
        try:
            async for raw in self.socket:
                message = orjson.loads(raw.data)
                if message["type"] == "ping":
                    await self.socket.send_str('{"type": "pong"}')
                elif (stream := self.streams.get(message.get("id", ""))) is not None:
                    stream.put_nowait(message)
        except (aiohttp.ClientError, OSError, ValueError):
            pass
        finally:
            for stream in self.streams.values():
                stream.put_nowait(None)


class Socket:
    """A socket that is there when it is needed."""

    def __init__(self, http: aiohttp.ClientSession, url: str, token: str) -> None:
        self._http = http
        self._address = url.replace("http", "ws", 1) + "/graphql"
        self._token = token
        self._connection: _Connection | None = None
        self._opening = asyncio.Lock()
        self._room = asyncio.Semaphore(MOST_OPERATIONS)
        self._ids = count(1)

    async def follow(self, query: str, hear: Callable[[Any], None], **variables: Any) -> None:
        """Hear each answer of a subscription until it is complete.

        Errors: UnreachedError when the socket breaks; it is a new one the next time.
        """
        async with self._room:
            connection = await self.open()
            operation, stream = str(next(self._ids)), asyncio.Queue[Message | None]()
            connection.streams[operation] = stream
            payload = {"query": query, "variables": variables}
            try:
                await self._send(connection, id=operation, type="subscribe", payload=payload)
                await _hear_all(stream, hear)
            finally:
                del connection.streams[operation]

    async def open(self) -> _Connection:
        """The connection, opened if there is none. Errors: UnreachedError."""
        async with self._opening:
            if self._connection is None or self._connection.broken:
                self._connection = await self._opened()
            return self._connection

    async def close(self) -> None:
        """Close the socket and end its reader."""
        if self._connection is not None:
            await self._connection.socket.close()
            if self._connection.reading is not None:
                await self._connection.reading

    async def _opened(self) -> _Connection:
        try:
            socket = await self._http.ws_connect(
                self._address, protocols=[PROTOCOL], max_msg_size=0, compress=0
            )
            connection = _Connection(socket)
            payload = {"authorization": f"Bearer {self._token}"}
            await self._send(connection, type="connection_init", payload=payload)
            said = await socket.receive(ACKNOWLEDGED_WITHIN_S)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise UnreachedError(BROKEN, reason_of(error)) from None
        if said.type is not aiohttp.WSMsgType.TEXT:
            if said.data == 4403:  # what the protocol closes with when it refuses the token
                raise SimulationError(f"the server refuses a socket: {said.extra}")
            raise UnreachedError(BROKEN, f"the socket was closed: {said.data} {said.extra}")
        connection.reading = asyncio.create_task(connection.read())
        return connection

    async def _send(self, connection: _Connection, **message: Any) -> None:
        try:
            await connection.socket.send_str(orjson.dumps(message).decode())
        except (aiohttp.ClientError, OSError) as error:
            raise UnreachedError(BROKEN, str(error)) from None


async def _hear_all(stream: asyncio.Queue[Message | None], hear: Callable[[Any], None]) -> None:
    while True:
        message = await stream.get()
        if message is None:
            raise UnreachedError(BROKEN, "the socket broke")
        match message["type"]:
            case "next":
                if errors := message["payload"].get("errors"):
                    raise failure(errors)
                (answer,) = message["payload"]["data"].values()
                hear(answer)
            case "error":
                raise failure(message["payload"])
            case "complete":
                return


@contextlib.asynccontextmanager
async def sockets_of(url: str) -> AsyncIterator[Callable[[str], Socket]]:
    """Makes sockets, each for a token; they are closed with it."""
    made: list[Socket] = []
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as http:

        def socket_of(token: str) -> Socket:
            made.append(Socket(http, url, token))
            return made[-1]

        try:
            yield socket_of
        finally:
            await asyncio.gather(*(socket.close() for socket in made))
