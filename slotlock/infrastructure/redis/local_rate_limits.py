"""The rate limits of `rate_limits` inside one process, for when Redis is unavailable."""

import math
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from slotlock.infrastructure.redis.rate_limits import ChargeMode, RateCharge, RateLimit

# Some 300 bytes each. The least recently used one is dropped first.
MAX_COUNTERS = 100_000


@dataclass(slots=True)
class _Counter:
    start_ms: float
    current: int = 0
    previous: int = 0

    def advance(self, now_ms: float, window_ms: int) -> float:
        """Move on to the window that contains `now_ms`. Returns how many ms of it are left."""
        elapsed_ms = now_ms % window_ms
        age_ms = now_ms - elapsed_ms - self.start_ms
        if age_ms >= window_ms:
            self.previous = self.current if age_ms < 2 * window_ms else 0
            self.current, self.start_ms = 0, now_ms - elapsed_ms
        return window_ms - elapsed_ms


class InProcessRateLimiter:
    """Counts the charges of this process alone, by the rules of `RateLimiter`."""

    def __init__(self) -> None:
        self._counters: OrderedDict[tuple[str, str], _Counter] = OrderedDict()

    def charge(self, charges: Sequence[RateCharge], mode: ChargeMode = ChargeMode.CHARGE) -> int:
        """Charge all limits or none. Returns 0, or the ms after which all of it can be charged."""
        now_ms = time.monotonic() * 1000
        waits = [self._wait_ms(*charge, now_ms) for charge in charges]
        if mode is not ChargeMode.REFUND and any(waits):
            return max(waits)
        for subject, limit, amount in charges if mode is not ChargeMode.PEEK else ():
            counter = self._counters[subject, limit.name]
            change = amount if mode is ChargeMode.CHARGE else -amount
            counter.current = max(0, counter.current + change)
        return 0

    def reset(self, subject: str, limit: RateLimit) -> None:
        """Delete the count of a subject."""
        self._counters.pop((subject, limit.name), None)

    def _wait_ms(self, subject: str, limit: RateLimit, amount: int, now_ms: float) -> int:
        window_ms, room = limit.window_s * 1000, max(0, limit.max_count - amount)
        counter = self._counter_for(subject, limit)
        left_ms = counter.advance(now_ms, window_ms)
        if counter.previous * left_ms / window_ms + counter.current <= room:
            return 0
        if counter.current <= room:
            return math.ceil(left_ms - window_ms * (room - counter.current) / counter.previous)
        return math.ceil(left_ms + window_ms - window_ms * room / counter.current)

    def _counter_for(self, subject: str, limit: RateLimit) -> _Counter:
        key = (subject, limit.name)
        counter = self._counters.setdefault(key, _Counter(0.0))
        self._counters.move_to_end(key)
        if len(self._counters) > MAX_COUNTERS:
            self._counters.popitem(last=False)
        return counter
