"""Rate limits with sliding windows, counted in Redis for all processes together.

Two counts approximate a window: the count of the current fixed window, and that of the previous
one. The second is weighted by its share of the last `window_s` seconds. A limit of any size costs
the same few bytes. The value of a key, see `keys.rate_limit_key`, is

    "<start of the current window in ms> <its count> <count of the previous window>"

One script charges several subjects atomically. On a Cluster, each subject may lie on another node:
its hash tag holds its keys together, and it has a script of its own. A request that one subject
rejects is then refunded to the others. Redis may lose all counts, which lets every subject use its
limits again.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from slotlock.infrastructure.batching import Batcher
from slotlock.infrastructure.futures import ignore_unretrieved
from slotlock.infrastructure.redis.auto_pipeline import AutoPipeline
from slotlock.infrastructure.redis.keys import rate_limit_key

# Such a batch blocks Redis for about 0.1 ms.
CHARGE_BATCH_SIZE = 64


class ChargeMode(StrEnum):
    """How to change the counts. `PEEK` only reports whether a charge would succeed."""

    CHARGE = "charge"
    PEEK = "peek"
    REFUND = "refund"


@dataclass(frozen=True, slots=True)
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
