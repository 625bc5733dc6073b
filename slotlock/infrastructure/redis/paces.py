"""Spreads over time what a subject asks for: each request gets a time of its own, in turn.

The value of a key is the time, in ms by the clock of Redis, at which a subject has used nothing of
its pace (the generic cell rate algorithm, as in ITU-T I.371). Redis may lose it: the subject then
begins again. While Redis is unavailable, a process keeps the times of its own requests.
"""

import time

from slotlock.domain.shared.value_object import value_object
from slotlock.infrastructure.bounded_cache import BoundedCache
from slotlock.infrastructure.redis.auto_pipeline import AutoPipeline, RedisUnavailableError
from slotlock.infrastructure.redis.keys import rate_limit_key

MAX_LOCAL_SUBJECTS = 100_000
MAX_LOCAL_CHARACTERS = 10_000_000

# KEYS: of the subject. ARGV: the interval, the burst and the longest delay of its pace, and whether
# to take the time. Returns after how many ms the next request is served.
RESERVE_SCRIPT = """
local time = redis.call('time')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local unused_at = math.max(tonumber(redis.call('get', KEYS[1]) or 0), now)
local delay = math.max(unused_at - now - (ARGV[2] - 1) * ARGV[1], 0)
if ARGV[4] == '1' and delay <= tonumber(ARGV[3]) then
  unused_at = unused_at + ARGV[1]
  redis.call('set', KEYS[1], string.format('%.0f', unused_at), 'PX', unused_at - now)
end
return delay
"""


@value_object
class Pace:
    """`burst` requests at once, one more after each interval, and none after `max_delay_ms`."""

    name: str
    interval_ms: int
    burst: int
    max_delay_ms: int


class Paces:
    """The next times of all subjects, in Redis."""

    def __init__(self, pipeline: AutoPipeline) -> None:
        self._pipeline = pipeline
        self._local = BoundedCache[float](MAX_LOCAL_SUBJECTS, MAX_LOCAL_CHARACTERS)

    async def reserve(self, subject: str, pace: Pace, *, is_taken: bool = True) -> int:
        """Return after how many ms the next request of a subject is served, and take this time.

        Beyond the longest delay of the pace, no time is taken, nor if `is_taken` is false.
        """
        key = rate_limit_key(subject, pace.name)
        numbers = pace.interval_ms, pace.burst, pace.max_delay_ms, int(is_taken)
        try:
            return int(await self._pipeline.send("EVAL", RESERVE_SCRIPT, 1, key, *numbers))
        except RedisUnavailableError:
            return self._reserve_locally(key, pace, is_taken=is_taken)

    def _reserve_locally(self, key: str, pace: Pace, *, is_taken: bool) -> int:
        now = time.monotonic() * 1000
        unused_at = max(self._local.get(key, 0.0), now)
        delay = max(unused_at - now - (pace.burst - 1) * pace.interval_ms, 0.0)
        if is_taken and delay <= pace.max_delay_ms:
            self._local.put(key, unused_at + pace.interval_ms)
        return int(delay)
