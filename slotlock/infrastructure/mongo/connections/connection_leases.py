"""Connections of the driver that are used for several commands.

To take a connection of PyMongo's pool and to return it costs more CPU time than the command. A
lease is a connection that is taken once. It ends at the first error, which PyMongo learns of, and
as soon as PyMongo knows that the server is no longer the primary or that it was restarted.

The names that begin with an underscore are private to PyMongo. Only this folder, `LeasingClient`
and `commands` use any. Their tests fail if a new version changes what they do.
"""

import asyncio
from contextlib import AbstractAsyncContextManager
from typing import Any, NoReturn

from pymongo import AsyncMongoClient, ReadPreference, _csot
from pymongo.asynchronous.mongo_client import _ClientCheckout, _ClientReadCheckout
from pymongo.asynchronous.pool import AsyncConnection
from pymongo.asynchronous.server import Server
from pymongo.errors import AutoReconnect

from slotlock.infrastructure.mongo.connections.reply_protocol import ReplyProtocol


class ConnectionLease:
    """A connection to a server, which is taken from the pool."""

    def __init__(
        self,
        server: Server,
        checkout: AbstractAsyncContextManager[AsyncConnection],
        connection: AsyncConnection,
    ) -> None:
        self._server = server
        self._checkout = checkout
        self._connection = connection
        transport, driver_protocol = connection.conn.conn
        self._protocol = ReplyProtocol(
            transport, driver_protocol, connection.max_message_size, self._is_frozen
        )
        self.max_wire_version = connection.max_wire_version

    @property
    def is_usable(self) -> bool:
        """Whether PyMongo would still use the connection for a command to the primary."""
        connection = self._connection
        return (
            self._protocol.is_open
            and self._server.description.is_writable
            and not self._server.pool.stale_generation(connection.generation, connection.service_id)
        )

    def _is_frozen(self) -> bool:
        """Return whether PyMongo interrupts its commands, because its monitor gets no reply."""
        return self._connection.cancel_context.cancelled

    @property
    def is_awaited(self) -> bool:
        """Whether operations of PyMongo wait for a free connection."""
        pool = self._server.pool
        return pool.operation_count > pool.active_sockets

    def apply_timeout(self, command: dict[str, Any]) -> float | None:
        """Give the command the time that `pymongo.timeout` leaves. Return it in seconds.

        Raises:
            ExecutionTimeout: the time is over.
        """
        _csot.set_rtt(self._server.description.min_round_trip_time)
        return self._connection.apply_timeout(command)

    async def exchange(self, document: bytes, timeout_s: float | None) -> memoryview:
        """Send a command, and return the document of its reply.

        Raises:
            ConnectionFailure: the connection is lost, or its server is frozen, or there was no
                reply in time.
            ProtocolError: this is not the reply to the command.
        """
        try:
            return await self._protocol.exchange(document, timeout_s)
        except BaseException as error:  # cancelled, for example: the reply must not reach another
            self._protocol.give_back()
            await self._connection._raise_connection_failure(error)

    async def end(self, error: BaseException | None = None) -> None:
        """Return the connection to the pool, which discards it if it is closed or too old.

        PyMongo learns of the error of the last command.
        """
        self._protocol.give_back()
        await self._checkout.__aexit__(type(error) if error else None, error, None)


class ConnectionLeases:
    """The leases of a client. Between commands, at most `max_idle` of them continue."""

    def __init__(self, client: "AsyncMongoClient[dict[str, Any]]", max_idle: int) -> None:
        self._client = client
        self._max_idle = max_idle
        self._idle: list[ConnectionLease] = []

    async def acquire(self, command_name: str) -> ConnectionLease:
        """Return a lease of a connection to the primary, for one command at a time.

        Raises:
            PyMongoError: there is no primary, or no connection to it.
        """
        while self._idle:
            lease = self._idle.pop()
            if lease.is_usable:
                return lease
            await lease.end()
        server = await self._client._select_server(ReadPreference.PRIMARY, None, command_name)
        checkout = self._client._checkout(server, None)
        return ConnectionLease(server, checkout, await checkout.__aenter__())

    async def release(self, lease: ConnectionLease) -> None:
        """Let a lease continue until the next command, or end it."""
        if len(self._idle) < self._max_idle and not lease.is_awaited:
            self._idle.append(lease)
        else:
            await lease.end()

    async def close(self) -> None:
        """End the idle leases, and every other one after its command."""
        self._max_idle = 0
        idle, self._idle = self._idle, []
        await asyncio.gather(*(lease.end() for lease in idle))


class JoinedCheckout(_ClientCheckout):
    """Lends a connection for a write, or for a command with a lease.

    It rejects those from before their server joined its replica set. PyMongo notes whether a
    connection supports sessions when it opens the connection, and a restarted mongod that has not
    joined yet has none. PyMongo would use such a connection again and again, and each transaction
    and each snapshot on it would fail.
    """

    __slots__ = ()

    async def __aenter__(self) -> AsyncConnection:
        """Return a connection that supports sessions. Raises AutoReconnect if this one does not."""
        connection = await super().__aenter__()
        if not connection.supports_sessions:
            await _reject(self)
        return connection


class JoinedReadCheckout(_ClientReadCheckout):
    """Lends a connection for a read of the driver, which has checkouts of its own for these."""

    __slots__ = ()

    # PyMongo declares the same exception for the class that this one extends.
    async def __aenter__(self) -> tuple[AsyncConnection, Any]:  # type: ignore[override]
        """Return a connection that supports sessions. Raises AutoReconnect if this one does not."""
        connection, read_preference = await super().__aenter__()
        if not connection.supports_sessions:
            await _reject(self)
        return connection, read_preference


async def _reject(checkout: _ClientCheckout) -> NoReturn:
    """Return the connection as one that was lost: PyMongo closes it and all others of its pool.

    Nothing was sent, so that PyMongo repeats what may be repeated after a lost connection.
    """
    error = AutoReconnect("the server had not joined its replica set")
    await checkout.__aexit__(AutoReconnect, error, None)
    raise error
