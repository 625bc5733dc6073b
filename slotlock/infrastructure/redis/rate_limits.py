"""How often somebody may do something: counted in Redis, for all processes together.

A sliding window of two buckets: what was counted in this window and, in proportion to how much of
it lies within the last `window_s` still, in the one before. It takes the same few bytes for every
limit, and is off only as far as the window before was uneven.

    slotlock:{rate}:<subject>:<limit>    "<start of the window in ms> <count> <count before>"

All have one hash tag: what many ask at once is one command, and what an operation costs its person
and its address is counted in one step. A Cluster has them on one node. Redis may lose all of it:
then somebody may do as much again, once.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from slotlock.infrastructure.batching import Batcher
from slotlock.infrastructure.redis.auto_pipeline import AutoPipeline

# Redis does nothing else meanwhile: some 0.1 ms.
CHARGE_BATCH_SIZE = 64


class ChargeMode(StrEnum):
    """What to do with the counts: to look is to be told when there is room for as much."""

    CHARGE = "add"
    PEEK = "look"
    REFUND = "give back"


@dataclass(frozen=True, slots=True)
class RateLimit:
    """At most so many within the last `window_s` seconds; the name is part of the key."""

    name: str
    max_count: int
    window_s: int = 60


# Of a subject, by a limit, so many.
RateCharge = tuple[str, RateLimit, int]

# KEYS: of each who asks, one or more. ARGV: for each key most in a window, ms of a window, how many
# are wanted; then for each who asks a verb and their number of keys. Answers for each after how
# many ms they can have all that they want; 0: now. What is refused is not counted, so whoever asks
# too often is let in as soon as anybody would be. More than the limit is let in alone.
CHARGE_SCRIPT = f"""
local time = redis.call('time')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local values, counts, waits, first = redis.call('mget', unpack(KEYS)), {{}}, {{}}, 1
for k, key in ipairs(KEYS) do
  local ms = tonumber(ARGV[3*k-1])
  local start, count, before = string.match(values[k] or '0 0 0', '(%d+) (%d+) (%d+)')
  local age = now - now % ms - start
  if age >= 2 * ms then count, before = 0, 0 elseif age >= ms then count, before = 0, count end
  counts[key] = counts[key] or {{now = tonumber(count), before = tonumber(before), ms = ms}}
end
local function wait(c, room)
  local left = c.ms - now % c.ms
  if c.before * left / c.ms + c.now <= room then return 0 end
  if c.now <= room then return math.ceil(left - c.ms * (room - c.now) / c.before) end
  return math.ceil(left + c.ms - c.ms * room / c.now)
end
for a = 3 * #KEYS + 1, #ARGV, 2 do
  local verb, last, longest = ARGV[a], first + ARGV[a+1] - 1, 0
  for k = first, verb == '{ChargeMode.REFUND}' and 0 or last do
    longest = math.max(longest, wait(counts[KEYS[k]], math.max(0, ARGV[3*k-2] - ARGV[3*k])))
  end
  for k = first, (longest > 0 or verb == '{ChargeMode.PEEK}') and 0 or last do
    local c = counts[KEYS[k]]
    c.now = math.max(0, c.now + (verb == '{ChargeMode.CHARGE}' and 1 or -1) * ARGV[3*k])
    c.changed = true
  end
  waits[#waits + 1] = longest
  first = last + 1
end
for key, c in pairs(counts) do
  if c.changed and c.now == 0 and c.before == 0 then
    redis.call('del', key)
  elseif c.changed then
    local value = string.format('%.0f %.0f %.0f', now - now % c.ms, c.now, c.before)
    redis.call('set', key, value, 'PX', 2 * c.ms)
  end
end
return waits
"""

_ChargeItem = tuple[Sequence[RateCharge], ChargeMode]


class RateLimiter:
    """The counts of all subjects."""

    def __init__(self, pipeline: AutoPipeline) -> None:
        self._pipeline = pipeline
        self._batcher = Batcher(self._charge_batch, CHARGE_BATCH_SIZE)

    def charge(
        self, charges: Sequence[RateCharge], mode: ChargeMode = ChargeMode.CHARGE
    ) -> asyncio.Future[int]:
        """After how many ms all that is wanted can be had; 0: now, and it is counted.

        It is done whether or not the answer is awaited. Errors: RedisAwayError.
        """
        answer = self._batcher.submit_nowait((charges, mode))
        answer.add_done_callback(_mark_error_retrieved)
        return answer

    async def _charge_batch(self, items: Sequence[_ChargeItem]) -> list[int]:
        all_wants = [want for wants, _ in items for want in wants]
        keys = [rate_limit_key(subject, limit) for subject, limit, _ in all_wants]
        arguments: list[str | int] = []
        for _, limit, wanted in all_wants:
            arguments += (limit.max_count, limit.window_s * 1000, wanted)
        for wants, verb in items:
            arguments += (verb.value, len(wants))
        waits: list[int] = await self._pipeline.send(
            "EVAL", CHARGE_SCRIPT, len(keys), *keys, *arguments
        )
        return waits

    def reset(self, subject: str, limit: RateLimit) -> None:
        """Begin to count anew; not waited for."""
        self._pipeline.send("DEL", rate_limit_key(subject, limit))


def rate_limit_key(subject: str, limit: RateLimit) -> str:
    """The key of a count."""
    return f"slotlock:{{rate}}:{subject}:{limit.name}"


def _mark_error_retrieved(answer: asyncio.Future[int]) -> None:
    # An answer nobody awaits (of what is given back) must not warn when it fails.
    if not answer.cancelled():
        answer.exception()
