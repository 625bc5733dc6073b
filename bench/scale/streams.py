"""`python -m bench.scale.streams`: what the change stream adds to a booking at full rate.

wrk books in slots that nobody watches, by turns without a watcher and with a watcher of another
slot, which opens the change stream of the process. The CPU time per booking is compared within each
round, because the load of a shared machine changes. `--mongod-only` adds readers of the stream that
are no process of slotlock: what each further process costs mongod while Redis is away.
"""

import argparse
import asyncio
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, time, timedelta
from multiprocessing import get_context
from multiprocessing.synchronize import Event

from bench.comparison.cpu import CpuSample, CpuTime
from bench.comparison.load import Requests, drive
from bench.comparison.ratios import Spread
from bench.comparison.servers import BenchmarkServers, running_servers
from bench.comparison.targets import slotlock_target
from bench.comparison.targets.apps import TargetApp, running
from bench.comparison.targets.slots import SLOTLOCK_SHAPE, SlotRange, TargetSlots
from bench.machine import load_warning, machine_summary
from bench.scale.cases import SETTINGS, open_sockets
from slotlock.infrastructure.mongo.changes.feed import ChangeFeed
from slotlock.infrastructure.mongo.changes.stream import ChangeStream
from slotlock.infrastructure.mongo.client import connect

SLOTS, PLACES, USERS = 20_000, 50, 500
ROUNDS, SECONDS, WARM_UP_S = 5, 4, 2
SPAWN = get_context("spawn")

Costs = tuple[float, float, float]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the CPU time per booking of each run, and the ratios."""
    parser = argparse.ArgumentParser(prog="python -m bench.scale.streams", description=__doc__)
    parser.add_argument("--mongod-only", type=int, default=0, metavar="READERS")
    args = parser.parse_args(arguments)
    print(machine_summary())
    if warning := load_warning():
        print(warning)
    first_day = datetime.combine(datetime.now(UTC).date(), time(), UTC) + timedelta(days=1)
    with running_servers() as servers:
        slots = TargetSlots(
            servers.client, slotlock_target.DATABASE_NAME, SLOTLOCK_SHAPE, first_day
        )
        slots.seed(SlotRange(0, SLOTS + 1, PLACES))
        command = slotlock_target.command(servers.embedded, 1, SETTINGS)
        tokens = servers.folder / "tokens"
        users = slotlock_target.tokens(servers.embedded, USERS)
        tokens.write_text("".join(f"{token}\n" for token in users))
        requests = Requests("slotlock", "spread", SLOTS, first_day, tokens)
        with running("slotlock", command, servers.folder) as app:
            drive(app.url, requests, WARM_UP_S)
            rounds = [
                _compare(app, servers, requests, slots, args.mongod_only) for _ in range(ROUNDS)
            ]
    for index, name in enumerate(("app", "mongod")):
        ratios = [watched[index] / alone[index] for alone, watched in rounds]
        print(f"CPU of {name} per booking, with a stream / without: {Spread.of(ratios)}")
    return 0


def _compare(
    app: TargetApp, servers: BenchmarkServers, requests: Requests, slots: TargetSlots, readers: int
) -> tuple[Costs, Costs]:
    alone = _cost(app, servers, requests, slots)
    with ExitStack() as stack:
        if readers:
            stack.enter_context(_reading(servers, readers))
        else:
            stack.enter_context(open_sockets(range(SLOTS, SLOTS + 1), [], app, first_slot=0))
        watched = _cost(app, servers, requests, slots)
    for name, costs in (("without", alone), ("with", watched)):
        print(
            f"{name:8} app {costs[0]:6.0f} us a booking, mongod {costs[1]:6.0f} us, "
            f"{costs[2]:6.0f} bookings/s",
            flush=True,
        )
    return alone, watched


def _cost(
    app: TargetApp, servers: BenchmarkServers, requests: Requests, slots: TargetSlots
) -> Costs:
    slots.free_all()
    drive(app.url, requests, 1)
    before = CpuSample.take(app, servers.pids)
    load = drive(app.url, requests, SECONDS)
    cpu = CpuTime.between(before, CpuSample.take(app, servers.pids))
    bookings = max(load.requests, 1)
    return cpu.app_sum_s / bookings * 1e6, cpu.mongod_s / bookings * 1e6, load.rate


@contextmanager
def _reading(servers: BenchmarkServers, count: int) -> Iterator[None]:
    """Read so many change streams, as so many processes of slotlock with a watcher do."""
    started = SPAWN.Event()
    url = slotlock_target.settings(servers.embedded)["SLOTLOCK_MONGO_URL"]
    process = SPAWN.Process(target=_read_streams, args=(url, count, started), daemon=True)
    process.start()
    try:
        started.wait()
        yield
    finally:
        process.kill()
        process.join()


def _read_streams(url: str, count: int, started: Event) -> None:
    async def read() -> None:
        _, database = connect(url)
        opened = asyncio.Semaphore(0)
        feeds = [ChangeFeed(ChangeStream(database)) for _ in range(count)]
        for feed in feeds:
            feed.listen(lambda _: None, opened.release)
            feed.add_watcher()
        for _ in feeds:
            await opened.acquire()
        started.set()
        await asyncio.Event().wait()

    asyncio.run(read())


if __name__ == "__main__":
    sys.exit(main())
