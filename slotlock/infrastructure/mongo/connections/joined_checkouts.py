"""Connections of the driver's pool, except those from before their server joined its replica set.

PyMongo notes whether a connection supports sessions when it opens the connection. A restarted
mongod that has not joined its replica set yet has no sessions. PyMongo would use such a connection
again and again, and each transaction and each snapshot on it would fail.
"""

from typing import NoReturn

from pymongo.asynchronous.mongo_client import _ClientCheckout, _ClientReadCheckout
from pymongo.asynchronous.pool import AsyncConnection
from pymongo.errors import AutoReconnect
from pymongo.read_preferences import _ServerMode


class JoinedCheckout(_ClientCheckout):
    """Lends a connection for a write, or for a command with a lease."""

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
    async def __aenter__(self) -> tuple[AsyncConnection, _ServerMode]:  # type: ignore[override]
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
