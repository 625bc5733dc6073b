"""Stops using Redis after a failure, until a probe succeeds."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

from prometheus_client import Gauge

log = logging.getLogger("slotlock.redis")

REDIS_DEGRADED = Gauge(
    "slotlock_redis_degraded",
    "1 while Redis is unavailable and bookings continue without its locks",
    multiprocess_mode="livemax",
)

PROBE_INTERVAL_S = 0.5


class CircuitBreaker:
    """Opens on the first failure and closes by itself when Redis accepts writes again."""

    def __init__(
        self,
        probe: Callable[[], Awaitable[bool]],
        on_open: Callable[[], Awaitable[None]],
        on_close: Callable[[], None],
    ) -> None:
        self._probe = probe
        self._on_open = on_open
        self._on_close = on_close
        self._probing: asyncio.Task[None] | None = None
        self._stopped = False
        REDIS_DEGRADED.set(0)

    @property
    def is_open(self) -> bool:
        """Whether Redis failed and no probe has succeeded since."""
        return self._probing is not None

    def trip(self, error: Exception) -> None:
        """Open the circuit and begin to probe, unless it is open already."""
        if self.is_open or self._stopped:
            return
        log.warning(
            "Redis is unavailable (%s): bookings continue without locks, "
            "the admission queue is paused",
            error,
        )
        REDIS_DEGRADED.set(1)
        self._probing = asyncio.create_task(self._probe_until_available())

    async def stop(self) -> None:
        """Stop probing. The circuit stays as it is."""
        self._stopped = True
        if self._probing is not None:
            self._probing.cancel()
            await asyncio.wait([self._probing])

    async def _probe_until_available(self) -> None:
        with contextlib.suppress(Exception):
            await self._on_open()
        while not await self._probe():
            await asyncio.sleep(PROBE_INTERVAL_S)
        self._probing = None
        REDIS_DEGRADED.set(0)
        self._on_close()
        log.warning("Redis is available again: locks are back in use")
