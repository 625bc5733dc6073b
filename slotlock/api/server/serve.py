"""Running the application under uvicorn."""

import asyncio
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from types import FrameType
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from slotlock.api.server import websockets
from slotlock.api.server.graceful_shutdown import STOP_SIGNALS
from slotlock.api.server.http_protocol import ServerConfig
from slotlock.api.settings.addresses import trusted_networks
from slotlock.api.settings.settings import Settings
from slotlock.api.telemetry.logs import logging_config
from slotlock.infrastructure.tasks import wait_for_event

# Longer than proxies and clients keep idle connections (usually at most 60 s). If the server closed
# first, a request that is being sent at that moment would be lost.
KEEP_ALIVE_TIMEOUT_S = 75


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, on_started: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_started = on_started
        self._loop: asyncio.AbstractEventLoop | None = None
        self._exit_requested = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        # uvicorn would raise the signal that stopped it again, after all has stopped in order.
        for number in STOP_SIGNALS:
            signal.signal(number, self.handle_exit)
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)
        if self.started:
            self._on_started()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._exit_requested.set)

    async def main_loop(self) -> None:
        # uvicorn looks ten times a second whether a signal came.
        while not await self.on_tick(0):  # which makes the Date header of a second
            await wait_for_event(self._exit_requested, 1.0)


class _ServerWithoutSignals(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def serve(config: uvicorn.Config, listener: socket.socket, on_started: Callable[[], None]) -> bool:
    """Serve an application from this process until a signal stops it.

    Returns whether the application started.
    """
    server = _Server(config, on_started)
    with _restoring_handlers():
        server.run(sockets=[listener])
    return server.started


@asynccontextmanager
async def serving(settings: Settings, listener: socket.socket, app: ASGIApp) -> AsyncIterator[None]:
    """Serve an application inside a process that does something else and handles the signals."""
    server = _ServerWithoutSignals(uvicorn_config(settings, app, lifespan="off"))
    task = asyncio.create_task(server.serve([listener]))
    try:
        yield
    finally:
        server.should_exit = True
        await task


@contextmanager
def _restoring_handlers() -> Iterator[None]:
    previous = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def uvicorn_config(settings: Settings, app: ASGIApp, **kwargs: Any) -> uvicorn.Config:
    """Return the configuration of a server for an application."""
    return ServerConfig(
        app,
        settings.header_timeout_s,
        settings.body_timeout_s,
        settings.unread_timeout_s,
        settings.max_unread,
        ws=websockets.StrictWebSocketProtocol,
        ws_max_size=settings.max_body,
        ws_ping_interval=websockets.PING_INTERVAL_S,
        ws_ping_timeout=websockets.PONG_TIMEOUT_S,
        access_log=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_TIMEOUT_S,
        # Without configured proxies, uvicorn would trust the headers of every local process.
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=trusted_networks(settings.trusted_proxies),
        timeout_graceful_shutdown=settings.graceful_stop_s,
        log_config=logging_config(settings.log_format, settings.log_level),
        **kwargs,
    )
