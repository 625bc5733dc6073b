"""Locks per second while Redis is slow or frozen: `python -m bench.slow_redis`.

16 callers acquire and release locks of 100 slots, through a proxy that delays each reply of Redis.
There is no MongoDB and no HTTP, so the figures are not requests per second. Each row starts with a
healthy Redis; the delay begins with the measurement. It shows the longest acquisition, too.
"""

import asyncio
import random
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

from bench.delay_proxy import DelayProxy, delay_proxy
from bench.machine import machine_summary
from slotlock.devserver.embedded import embedded_servers
from slotlock.infrastructure.redis.auto_pipeline import AutoPipeline
from slotlock.infrastructure.redis.client import redis_client
from slotlock.infrastructure.redis.locks.locks import Locks

DELAYS_MS = (0, 50, 300, 700, 950, 1500)
CALLERS, SLOTS, SECONDS = 16, 100, 5.0


async def measure(proxy: DelayProxy, delay_ms: int | None) -> tuple[int, float]:
    """Return the number of locks and the seconds of the longest acquisition.

    None instead of a delay freezes Redis.
    """
    pipeline = AutoPipeline(redis_client(proxy.url))
    locks = Locks(pipeline, record_metrics=False)
    await locks.start()
    loop, count, longest_s = asyncio.get_running_loop(), 0, 0.0

    async def call(deadline: float) -> None:
        nonlocal count, longest_s
        while (start := loop.time()) < deadline:
            lease = await locks.acquire(f"slot-{random.randrange(SLOTS)}", wait_s=30)
            longest_s = max(longest_s, loop.time() - start)
            await asyncio.sleep(0.001)
            if lease is not None:
                await locks.release(lease)
                count += 1

    await call(loop.time() + 0.2)
    count, longest_s = 0, 0.0
    if delay_ms is None:
        proxy.freeze()
    else:
        proxy.delay_s = delay_ms / 1000
    await asyncio.gather(*(call(loop.time() + SECONDS) for _ in range(CALLERS)))
    proxy.delay_s = 0
    proxy.thaw()
    await locks.stop()
    await pipeline.close()
    return count, longest_s


async def print_all(redis_port: int) -> None:
    """Measure and print every delay."""
    print(f"{'round trip':>12} {'locks/s':>9} {'longest, s':>11}", flush=True)
    for delay_ms in (*DELAYS_MS, None):
        async with delay_proxy(redis_port) as proxy:
            count, longest_s = await measure(proxy, delay_ms)
        label = "frozen" if delay_ms is None else f"{delay_ms} ms"
        print(f"{label:>12} {count / SECONDS:9.0f} {longest_s:11.2f}", flush=True)


def main() -> None:
    """Start a Redis and measure."""
    print(machine_summary())
    with (
        tempfile.TemporaryDirectory(prefix="slotlock-slow-redis-") as folder,
        embedded_servers(Path(folder)) as servers,
    ):
        asyncio.run(print_all(urlsplit(servers.redis_url).port or 6379))


if __name__ == "__main__":
    main()
