"""The orderly end of sockets and streams when the process stops."""

import asyncio
from collections.abc import Awaitable, Callable

from slotlock.graphql.execution.operation_executor import GraphQLResponse

# The server waits this long for a client to read what was sent to it before the stop.
SHUTDOWN_SEND_TIMEOUT_S = 3.0

ShutdownCallback = Callable[[], Awaitable[None]]


class ShutdownCoordinator:
    """Notifies sockets and streams of the shutdown, and waits until they have finished."""

    def __init__(self) -> None:
        self._started = asyncio.Event()
        self._callbacks: set[ShutdownCallback] = set()
        self._unfinished: set[asyncio.Future[GraphQLResponse]] = set()

    @property
    def has_started(self) -> bool:
        """Whether the process is stopping."""
        return self._started.is_set()

    async def wait_until_started(self) -> None:
        """Wait until the process is about to stop."""
        await self._started.wait()

    def register(self, callback: ShutdownCallback) -> Callable[[], None]:
        """Call and await the callback at shutdown; return a function that removes it again."""
        self._callbacks.add(callback)
        return lambda: self._callbacks.discard(callback)

    def wait_for(self, response: asyncio.Future[GraphQLResponse]) -> None:
        """Let a shutdown wait until this operation has its response."""
        self._unfinished.add(response)
        response.add_done_callback(self._unfinished.discard)

    async def run(self) -> None:
        """End every stream, close every socket and wait for unfinished operations."""
        self._started.set()
        await asyncio.gather(*(callback() for callback in list(self._callbacks)))
        await asyncio.gather(*self._unfinished, return_exceptions=True)
