"""`slotlock worker`: a queue worker process, which only serves the admission queue."""

import asyncio
import logging.config

from uvicorn import Config

from slotlock.api.backend import open_backend, run_admission_workers
from slotlock.api.server.graceful_shutdown import STOP_SIGNALS
from slotlock.api.settings.settings import Settings
from slotlock.api.telemetry.logs import logging_config


def run_worker(settings: Settings) -> int:
    """Serve the queue until a stop signal, and return the exit code."""
    logging.config.dictConfig(logging_config(settings.log_format, settings.log_level))
    # The event loop of `slotlock serve`.
    with asyncio.Runner(loop_factory=Config("").get_loop_factory()) as runner:
        runner.run(_serve_queue(settings))
    return 0


async def _serve_queue(settings: Settings) -> None:
    stop = asyncio.Event()
    for number in STOP_SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with open_backend(settings) as backend, run_admission_workers(backend):
        print("serving the admission queue", flush=True)
        await stop.wait()
