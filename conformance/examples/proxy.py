"""A TCP proxy in front of the app that loses the first response to some mutations."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

CHUNK_BYTES = 65_536
HOST = "127.0.0.1"
# No response to this mutation arrives, and its connection stays open until the client gives up.
# Meanwhile the access token expires and the server closes the WebSocket, so the client has to
# refresh because of the socket.
SILENT_MUTATION = b"bookSlot("
# The loss of the response to one of the others breaks all other connections.
LOST_RESPONSES = (SILENT_MUTATION, b"refreshSession(", b"requestBooking(")
# A name that begins in one chunk may end in the next one.
OVERLAP_BYTES = max(map(len, LOST_RESPONSES))


@dataclass(slots=True, eq=False)
class Connection:
    """A connection of a client, and the one to the server that belongs to it."""

    writers: tuple[asyncio.StreamWriter, asyncio.StreamWriter]
    lost_mutation: bytes | None = None

    @property
    def is_silent(self) -> bool:
        """Return whether no response arrives any more, while the connection stays open."""
        return self.lost_mutation == SILENT_MUTATION

    def abort(self) -> None:
        """Break both connections without a close message."""
        for writer in self.writers:
            writer.transport.abort()


@dataclass(slots=True)
class LossyProxy:
    """Forwards connections until a lost response breaks them, also the WebSockets."""

    server_port: int
    port: int = 0
    lost: list[bytes] = field(default_factory=list)
    _connections: set[Connection] = field(default_factory=set)
    _tasks: "set[asyncio.Task[None]]" = field(default_factory=set)

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward one connection until a side closes it or a response is lost."""
        task = asyncio.create_task(self._forward(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Break all connections and wait until they have ended."""
        for connection in self._connections:
            connection.abort()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_connection(HOST, self.server_port)
        connection = Connection((writer, server_writer))
        self._connections.add(connection)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._forward_requests(connection, reader, server_writer))
                tasks.create_task(self._forward_responses(connection, server_reader, writer))
        finally:
            self._connections.discard(connection)
            connection.abort()

    async def _forward_requests(
        self, connection: Connection, reader: asyncio.StreamReader, server: asyncio.StreamWriter
    ) -> None:
        end_of_last = b""
        with suppress(OSError):
            while data := await reader.read(CHUNK_BYTES):
                self._inspect(connection, end_of_last + data)
                end_of_last = data[-OVERLAP_BYTES:]
                server.write(data)
        server.close()

    def _inspect(self, connection: Connection, request: bytes) -> None:
        for mutation in LOST_RESPONSES:
            if mutation in request and mutation not in self.lost:
                self.lost.append(mutation)
                connection.lost_mutation = mutation

    async def _forward_responses(
        self, connection: Connection, server: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        with suppress(OSError):
            while data := await server.read(CHUNK_BYTES):
                if connection.lost_mutation is None:
                    writer.write(data)
                elif not connection.is_silent:
                    self._abort_all_but_silent()
        writer.close()

    def _abort_all_but_silent(self) -> None:
        for connection in self._connections:
            if not connection.is_silent:
                connection.abort()


@asynccontextmanager
async def lossy_proxy(server_port: int) -> AsyncIterator[LossyProxy]:
    """Run a proxy in front of a port of this host."""
    proxy = LossyProxy(server_port)
    server = await asyncio.start_server(proxy.accept, HOST)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        await proxy.close()
