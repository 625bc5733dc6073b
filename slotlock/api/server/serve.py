"""Running the application under uvicorn, and stopping it without losing what is under way."""

import asyncio
import errno
import logging
import multiprocessing
import signal
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import uvicorn
from prometheus_client.multiprocess import mark_process_dead
from starlette.types import ASGIApp
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from slotlock.api.server import websockets
from slotlock.api.server.timeouts import TimeoutConfig
from slotlock.api.settings.proxies import trusted_networks
from slotlock.api.settings.settings import Settings, export_to_environment
from slotlock.graphql.transport.server import GraphQLServer

LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": "INFO"},
    # What is no HTTP is no news, and whoever sends it would fill the log. The driver tells of every
    # lost connection; one line of ours a transition is enough.
    "loggers": {"uvicorn.error": {"level": "ERROR"}, "pymongo": {"level": "ERROR"}},
}
PARENT_CHECK_S = 1.0
# Longer than proxies and clients keep an idle connection (60 s at most as a rule): whoever closes
# first must be the one who sends, else a request is lost now and then.
KEEP_ALIVE_TIMEOUT_S = 75

log = logging.getLogger("slotlock")

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class ListenError(Exception):
    """The address cannot be listened on; the text says why and what to do."""


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, on_started: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_started = on_started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_started()


class _Supervisor(Multiprocess):
    _worker_pids: frozenset[int | None] = frozenset()

    def terminate_all(self) -> None:
        # As long as one process has it open, the system takes connections that nobody will serve.
        for bound in self.sockets:
            bound.close()
        super().terminate_all()

    def keep_subprocess_alive(self) -> None:
        super().keep_subprocess_alive()
        workers = frozenset(process.pid for process in self.processes)
        # A worker that was killed never told that its subscriptions ended with it.
        for pid in self._worker_pids - workers:
            log.warning("worker %s ended; another takes its place", pid)
            mark_process_dead(pid)  # type: ignore[no-untyped-call]
        self._worker_pids = workers


def base_url(settings: Settings) -> str:
    """The address of the settings, as a browser wants it."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"http://{host}:{settings.port}"


def bind(settings: Settings) -> socket.socket:
    """A socket bound to the address of the settings. Errors: ListenError."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    bound = socket.socket(family)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((settings.host, settings.port))
        bound.listen(2048)
    except OSError as error:
        bound.close()
        taken = error.errno == errno.EADDRINUSE
        advice = (
            "stop what uses it or set PORT to another" if taken else "set SLOTLOCK_HOST or PORT"
        )
        where = f"{settings.host}:{settings.port}"
        raise ListenError(f"cannot listen on {where} ({error.strerror}); {advice}") from None
    return bound


def serve(
    settings: Settings, listener: socket.socket, app: ASGIApp, on_started: Callable[[], None]
) -> bool:
    """Serve an application from this process until a signal says stop; whether it started."""
    server = _Server(_uvicorn_config(settings, app), on_started)
    with _ignoring_repeated_signals():
        server.run(sockets=[listener])
    return server.started


@contextmanager
def _ignoring_repeated_signals() -> Iterator[None]:
    # uvicorn raises the signal that stopped it once more; by then all is stopped in order.
    before = {number: signal.signal(number, lambda *_: None) for number in STOP_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def serve_by_workers(
    settings: Settings, listener: socket.socket, factory: str, workers: int
) -> bool:
    """Serve an application from several processes that share the socket; each calls the factory.

    Whether they could start.
    """
    listener.set_inheritable(True)
    config = _uvicorn_config(settings, factory, factory=True, workers=workers)
    with tempfile.TemporaryDirectory(prefix="slotlock-metrics-") as directory:
        # Workers are new processes, so the metrics they import see this.
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
        ws=websockets.StrictWebSocketProtocol,
        ws_max_size=settings.max_body,
        ws_ping_interval=websockets.PING_INTERVAL_S,
        ws_ping_timeout=websockets.PONG_TIMEOUT_S,
        access_log=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_TIMEOUT_S,
        # Without networks of ours uvicorn would believe whoever is on this machine.
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=trusted_networks(settings.trusted_proxies),
        timeout_graceful_shutdown=settings.graceful_stop_s,
        log_config=LOGGING,
        **kwargs,
    )


async def exit_with_parent() -> None:
    """End this worker when the process that started it is gone, which cannot tell it any more."""
    parent = multiprocessing.parent_process()
    while parent is None or parent.is_alive():
        await asyncio.sleep(PARENT_CHECK_S)
    log.warning("the process that started this worker is gone; the worker ends too")
    signal.raise_signal(signal.SIGTERM)


@contextmanager
def graceful_shutdown(graphql_server: GraphQLServer) -> Iterator[None]:
    """Let the conversation end its streams before the server acts on a signal to stop.

    uvicorn would cut every socket with 1012 at once. A second signal goes straight to it. New
    connections are refused from the first on, as is usual: another process can serve them.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # signals come to the main thread; whoever runs us elsewhere stops us otherwise
        return
    loop = asyncio.get_running_loop()
    tasks: set[asyncio.Task[None]] = set()
    servers = {number: signal.getsignal(number) for number in STOP_SIGNALS}

    async def stop(number: int) -> None:
        server = getattr(servers[signal.Signals(number)], "__self__", None)
        if isinstance(server, uvicorn.Server):
            _stop_accepting(server)
        await graphql_server.stop()
        _forward_signal(servers[signal.Signals(number)], number, None)

    def on_signal(number: int, frame: FrameType | None) -> None:
        if graphql_server.stopping.is_set() or tasks:
            _forward_signal(servers[signal.Signals(number)], number, frame)
        else:
            loop.call_soon_threadsafe(lambda: tasks.add(loop.create_task(stop(number))))

    for number in servers:
        signal.signal(number, on_signal)
    try:
        yield
    finally:
        for number, server in servers.items():
            signal.signal(number, server)


def _stop_accepting(server: uvicorn.Server) -> None:
    """Take no connection any more, and tell those that are there that they have to end."""
    for listener in server.servers:
        listener.close()
    for connection in list(server.server_state.connections):
        if isinstance(connection, websockets.StrictWebSocketProtocol):
            connection.shorten_close()
        else:
            connection.shutdown()


def _forward_signal(handler: Any, number: int, frame: FrameType | None) -> None:
    if callable(handler):
        handler(number, frame)
