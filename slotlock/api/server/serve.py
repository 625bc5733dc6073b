"""Running the application under uvicorn, in one server process or several."""

import asyncio
import errno
import logging
import signal
import socket
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import uvicorn
from prometheus_client.multiprocess import mark_process_dead
from starlette.types import ASGIApp
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from slotlock.api.server import websockets
from slotlock.api.server.graceful_shutdown import STOP_SIGNALS
from slotlock.api.server.timeouts import TimeoutConfig
from slotlock.api.settings.proxies import trusted_networks
from slotlock.api.settings.settings import Settings, export_to_environment
from slotlock.api.telemetry.logs import logging_config

# Longer than proxies and clients keep idle connections (usually at most 60 s). If the server closed
# first, a request that is being sent at that moment would be lost.
KEEP_ALIVE_TIMEOUT_S = 75

log = logging.getLogger("slotlock")


class ListenError(Exception):
    """The server cannot listen on its address; the text says why and what to do."""


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, on_started: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_started = on_started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_started()


class _ServerWithoutSignals(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _Supervisor(Multiprocess):
    _server_pids: frozenset[int | None] = frozenset()

    def terminate_all(self) -> None:
        # The kernel accepts connections as long as any process has the socket open.
        for bound in self.sockets:
            bound.close()
        super().terminate_all()

    def keep_subprocess_alive(self) -> None:
        super().keep_subprocess_alive()
        pids = frozenset(process.pid for process in self.processes)
        # The gauges of a killed process would count its subscriptions as open.
        for pid in self._server_pids - pids:
            log.warning("server process %s ended; a new one replaces it", pid)
            mark_process_dead(pid)  # type: ignore[no-untyped-call]
        self._server_pids = pids


def base_url(settings: Settings) -> str:
    """Return the address of the server as a URL."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"http://{host}:{settings.port}"


def bind(host: str, port: int, port_variable: str = "PORT") -> socket.socket:
    """Return a socket that listens on this address; the variable is the one to advise to change.

    Raises:
        ListenError: the address is in use or not available.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
        bound.listen(2048)
    except OSError as error:
        bound.close()
        if error.errno == errno.EADDRINUSE:
            advice = f"stop the process that uses it, or set {port_variable} to another port"
        else:
            advice = f"set SLOTLOCK_HOST or {port_variable}"
        address = f"{host}:{port}"
        raise ListenError(f"cannot listen on {address} ({error.strerror}); {advice}") from None
    return bound


def serve(
    settings: Settings, listener: socket.socket, app: ASGIApp, on_started: Callable[[], None]
) -> bool:
    """Serve an application from this process until a signal stops it.

    Returns whether the application started.
    """
    server = _Server(_uvicorn_config(settings, app), on_started)
    with _ignoring_repeated_signals():
        server.run(sockets=[listener])
    return server.started


@asynccontextmanager
async def serving(settings: Settings, listener: socket.socket, app: ASGIApp) -> AsyncIterator[None]:
    """Serve an application inside a process that does something else and handles the signals."""
    server = _ServerWithoutSignals(_uvicorn_config(settings, app, lifespan="off"))
    task = asyncio.create_task(server.serve([listener]))
    try:
        yield
    finally:
        server.should_exit = True
        await task


@contextmanager
def _ignoring_repeated_signals() -> Iterator[None]:
    # uvicorn raises the signal that stopped it again, after everything has stopped in order.
    previous = {number: signal.signal(number, lambda *_: None) for number in STOP_SIGNALS}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def serve_from_processes(
    settings: Settings, listener: socket.socket, factory: str, process_count: int
) -> bool:
    """Serve an application from several processes that share the socket.

    Each process calls the factory. Returns whether the processes could start.
    """
    listener.set_inheritable(True)
    config = _uvicorn_config(settings, factory, factory=True, workers=process_count)
    with tempfile.TemporaryDirectory(prefix="slotlock-metrics-") as directory:
        # The variable is set before the new processes import their metrics.
        export_to_environment({"PROMETHEUS_MULTIPROC_DIR": directory})
        supervisor = _Supervisor(config, sockets=[listener])
        supervisor.run()
    return all(process.exitcode != STARTUP_FAILURE for process in supervisor.processes)


def _uvicorn_config(settings: Settings, app: ASGIApp | str, **kwargs: Any) -> uvicorn.Config:
    return TimeoutConfig(
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
