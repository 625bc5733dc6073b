"""The counts of `rate_limits` inside one process, for what must not go uncounted without Redis."""

import math
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from slotlock.infrastructure.redis.rate_limits import ChargeMode, RateCharge, RateLimit

# What was not counted for longest is forgotten first; some 300 bytes each.
MAX_COUNTS = 100_000


@dataclass(slots=True)
class _Count:
    start_ms: float
    count: int = 0
    previous: int = 0

    def slide(self, now_ms: float, window_ms: int) -> float:
        """Go on to the window of now; how much of it is left, in ms."""
        passed = now_ms % window_ms
        age = now_ms - passed - self.start_ms
        if age >= window_ms:
            self.previous = self.count if age < 2 * window_ms else 0
            self.count, self.start_ms = 0, now_ms - passed
        return window_ms - passed


class InProcessRateLimiter:
    """The counts of this process alone, by the same rules."""

    def __init__(self) -> None:
        self._counts: OrderedDict[tuple[str, str], _Count] = OrderedDict()

    def charge(self, charges: Sequence[RateCharge], mode: ChargeMode = ChargeMode.CHARGE) -> int:
        """As `RateLimits.ask`."""
        now_ms = time.monotonic() * 1000
        waits = [self._wait_ms(*want, now_ms) for want in charges]
        if mode is not ChargeMode.REFUND and any(waits):
            return max(waits)
        for subject, limit, wanted in charges if mode is not ChargeMode.PEEK else ():
            kept = self._counts[subject, limit.name]
            kept.count = max(0, kept.count + (wanted if mode is ChargeMode.CHARGE else -wanted))
        return 0

    def reset(self, subject: str, limit: RateLimit) -> None:
        """Begin to count anew."""
        self._counts.pop((subject, limit.name), None)

    def _wait_ms(self, subject: str, limit: RateLimit, amount: int, now_ms: float) -> int:
        window_ms, room = limit.window_s * 1000, max(0, limit.max_count - amount)
        kept = self._count_for(subject, limit)
        left_ms = kept.slide(now_ms, window_ms)
        if kept.previous * left_ms / window_ms + kept.count <= room:
            return 0
        if kept.count <= room:
            return math.ceil(left_ms - window_ms * (room - kept.count) / kept.previous)
        return math.ceil(left_ms + window_ms - window_ms * room / kept.count)

    def _count_for(self, subject: str, limit: RateLimit) -> _Count:
        key = (subject, limit.name)
        kept = self._counts.setdefault(key, _Count(0.0))
        self._counts.move_to_end(key)
        if len(self._counts) > MAX_COUNTS:
            self._counts.popitem(last=False)
        return kept
