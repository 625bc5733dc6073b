"""A WebSocket client with several subscriptions, which reconnects after a failure.

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
from slotlock.simulation.model.plan import SOCKET_BROKEN, NoResponseError, SimulationError

PROTOCOL = "graphql-transport-ws"
MAX_OPERATIONS = 10
ACK_TIMEOUT_S = 30.0
# Nothing for so long, not even a ping, means that the server hangs.
SILENCE_S = 30.0
# A server that hangs does not answer the end of a connection either.
CLOSE = aiohttp.ClientWSTimeout(ws_close=1.0)
# The protocol closes with this code when the server rejects the token.
FORBIDDEN = 4403

Message = dict[str, Any]


@dataclass(slots=True)
class _Connection:
    """An open socket, and a queue of messages for each operation; None marks a broken socket."""

    socket: aiohttp.ClientWebSocketResponse
    streams: dict[str, asyncio.Queue[Message | None]] = field(default_factory=dict)
    reader_task: asyncio.Task[None] | None = None

    @property
    def is_broken(self) -> bool:
        """Return whether the reader of the socket has ended."""
        return self.socket.closed or self.reader_task is None or self.reader_task.done()

    async def dispatch_messages(self) -> None:
        """Pass each message to the queue of its operation until the socket closes."""
        try:
            while (raw := await self.socket.receive(SILENCE_S)).type is aiohttp.WSMsgType.TEXT:
                message = orjson.loads(raw.data)
                if message["type"] == "ping":
                    await self.socket.send_str('{"type": "pong"}')
                elif (stream := self.streams.get(message.get("id", ""))) is not None:
                    stream.put_nowait(message)
        except (aiohttp.ClientError, OSError, ValueError):  # TimeoutError is an OSError
            pass
        finally:
            for stream in self.streams.values():
                stream.put_nowait(None)


class WebSocketClient:
    """A socket of one user that connects on first use, and again after a failure."""

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
        """Call `on_result` with each result of a subscription until it completes.

        Raises:
            NoResponseError: The socket broke; the next call opens a new one.
        """
        async with self._operation_limit:
            connection = await self.open()
            operation_id = str(next(self._operation_ids))
            stream: asyncio.Queue[Message | None] = asyncio.Queue()
            connection.streams[operation_id] = stream
            payload = {"query": document, "variables": variables}
            try:
                await self._send(connection, id=operation_id, type="subscribe", payload=payload)
                await _consume(stream, on_result)
            finally:
                del connection.streams[operation_id]

    async def open(self) -> _Connection:
        """Return the connection, opening one if necessary; raises NoResponseError."""
        async with self._open_lock:
            if self._connection is None or self._connection.is_broken:
                self._connection = await self._connect()
            return self._connection

    async def close(self) -> None:
        """Close the socket and wait for the end of its reader."""
        if self._connection is not None:
            await self._connection.socket.close()
            if self._connection.reader_task is not None:
                await self._connection.reader_task

    async def _connect(self) -> _Connection:
        try:
            socket = await self._http.ws_connect(
                self._endpoint_url, protocols=[PROTOCOL], max_msg_size=0, timeout=CLOSE, compress=0
            )
            connection = _Connection(socket)
            payload = {"authorization": f"Bearer {self._token}"}
            await self._send(connection, type="connection_init", payload=payload)
            reply = await socket.receive(ACK_TIMEOUT_S)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise NoResponseError(SOCKET_BROKEN, connection_error_reason(error)) from None
        if reply.type is not aiohttp.WSMsgType.TEXT:
            if reply.data == FORBIDDEN:
                raise SimulationError(f"the server rejects a socket: {reply.extra}")
            reason = f"the server closed the socket: {reply.data} {reply.extra}"
            raise NoResponseError(SOCKET_BROKEN, reason)
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
                (result,) = message["payload"]["data"].values()
                on_result(result)
            case "error":
                raise to_error(message["payload"])
            case "complete":
                return


@contextlib.asynccontextmanager
async def open_websockets(url: str) -> AsyncIterator[Callable[[str], WebSocketClient]]:
    """Yield a function that creates the socket of a token; close all sockets on leaving."""
    created: list[WebSocketClient] = []
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as http:

        def create_socket(token: str) -> WebSocketClient:
            created.append(WebSocketClient(http, url, token))
            return created[-1]

        try:
            yield create_socket
        finally:
            await asyncio.gather(*(socket.close() for socket in created))
