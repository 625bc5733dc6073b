"""Bookings per second while Redis fails or is slow: `python -m bench.slow_redis`.

32 users book over HTTP at one process of slotlock, each request with an idempotency key, and rate
limits count them. Redis is healthy while they begin; then it is killed, frozen or delayed by a
proxy. A row has the bookings per second since then, the longest time without a confirmed booking,
how many such times exceeded half a second, and how many requests had another response.
"""

import argparse
import asyncio
import json
import os
import random
import signal
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise
from urllib.parse import urlsplit

from bench.comparison.servers import BenchmarkServers, running_servers
from bench.comparison.targets import slotlock_target
from bench.comparison.targets.apps import TargetApp, running
from bench.comparison.targets.slots import SLOTLOCK_SHAPE, SlotRange, TargetSlots
from bench.delay_proxy import DelayProxy, delay_proxy
from bench.live.clients import post, read_response
from bench.machine import load_warning, machine_summary

CALLERS, SLOTS, WARM_UP_S, LONG_GAP_S = 32, 5_000, 2.0, 0.5
DELAYS_MS = (20, 50, 80, 100, 120, 150, 300, 700, 950, 1500)
UNREACHABLE_URL = "redis://127.0.0.1:1/0"
BOOK = (
    "mutation($id: ID!, $key: String!) { bookSlot("
    "input: {slotId: $id, idempotencyKey: $key, waitMs: 5000}) { __typename } }"
)
# Redis counts every user now and then, and nobody reaches the limit.
SETTINGS = {"SLOTLOCK_RATE_WRITES": "20000"}


@dataclass(slots=True)
class Responses:
    """When bookings were confirmed, in seconds of the event loop, and the other responses."""

    booked_at: list[float] = field(default_factory=list)
    others: int = 0

    def figures(self, start: float, end: float) -> str:
        """Return the figures of this period. The first gap begins with the last booking before."""
        during = [at for at in self.booked_at if start <= at < end]
        before = [at for at in self.booked_at if at < start]
        times = [max(before, default=start), *during, end]
        gaps = [after - at for at, after in pairwise(times)]
        long_gaps = sum(gap > LONG_GAP_S for gap in gaps)
        rate = len(during) / (end - start)
        return f"{rate:10.0f} {max(gaps):14.2f} {long_gaps:12} {self.others:15}"


async def book_until(port: int, token: str, end: float, responses: Responses) -> None:
    """Book a place in one slot after another."""
    loop = asyncio.get_running_loop()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for number in random.sample(range(SLOTS), SLOTS):
        if loop.time() > end:
            break
        variables = {"id": f"slot_{number:024x}", "key": f"{time.time_ns()}"}
        body = json.dumps({"query": BOOK, "variables": variables}).encode()
        writer.write(post(body, "application/json", token))
        if b'"Booked"' in await read_response(reader):
            responses.booked_at.append(loop.time())
        else:
            responses.others += 1
    writer.close()


async def measure(
    app: TargetApp, tokens: Sequence[str], seconds: float, fault: Callable[[], object]
) -> str:
    """Let all users book, cause the fault, and return the figures since then."""
    port, responses = urlsplit(app.url).port or 80, Responses()
    start = asyncio.get_running_loop().time() + WARM_UP_S
    end = start + seconds
    async with asyncio.TaskGroup() as callers:
        for token in tokens:
            callers.create_task(book_until(port, token, end, responses))
        await asyncio.sleep(WARM_UP_S)
        fault()
    return responses.figures(start, end)


@asynccontextmanager
async def running_app(servers: BenchmarkServers, redis_url: str) -> AsyncIterator[TargetApp]:
    """Run slotlock with this Redis. Its start must not block the proxy of this process."""
    settings = {**SETTINGS, "SLOTLOCK_REDIS_URL": redis_url}
    command = slotlock_target.command(servers.embedded, 1, settings)
    # /readyz rejects without Redis.
    app = running("slotlock", replace(command, ready_path="/healthz"), servers.folder)
    yield await asyncio.to_thread(app.__enter__)
    await asyncio.to_thread(app.__exit__, None, None, None)


class Table:
    """Measures and prints one row after another."""

    def __init__(self, servers: BenchmarkServers, slots: TargetSlots, seconds: float) -> None:
        self._servers = servers
        self._slots = slots
        self._seconds = seconds
        self._tokens = slotlock_target.tokens(servers.embedded, CALLERS)
        print(f"{'Redis':>16} {'bookings/s':>10} {'longest gap, s':>14} ", end="")
        print(f"{'gaps > 0.5 s':>12} {'other responses':>15}")

    async def add(self, label: str, redis_url: str, fault: Callable[[], object]) -> None:
        """Measure with this fault and print the row."""
        self._slots.free_all()
        async with running_app(self._servers, redis_url) as app:
            figures = await measure(app, self._tokens, self._seconds, fault)
        print(f"{label:>16} {figures}", flush=True)


async def print_all(table: Table, servers: BenchmarkServers) -> None:
    """Measure and print every row. Redis is killed in the last but one."""
    url, valkey = servers.embedded.redis_url, servers.pids.valkey
    await table.add("normal", url, lambda: None)
    for delay_ms in DELAYS_MS:
        async with delay_proxy(urlsplit(url).port or 6379) as proxy:
            await table.add(f"{delay_ms} ms", proxy.url, partial(_delay, proxy, delay_ms))
            proxy.delay_s = 0
    await table.add("frozen", url, partial(os.kill, valkey, signal.SIGSTOP))
    os.kill(valkey, signal.SIGCONT)
    await table.add("killed", url, partial(os.kill, valkey, signal.SIGKILL))
    await table.add("never available", UNREACHABLE_URL, lambda: None)


def _delay(proxy: DelayProxy, delay_ms: int) -> None:
    proxy.delay_s = delay_ms / 1000


def main() -> None:
    """Start the servers and measure."""
    parser = argparse.ArgumentParser(prog="python -m bench.slow_redis", description=__doc__)
    parser.add_argument("--seconds", type=float, default=8.0)
    seconds: float = parser.parse_args().seconds
    print(machine_summary())
    if warning := load_warning():
        print(warning)
    with running_servers() as servers:
        first_day = datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)
        slots = TargetSlots(
            servers.client, slotlock_target.DATABASE_NAME, SLOTLOCK_SHAPE, first_day
        )
        slots.seed(SlotRange(0, SLOTS, CALLERS))
        asyncio.run(print_all(Table(servers, slots, seconds), servers))


if __name__ == "__main__":
    main()
