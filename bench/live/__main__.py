"""`python -m bench.live`: what one change costs others when thousands watch its slot.

One process of slotlock serves the watchers of one slot, over WebSockets and then over event
streams. Bookings in that slot follow each other; each waits until the one before has reached every
watcher. Meanwhile another client books in other slots. At the end each watcher watches a slot of
its own and nothing changes, which shows what an idle process and its mongod cost.
"""

import argparse
import asyncio
import multiprocessing
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from multiprocessing.connection import Connection
from statistics import median
from typing import Any
from urllib.parse import urlsplit

from bench.comparison.cpu import CpuSample, CpuTime
from bench.comparison.servers import BenchmarkServers, running_servers
from bench.comparison.targets import slotlock_target
from bench.comparison.targets.apps import TargetApp, running
from bench.comparison.targets.slots import SLOTLOCK_SHAPE, SlotRange, TargetSlots
from bench.live.clients import Booking, Delivery, Watch, book, book_elsewhere, watch_slots
from bench.machine import load_warning, machine_summary

TRANSPORTS = ("ws", "sse")
CHANGES, WARM_UP_CHANGES, PAUSE_S = 20, 2, 0.3
PLACES = 1000
WATCHED = {"ws": 0, "sse": 1}
FIRST_ELSEWHERE, ELSEWHERE = 10_000, 20_000
IDLE_S = 10.0
SETTINGS = {
    **slotlock_target.RATE_LIMITS_OFF,
    "SLOTLOCK_MAX_SOCKETS": "20000",
    "SLOTLOCK_STREAMS_PER_ADDRESS": "19999",
}
SPAWN = multiprocessing.get_context("spawn")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line for each transport, and one for the idle process."""
    parser = argparse.ArgumentParser(prog="python -m bench.live", description=__doc__)
    parser.add_argument("--watchers", type=int, default=4000)
    parser.add_argument("--transports", nargs="*", choices=TRANSPORTS, default=TRANSPORTS)
    parser.add_argument("--no-idle", action="store_true", help="leave out the idle process")
    args = parser.parse_args(arguments)
    if not 1 <= args.watchers <= FIRST_ELSEWHERE:
        parser.error(f"--watchers takes 1 to {FIRST_ELSEWHERE}")
    print(machine_summary())
    if warning := load_warning():
        print(warning)
    first_day = datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)
    with running_servers() as servers:
        slots = TargetSlots(
            servers.client, slotlock_target.DATABASE_NAME, SLOTLOCK_SHAPE, first_day
        )
        slots.seed(SlotRange(0, FIRST_ELSEWHERE, PLACES))
        slots.seed(SlotRange(FIRST_ELSEWHERE, len(TRANSPORTS) * ELSEWHERE))
        tokens = slotlock_target.tokens(servers.embedded, WARM_UP_CHANGES + CHANGES)
        for transport in args.transports:
            with _app(servers) as app:
                _measure_changes(app, transport, args.watchers, tokens)
        if not args.no_idle:
            with _app(servers) as app:
                _measure_idle(app, servers, args.watchers)
    return 0


@contextmanager
def _app(servers: BenchmarkServers) -> Iterator[TargetApp]:
    command = slotlock_target.command(servers.embedded, 1, SETTINGS)
    with running("slotlock", command, servers.folder) as app:
        yield app


@contextmanager
def _client(target: Any, *arguments: object) -> Iterator[Connection]:
    """Run a client in a process of its own; yield the pipe to it."""
    pipe, other_end = SPAWN.Pipe()
    process = SPAWN.Process(target=target, args=(other_end, *arguments), daemon=True)
    process.start()
    other_end.close()
    try:
        yield pipe
    finally:
        process.kill()
        process.join()


def _measure_changes(app: TargetApp, transport: str, count: int, tokens: list[str]) -> None:
    port = urlsplit(app.url).port or 80
    slot_id = _slot_id(WATCHED[transport])
    first = FIRST_ELSEWHERE + WATCHED[transport] * ELSEWHERE
    elsewhere = tuple(map(_slot_id, range(first, first + ELSEWHERE)))
    with (
        _client(watch_slots, Watch(port, transport, (slot_id,), count)) as watchers,
        _client(book_elsewhere, port, tokens, elsewhere) as others,
    ):
        watchers.recv()
        cpu_before = sum(app.cpu_seconds().values())
        changes = asyncio.run(_change(watchers, port, slot_id, count, tokens))
        cpu_s = sum(app.cpu_seconds().values()) - cpu_before
        others.send(None)
        bookings: list[Booking] = others.recv()
    spread = [delivery.last - delivery.first for _, delivery in changes]
    during, between = _split(bookings, changes)
    gaps = _gaps_during(bookings, changes)
    print(
        f"{transport:3} {count} watchers, {len(changes)} changes: first to last "
        f"{_ms(median(spread))} (worst {_ms(max(spread))}), "
        f"request to last {_ms(median(d.last - start for start, d in changes))}\n"
        f"    bookings elsewhere during a change: {len(during)}, p50 {_ms(_quantile(during, 0.5))}"
        f" p99 {_ms(_quantile(during, 0.99))} worst {_ms(max(during, default=0))}, "
        f"longest gap {_ms(max(gaps, default=0))}\n"
        f"    between changes: {len(between)}, p50 {_ms(_quantile(between, 0.5))} "
        f"p99 {_ms(_quantile(between, 0.99))} worst {_ms(max(between, default=0))}; "
        f"CPU of the app {cpu_s:.1f} s in all",
        flush=True,
    )


async def _change(
    watchers: Connection, port: int, slot_id: str, count: int, tokens: list[str]
) -> list[tuple[float, Delivery]]:
    """Book in the watched slot; return when each booking began and was delivered."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    changes = []
    for number, token in enumerate(tokens):
        await asyncio.sleep(PAUSE_S)
        watchers.send((PLACES - number - 1, count))
        await asyncio.to_thread(watchers.recv)
        start = time.monotonic()
        await book(reader, writer, slot_id, token)
        delivery: Delivery = await asyncio.to_thread(watchers.recv)
        changes.append((start, delivery))
    writer.close()
    return changes[WARM_UP_CHANGES:]


