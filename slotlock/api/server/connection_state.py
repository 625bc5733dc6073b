"""What uvicorn keeps for each WebSocket, in a tenth of the memory of asyncio's own classes.

Each queue or event of asyncio holds a deque, and each deque has room for 64 items from its start.
"""

import asyncio

from uvicorn._types import ASGIReceiveEvent


class EventQueue:
    """The events that the application has not received yet; the application is its one reader."""

    __slots__ = ("_events", "_reader")

    def __init__(self) -> None:
        self._events: list[ASGIReceiveEvent] = []
        self._reader: asyncio.Future[None] | None = None

    def put_nowait(self, event: ASGIReceiveEvent) -> None:
        """Add an event, and wake the reader."""
        self._events.append(event)
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    def empty(self) -> bool:
        """Return whether there is no event."""
        return not self._events

    async def get(self) -> ASGIReceiveEvent:
        """Remove and return the oldest event; wait until there is one."""
        while not self._events:
            self._reader = asyncio.get_running_loop().create_future()
            try:
                await self._reader
            finally:
                self._reader = None
        return self._events.pop(0)


class Gate:
    """Lets senders pass while the peer reads: the part of `asyncio.Event` that uvicorn uses."""

    __slots__ = ("closed",)

    def __init__(self) -> None:
        # What senders wait for while the gate is closed; None while it is open.
        self.closed: asyncio.Event | None = None

    def is_set(self) -> bool:
        """Return whether the gate is open."""
        return self.closed is None

    def set(self) -> None:
        """Open the gate, and let all pass who wait."""
        if self.closed is not None:
            self.closed.set()
            self.closed = None

    def clear(self) -> None:
        """Close the gate."""
        if self.closed is None:
            self.closed = asyncio.Event()

    async def wait(self) -> None:
        """Wait until the gate is open."""
        if self.closed is not None:
            await self.closed.wait()
