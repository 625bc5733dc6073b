"""`slotlock worker`: a process that serves the admission queue and nothing else."""

import asyncio
import logging.config

from uvicorn import Config

from slotlock.api.server import LOGGING, STOP_SIGNALS
from slotlock.api.settings import Settings
from slotlock.api.wiring import clerks, open_office


def run_worker(settings: Settings) -> int:
    """Serve the queue until a signal says stop."""
    logging.config.dictConfig(LOGGING)
    # The same kind of loop as behind `serve`.
    with asyncio.Runner(loop_factory=Config("").get_loop_factory()) as runner:
        runner.run(_work(settings))
    return 0


async def _work(settings: Settings) -> None:
    stop = asyncio.Event()
    for number in STOP_SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with open_office(settings) as office, clerks(office):
        print("serving the admission queue", flush=True)
        await stop.wait()
