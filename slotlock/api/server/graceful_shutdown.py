"""Stopping a process on a signal without losing operations that are in progress."""

import asyncio
import logging
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import uvicorn

from slotlock.api.server.websockets import StrictWebSocketProtocol
from slotlock.graphql.transport.shutdown import ShutdownCoordinator

PARENT_CHECK_S = 1.0
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)

log = logging.getLogger("slotlock")


@contextmanager
def graceful_shutdown(shutdown: ShutdownCoordinator) -> Iterator[None]:
    """End streams and sockets before uvicorn handles a signal to stop.

    uvicorn alone would close every socket with 1012 at once.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread receives signals
        return
    handler = _StopSignalHandler(shutdown)
    for number in STOP_SIGNALS:
        signal.signal(number, handler.on_signal)
    try:
        yield
    finally:
        handler.restore()


class _StopSignalHandler:
    """Runs the shutdown on the first signal and passes every signal on to uvicorn."""

    def __init__(self, shutdown: ShutdownCoordinator) -> None:
        self._shutdown = shutdown
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[None] | None = None
        self._previous: dict[int, Any] = {each: signal.getsignal(each) for each in STOP_SIGNALS}

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        """Start the shutdown; pass a second signal on at once."""
        if self._shutdown.has_started or self._task is not None:
            self._pass_on(number, frame)
        else:
            self._loop.call_soon_threadsafe(self._start, number)

    def restore(self) -> None:
        """Install the previous handlers again."""
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _start(self, number: int) -> None:
        self._task = self._loop.create_task(self._stop(number))

    async def _stop(self, number: int) -> None:
        # The server stops accepting first, because another process can serve new connections.
        server = getattr(self._previous[number], "__self__", None)
        if isinstance(server, uvicorn.Server):
            _stop_accepting(server)
        await self._shutdown.run()
        self._pass_on(number, None)

    def _pass_on(self, number: int, frame: FrameType | None) -> None:
        handler = self._previous[number]
        if callable(handler):
            handler(number, frame)


def _stop_accepting(server: uvicorn.Server) -> None:
    """Close the listeners, and let every connection end after its current request."""
    for listener in server.servers:
        listener.close()
    for connection in list(server.server_state.connections):
        if isinstance(connection, StrictWebSocketProtocol):
            connection.shorten_close()
        else:
            connection.shutdown()


async def exit_with_parent() -> None:
    """Stop this server process when the process that started it has ended without stopping it."""
    parent = multiprocessing.parent_process()
    # A forked process also has the pipes of its siblings, by which `is_alive` knows the parent.
    while parent is None or (parent.is_alive() and parent.pid == os.getppid()):
        await asyncio.sleep(PARENT_CHECK_S)
    log.warning("the parent process has ended; this server process stops")
    signal.raise_signal(signal.SIGTERM)
