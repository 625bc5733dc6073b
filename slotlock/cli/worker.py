"""`slotlock worker`: a process that serves the admission queue and sends mail, and nothing else."""

import asyncio
import logging
import logging.config
import socket
from argparse import Namespace
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext

from starlette.applications import Starlette
from starlette.routing import Route
from uvicorn import Config

from slotlock.api.backend import (
    Backend,
    health_endpoints,
    open_backend,
    run_workers,
)
from slotlock.api.endpoints.health import healthz
from slotlock.api.listener import bind
from slotlock.api.middleware.response_headers import ResponseHeadersMiddleware
from slotlock.api.server.graceful_shutdown import STOP_SIGNALS
from slotlock.api.server.serve import serving
from slotlock.api.settings.settings import Settings, env_name, read_settings
from slotlock.api.telemetry.logs import logging_config
from slotlock.api.telemetry.traces import check_tracing
from slotlock.cli.deployment import check_mongodb, with_deployment

log = logging.getLogger("slotlock")


def run_worker(args: Namespace) -> int:
    """Serve the queue until a stop signal, and return the exit code.

    Raises:
        ListenError: the port for monitoring systems cannot be used.
    """
    settings = with_deployment(read_settings(), "mongo_url", "redis_url")
    check_tracing()
    asyncio.run(check_mongodb(settings))
    logging.config.dictConfig(logging_config(settings.log_format, settings.log_level))
    # The event loop of `slotlock serve`.
    with (
        _bind(settings) as listener,
        asyncio.Runner(loop_factory=Config("").get_loop_factory()) as runner,
    ):
        runner.run(_serve_queue(settings, listener))
    return 0


def _bind(settings: Settings) -> AbstractContextManager[socket.socket | None]:
    port = settings.queue_worker_metrics_port
    if port is None:
        return nullcontext()
    return bind(settings.host, port, env_name("queue_worker_metrics_port"))


async def _serve_queue(settings: Settings, listener: socket.socket | None) -> None:
    stop = asyncio.Event()
    for number in STOP_SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with (
        open_backend(settings) as backend,
        _serve_health(settings, listener, backend),
        run_workers(backend, settings),
    ):
        print(f"serving {_describe_work(settings)}", flush=True)
        await stop.wait()
        log.info("the worker stops when its requests and mails in progress are done")
    log.info("the worker has stopped")


def _describe_work(settings: Settings) -> str:
    """Return what the worker does with these settings."""
    mails = "mails, " if settings.smtp_url else f"no mails without {env_name('smtp_url')}, "
    return f"the admission queue, {mails}webhook calls, draws and reminders"


@asynccontextmanager
async def _serve_health(
    settings: Settings, listener: socket.socket | None, backend: Backend
) -> AsyncIterator[None]:
    """Serve probes and metrics, also while the last requests of the queue are processed."""
    if listener is None:
        yield
        return
    health = health_endpoints(backend)
    routes = [
        Route("/healthz", healthz),
        Route("/readyz", health.readyz),
        Route("/metrics", health.metrics),
    ]
    async with serving(settings, listener, ResponseHeadersMiddleware(Starlette(routes=routes))):
        yield
