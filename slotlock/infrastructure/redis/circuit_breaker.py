"""Stops using Redis when it fails or is slow, until several probes in a row are fast."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from enum import StrEnum
from time import monotonic

from prometheus_client import Gauge

from slotlock.infrastructure.tasks import cancel_and_wait

log = logging.getLogger("slotlock.redis")

# So many slow round trips among the last WINDOW open the circuit. One outlier does not.
SLOW_TO_OPEN, WINDOW = 3, 8
_WINDOW_MASK = (1 << WINDOW) - 1
# So many fast probes in a row close it.
FAST_TO_CLOSE = 3
# A probe is fast if it takes at most this share of the budget, so that the circuit stays closed.
FAST_SHARE = 0.5
FAST_PROBE_INTERVAL_S = 0.1
# Probes that fail are soon repeated. The time between slow ones doubles up to the maximum.
PROBE_INTERVAL_S, MAX_PROBE_INTERVAL_S = 0.5, 8.0
# A circuit that opens again within this time continues with the interval that it had reached.
STABLE_S = 60.0
REDIS_DEGRADED = Gauge(
    "slotlock_redis_degraded",
    "1 while bookings continue without Redis, or messages from Redis do not arrive",
    multiprocess_mode="livemax",
)
_degraded_parts: set[object] = set()


class RedisState(StrEnum):
    """What is known about Redis, from a probe or from the commands of callers."""

    UP = "up"
    SLOW = "slow"
    UNAVAILABLE = "unavailable"


class CircuitBreaker:
    """Opens on a failure or on repeated slowness, and closes by itself when probes are fast.

    `on_open` and `on_close` are called at once; they must not wait.
    """

    def __init__(
        self,
        probe: Callable[[], Awaitable[RedisState]],
        on_open: Callable[[], None],
        on_close: Callable[[], None],
    ) -> None:
        self._probe = probe
        self._on_open = on_open
        self._on_close = on_close
        self._probing: asyncio.Task[None] | None = None
        self._stopped = False
        self._recent_slow = 0  # one bit for each of the last round trips, 1 if it was slow
        self._interval_s = PROBE_INTERVAL_S
        self._closed_at = float("-inf")
        self.state = RedisState.UP
        set_degraded(self, degraded=False)

    @property
    def is_open(self) -> bool:
        """Whether Redis failed or was slow, and too few probes have been fast since."""
        return self._probing is not None

    def record(self, *, is_slow: bool) -> None:
        """Record a round trip. Open the circuit if too many of the last ones were slow."""
        self._recent_slow = (self._recent_slow << 1 | is_slow) & _WINDOW_MASK
        if is_slow and self._recent_slow.bit_count() >= SLOW_TO_OPEN:
            self._open(
                RedisState.SLOW, f"{SLOW_TO_OPEN} of {WINDOW} round trips exceeded the budget"
            )

    def trip(self, error: Exception) -> None:
        """Open the circuit because of a failure, unless it is open already."""
        self._open(RedisState.UNAVAILABLE, str(error))

    def _open(self, state: RedisState, reason: str) -> None:
        if self.is_open or self._stopped:
            return
        log.warning(
            "Redis is %s (%s): bookings continue without locks, the admission queue is paused",
            state,
            reason,
        )
        if monotonic() - self._closed_at > STABLE_S:
            self._interval_s = PROBE_INTERVAL_S
        self.state, self._recent_slow = state, 0
        set_degraded(self, degraded=True)
        self._probing = asyncio.create_task(self._probe_until_fast())
        self._on_open()

    async def stop(self) -> None:
        """Stop probing. The circuit stays as it is."""
        self._stopped = True
        await cancel_and_wait(self._probing)
        set_degraded(self, degraded=False)

    async def _probe_until_fast(self) -> None:
        fast = 0
        while fast < FAST_TO_CLOSE:
            await asyncio.sleep(FAST_PROBE_INTERVAL_S if fast else self._next_interval_s())
            result = RedisState.UNAVAILABLE
            with contextlib.suppress(Exception):
                result = await self._probe()
            fast = fast + 1 if result is RedisState.UP else 0
            if result is not RedisState.UP:
                self.state = result
        self._probing = None
        self._closed_at = monotonic()
        self.state = RedisState.UP
        set_degraded(self, degraded=False)
        self._on_close()
        log.warning("Redis is available again: locks are back in use")

    def _next_interval_s(self) -> float:
        if self.state is RedisState.UNAVAILABLE:
            return PROBE_INTERVAL_S
        interval_s = self._interval_s
        self._interval_s = min(2 * interval_s, MAX_PROBE_INTERVAL_S)
        return interval_s


def set_degraded(part: object, *, degraded: bool) -> None:
    """Record whether a part of this process goes without Redis."""
    if degraded:
        _degraded_parts.add(part)
    else:
        _degraded_parts.discard(part)
    REDIS_DEGRADED.set(bool(_degraded_parts))
