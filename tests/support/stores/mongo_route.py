"""A route to a MongoDB, which may lose connections and change how replies arrive."""

import asyncio
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from functools import partial
from typing import TypeVar

from pymongo import ReadPreference
from pymongo.asynchronous.pool import Pool

from slotlock.infrastructure.mongo.client import Database, LeasingClient, connect

Send = Callable[[asyncio.StreamWriter, bytes], Awaitable[None]]


async def send_whole(writer: asyncio.StreamWriter, data: bytes) -> None:
    """Send a part of a reply as it is."""
    writer.write(data)


class MongoRoute:
    """Forwards connections. One that sends `loses` is closed without a reply."""

    def __init__(self, host: str, port: int, send_reply: Send = send_whole) -> None:
        self._address = (host, port)
        self._send_reply = send_reply
        self.loses: bytes | None = None
        self.lost = asyncio.Event()
        self.connections: set[asyncio.Task[None]] = set()

    async def forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward a connection."""
        task = asyncio.current_task()
        assert task is not None
        self.connections.add(task)
        task.add_done_callback(self.connections.discard)
        with closing(writer):
            mongo_reader, mongo_writer = await asyncio.open_connection(*self._address)
            with closing(mongo_writer):
                replies = asyncio.create_task(self._forward_replies(mongo_reader, writer))
                while message := await reader.read(65_536):
                    if not self.send_request(mongo_writer, message):
                        break
        await replies
        await mongo_writer.wait_closed()

    def send_request(self, writer: asyncio.StreamWriter, message: bytes) -> bool:
        """Send a part of a request to MongoDB. Return whether the connection stays open."""
        if self.loses is not None and self.loses in message:
            self.lost.set()
            return False
        writer.write(message)
        return True

    async def _forward_replies(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        while data := await reader.read(65_536):
            await self._send_reply(writer, data)


class HoldingRoute(MongoRoute):
    """Holds the requests that match until they may arrive, even after their client has gone."""

    def __init__(self, host: str, port: int, is_held: Callable[[bytes], bool]) -> None:
        super().__init__(host, port)
        self.is_held = is_held
        self.held: list[bytes] = []

    def send_request(self, writer: asyncio.StreamWriter, message: bytes) -> bool:
        """Send a part of a request to MongoDB, unless it is held."""
        if self.is_held(message):
            self.held.append(message)
            return True
        return super().send_request(writer, message)

    async def deliver_held(self) -> None:
        """Deliver what was held, and wait for the replies."""
        for message in self.held:
            reader, writer = await asyncio.open_connection(*self._address)
            writer.write(message)
            (length,) = struct.unpack("<i", await reader.readexactly(4))
            await reader.readexactly(length - 4)
            writer.close()
            await writer.wait_closed()


Route = TypeVar("Route", bound=MongoRoute)


@asynccontextmanager
async def database_behind(
    database: Database, create_route: Callable[[str, int], Route]
) -> AsyncIterator[tuple[LeasingClient, Database, Route]]:
    """Yield a client and the database as they are behind a route, and the route."""
    address = await database.client.address
    assert address is not None
    route = create_route(*address)
    async with await asyncio.start_server(route.forward, "127.0.0.1") as server:
        port = server.sockets[0].getsockname()[1]
        client, behind = connect(
            f"mongodb://127.0.0.1:{port}/{database.name}?directConnection=true"
        )
        try:
            yield client, behind, route
        finally:
            await client.close()
            if route.connections:
                await asyncio.wait(route.connections, timeout=5)


def routed_database(
    database: Database, send_reply: Send = send_whole
) -> AbstractAsyncContextManager[tuple[LeasingClient, Database, MongoRoute]]:
    """Yield a client and the database behind a route that sends replies so, and the route."""
    return database_behind(database, partial(MongoRoute, send_reply=send_reply))


async def pool_unjoined_connection(client: LeasingClient) -> Pool:
    """Let the pool of the primary lend such a connection next. Return the pool."""
    server = await client._select_server(ReadPreference.PRIMARY, None, "test")
    async with client._checkout(server, None) as connection:
        # What PyMongo notes when the member does not know its replica set yet.
        connection.supports_sessions = False
    return server.pool
