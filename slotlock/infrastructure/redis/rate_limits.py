"""Rate limits with sliding windows, counted in Redis for all processes together.

Two counts approximate a window: the count of the current fixed window, and that of the previous
one. The second is weighted by its share of the last `window_s` seconds. A limit of any size costs
the same few bytes. The value of a key, see `keys.rate_limit_key`, is

    "<start of the current window in ms> <its count> <count of the previous window>"

One script charges several subjects atomically. On a Cluster, each subject may lie on another node:
its hash tag holds its keys together, and it has a script of its own. A request that one subject
rejects is then refunded to the others. Redis may lose all counts, which lets every subject use its
limits again. While Redis is unavailable, a process counts by itself, by the same rules.
"""

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from slotlock.domain.shared.value_object import value_object
from slotlock.infrastructure.batching import Batcher
from slotlock.infrastructure.redis.auto_pipeline import AutoPipeline
from slotlock.infrastructure.redis.keys import rate_limit_key
from slotlock.infrastructure.tasks import ignore_unretrieved

# Such a batch blocks Redis for about 0.1 ms.
CHARGE_BATCH_SIZE = 64
# Some 300 bytes each. The least recently used one is dropped first.
MAX_COUNTERS = 100_000


class ChargeMode(StrEnum):
    """How to change the counts. `PEEK` only reports whether a charge would succeed."""

    CHARGE = "charge"
    PEEK = "peek"
    REFUND = "refund"


@value_object
class RateLimit:
    """At most `max_count` within the last `window_s` seconds. The name is part of the key.

    A process may charge up to `max_lease` in advance, see `rate_leases`.
    """

    name: str
    max_count: int
    window_s: int = 60
    max_lease: int = 0


# A subject, its limit and the amount to charge.
RateCharge = tuple[str, RateLimit, int]

# KEYS: of each request, one or more. ARGV: for each key the limit, the window in ms and the amount;
# then for each request its mode and its number of keys. Returns for each request the ms after which
# all of it can be charged; 0 if it was. A request that is rejected is not counted. An amount above
# the limit is accepted if nothing else is counted.
CHARGE_SCRIPT = f"""
local time = redis.call('time')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local values, counters, waits, first = redis.call('mget', unpack(KEYS)), {{}}, {{}}, 1
for k, key in ipairs(KEYS) do
  local window = tonumber(ARGV[3*k-1])
  local start, current, previous = string.match(values[k] or '0 0 0', '(%d+) (%d+) (%d+)')
  local age = now - now % window - start
  if age >= 2 * window then current, previous = 0, 0
  elseif age >= window then current, previous = 0, current end
  counters[key] = counters[key]
    or {{current = tonumber(current), previous = tonumber(previous), window = window}}
end
local function wait_ms(counter, room)
  local left = counter.window - now % counter.window
  if counter.previous * left / counter.window + counter.current <= room then return 0 end
  if counter.current <= room then
    return math.ceil(left - counter.window * (room - counter.current) / counter.previous)
  end
  return math.ceil(left + counter.window - counter.window * room / counter.current)
end
for a = 3 * #KEYS + 1, #ARGV, 2 do
  local mode, last, longest = ARGV[a], first + ARGV[a+1] - 1, 0
  for k = first, mode == '{ChargeMode.REFUND}' and 0 or last do
    longest = math.max(longest, wait_ms(counters[KEYS[k]], math.max(0, ARGV[3*k-2] - ARGV[3*k])))
  end
  for k = first, (longest > 0 or mode == '{ChargeMode.PEEK}') and 0 or last do
    local counter = counters[KEYS[k]]
    local sign = mode == '{ChargeMode.CHARGE}' and 1 or -1
    counter.current = math.max(0, counter.current + sign * ARGV[3*k])
    counter.changed = true
  end
  waits[#waits + 1] = longest
  first = last + 1
end
for key, counter in pairs(counters) do
  if counter.changed and counter.current == 0 and counter.previous == 0 then
    redis.call('del', key)
  elseif counter.changed then
    local start = now - now % counter.window
    local value = string.format('%.0f %.0f %.0f', start, counter.current, counter.previous)
    redis.call('set', key, value, 'PX', 2 * counter.window)
  end
end
return waits
"""

_ChargeItem = tuple[Sequence[RateCharge], ChargeMode]


class RateLimiter:
    """The counts of all subjects, in Redis."""

    def __init__(self, pipeline: AutoPipeline) -> None:
        self._pipeline = pipeline
        self._batcher = Batcher(self._charge_batch, CHARGE_BATCH_SIZE)

    def charge(
        self, charges: Sequence[RateCharge], mode: ChargeMode = ChargeMode.CHARGE
    ) -> asyncio.Future[int]:
        """Charge all limits or none. Returns 0, or the ms after which all of it can be charged.

        The charge is made whether or not the future is awaited. Raises: RedisUnavailableError.
        """
        wait_ms = self._batcher.submit_nowait((charges, mode))
        wait_ms.add_done_callback(ignore_unretrieved)
        return wait_ms

    async def _charge_batch(self, items: Sequence[_ChargeItem]) -> list[int]:
        if self._pipeline.is_cluster:
            return await self._charge_each_subject(items)
        return await self._send(items)

    def _send(self, items: Sequence[_ChargeItem]) -> asyncio.Future[list[int]]:
        all_charges = [charge for charges, _ in items for charge in charges]
        keys = [rate_limit_key(subject, limit.name) for subject, limit, _ in all_charges]
        arguments: list[str | int] = []
        for _, limit, amount in all_charges:
            arguments += (limit.max_count, limit.window_s * 1000, amount)
        for charges, mode in items:
            arguments += (mode.value, len(charges))
        return self._pipeline.send("EVAL", CHARGE_SCRIPT, len(keys), *keys, *arguments)

    async def _charge_each_subject(self, items: Sequence[_ChargeItem]) -> list[int]:
        """Charge each subject with a script. Undo what was charged for a rejected request.

        Until the refund arrives, the other subjects of that request have a little less room.
        """
        parts = parts_by_subject(items)
        replies = [self._send([item for _, item in part]) for part in parts]
        waits, charged = [0] * len(items), list[tuple[int, _ChargeItem]]()
        for part, reply in zip(parts, replies, strict=True):
            for (index, item), wait_ms in zip(part, await reply, strict=True):
                waits[index] = max(waits[index], wait_ms)
                if wait_ms == 0 and item[1] is ChargeMode.CHARGE:
                    charged.append((index, item))
        refunds = [(charges, ChargeMode.REFUND) for n, (charges, _) in charged if waits[n]]
        for refund in parts_by_subject(refunds):
            self._send([item for _, item in refund])
        return waits

    def reset(self, subject: str, limit: RateLimit) -> None:
        """Delete the count of a subject, without waiting."""
        self._pipeline.send("DEL", rate_limit_key(subject, limit.name))


def parts_by_subject(items: Sequence[_ChargeItem]) -> list[list[tuple[int, _ChargeItem]]]:
    """Return for each subject its charges of each item, with the index of the item."""
    parts: dict[str, list[tuple[int, _ChargeItem]]] = {}
    for index, (charges, mode) in enumerate(items):
        own: dict[str, list[RateCharge]] = {}
        for charge in charges:
            own.setdefault(charge[0], []).append(charge)
        for subject, own_charges in own.items():
            parts.setdefault(subject, []).append((index, (own_charges, mode)))
    return list(parts.values())


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