def _split(
    bookings: Sequence[Booking], changes: Sequence[tuple[float, Delivery]]
) -> tuple[list[float], list[float]]:
    """Return the seconds of the bookings during a change, and of those between two changes."""
    during, between = list[float](), list[float]()
    begin, end = changes[0][0], changes[-1][1].last
    for booking in bookings:
        if any(booking.end > start and booking.start < d.last for start, d in changes):
            during.append(booking.end - booking.start)
        elif begin < booking.start < end:
            between.append(booking.end - booking.start)
    return during, between


def _gaps_during(
    bookings: Sequence[Booking], changes: Sequence[tuple[float, Delivery]]
) -> list[float]:
    """Return the seconds between bookings that follow each other while a state is delivered."""
    ends = sorted(booking.end for booking in bookings)
    return [
        after - before
        for before, after in pairwise(ends)
        if any(after > start and before < d.last for start, d in changes)
    ]


def _measure_idle(app: TargetApp, servers: BenchmarkServers, count: int) -> None:
    slot_ids = tuple(map(_slot_id, range(count)))
    watch = Watch(urlsplit(app.url).port or 80, "ws", slot_ids, count)
    with _client(watch_slots, watch) as watchers:
        watchers.recv()
        time.sleep(2.0)  # the first comparison of all slots
        before, documents = CpuSample.take(app, servers.pids), _documents(servers)
        time.sleep(IDLE_S)
        cpu = CpuTime.between(before, CpuSample.take(app, servers.pids))
        rate = (_documents(servers) - documents) / IDLE_S
    print(
        f"idle, {count} watched slots: app {cpu.app_sum_s / IDLE_S:.1%} of a core, "
        f"mongod {cpu.mongod_s / IDLE_S:.1%}, {rate:.1f} documents/s"
    )


def _documents(servers: BenchmarkServers) -> int:
    status = servers.client.admin.command("serverStatus")
    return int(status["metrics"]["document"]["returned"])


def _slot_id(number: int) -> str:
    return f"slot_{number:024x}"


def _quantile(seconds: Sequence[float], share: float) -> float:
    return sorted(seconds)[int(share * len(seconds))] if seconds else 0.0


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms"


if __name__ == "__main__":
    sys.exit(main())
