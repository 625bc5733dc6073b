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

from slotlock.simulation.client.http import connection_error_reason, to_error
from slotlock.simulation.model.plan import NoResponseError, SimulationError

PROTOCOL = "graphql-transport-ws"
MAX_OPERATIONS = 10
ACK_TIMEOUT_S = 30.0
SOCKET_BROKEN = "broken sockets"

Message = dict[str, Any]


@dataclass(slots=True)
class _Connection:
    """A socket while it lasts, and who waits for which of its messages; None says it broke."""

    socket: aiohttp.ClientWebSocketResponse
    streams: dict[str, asyncio.Queue[Message | None]] = field(default_factory=dict)
    reader_task: asyncio.Task[None] | None = None

    @property
    def is_broken(self) -> bool:
        """Whether nothing is read from it any more."""
        return self.socket.closed or self.reader_task is None or self.reader_task.done()

    async def dispatch_messages(self) -> None:
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


class WebSocketClient:
    """A socket that is there when it is needed."""

    def __init__(self, http: aiohttp.ClientSession, url: str, token: str) -> None:
        self._http = http
        self._endpoint_url = url.replace("http", "ws", 1) + "/graphql"
        self._token = token
        self._connection: _Connection | None = None
        self._open_lock = asyncio.Lock()
        self._operation_limit = asyncio.Semaphore(MAX_OPERATIONS)
        self._operation_ids = count(1)

    async def subscribe(
        self, document: str, on_result: Callable[[Any], None], **variables: Any
    ) -> None:
        """Hear each answer of a subscription until it is complete.

        Errors: UnreachedError when the socket breaks; it is a new one the next time.
        """
        async with self._operation_limit:
            connection = await self.open()
            operation, stream = str(next(self._operation_ids)), asyncio.Queue[Message | None]()
            connection.streams[operation] = stream
            payload = {"query": document, "variables": variables}
            try:
                await self._send(connection, id=operation, type="subscribe", payload=payload)
                await _consume(stream, on_result)
            finally:
                del connection.streams[operation]

    async def open(self) -> _Connection:
        """The connection, opened if there is none. Errors: UnreachedError."""
        async with self._open_lock:
            if self._connection is None or self._connection.is_broken:
                self._connection = await self._connect()
            return self._connection

    async def close(self) -> None:
        """Close the socket and end its reader."""
        if self._connection is not None:
            await self._connection.socket.close()
            if self._connection.reader_task is not None:
                await self._connection.reader_task

    async def _connect(self) -> _Connection:
        try:
            socket = await self._http.ws_connect(
                self._endpoint_url, protocols=[PROTOCOL], max_msg_size=0, compress=0
            )
            connection = _Connection(socket)
            payload = {"authorization": f"Bearer {self._token}"}
            await self._send(connection, type="connection_init", payload=payload)
            said = await socket.receive(ACK_TIMEOUT_S)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise NoResponseError(SOCKET_BROKEN, connection_error_reason(error)) from None
        if said.type is not aiohttp.WSMsgType.TEXT:
            if said.data == 4403:  # what the protocol closes with when it refuses the token
                raise SimulationError(f"the server refuses a socket: {said.extra}")
            raise NoResponseError(SOCKET_BROKEN, f"the socket was closed: {said.data} {said.extra}")
        connection.reader_task = asyncio.create_task(connection.dispatch_messages())
        return connection

    async def _send(self, connection: _Connection, **message: Any) -> None:
        try:
            await connection.socket.send_str(orjson.dumps(message).decode())
        except (aiohttp.ClientError, OSError) as error:
            raise NoResponseError(SOCKET_BROKEN, str(error)) from None


async def _consume(stream: asyncio.Queue[Message | None], on_result: Callable[[Any], None]) -> None:
    while True:
        message = await stream.get()
        if message is None:
            raise NoResponseError(SOCKET_BROKEN, "the socket broke")
        match message["type"]:
            case "next":
                if errors := message["payload"].get("errors"):
                    raise to_error(errors)
                (answer,) = message["payload"]["data"].values()
                on_result(answer)
            case "error":
                raise to_error(message["payload"])
            case "complete":
                return


@contextlib.asynccontextmanager
async def open_websockets(url: str) -> AsyncIterator[Callable[[str], WebSocketClient]]:
    """Makes sockets, each for a token; they are closed with it."""
    made: list[WebSocketClient] = []
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as http:

        def create_socket(token: str) -> WebSocketClient:
            made.append(WebSocketClient(http, url, token))
            return made[-1]

        try:
            yield create_socket
        finally:
            await asyncio.gather(*(socket.close() for socket in made))
