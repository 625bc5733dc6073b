"""Stopping a process on a signal without losing operations that are in progress."""

import asyncio
import logging
import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from types import FrameType
from typing import Any, cast

import uvicorn

from slotlock.api.server.http_protocol import HttpProtocol, ServerConfig
from slotlock.api.server.websockets import StrictWebSocketProtocol
from slotlock.graphql.transport.shutdown import ShutdownCoordinator

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
        name = signal.Signals(number).name
        log.info("process %s stops after %s, when its requests have finished", os.getpid(), name)

    async def _stop(self, number: int) -> None:
        # The server stops accepting first, because another process can serve new connections.
        server = getattr(self._previous[number], "__self__", None)
        if isinstance(server, uvicorn.Server):
            stop_accepting(server)
        await self._shutdown.run()
        self._pass_on(number, None)

    def _pass_on(self, number: int, frame: FrameType | None) -> None:
        handler = self._previous[number]
        if callable(handler):
            handler(number, frame)


def stop_accepting(server: uvicorn.Server) -> None:
    """Close the listeners, and let every connection end after its current request.

    The kernel resets the connections that nobody has accepted when the last process closes the
    listener. A client of one cannot know whether its request was processed: they are served.
    So are those which the event loop has accepted, but has not passed to a protocol.
    """
    cast("ServerConfig", server.config).is_stopping = True
    loop, tasks = asyncio.get_running_loop(), server.server_state.tasks
    for each in server.servers:
        copies = [socket.socket(fileno=os.dup(bound.fileno())) for bound in each.sockets]
        each.close()
        for copy in copies:
            with copy, suppress(OSError):  # at the latest when there are no more
                copy.setblocking(False)
                while True:
                    task = loop.create_task(_serve_accepted(server, copy.accept()[0]))
                    tasks.add(task)
                    task.add_done_callback(tasks.discard)
    for connection in list(server.server_state.connections):
        if isinstance(connection, StrictWebSocketProtocol):
            connection.shorten_close()
        else:
            connection.shutdown()


async def _serve_accepted(server: uvicorn.Server, accepted: socket.socket) -> None:
    """Serve a connection that the server's own listener has not accepted."""
    protocol = partial(
        HttpProtocol,
        config=server.config,
        server_state=server.server_state,
        app_state=server.lifespan.state,
    )
    await asyncio.get_running_loop().connect_accepted_socket(protocol, accepted)
