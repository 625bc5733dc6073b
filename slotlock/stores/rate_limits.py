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

from slotlock.stores.batches import Batches
from slotlock.stores.redis import RedisLine

# Redis does nothing else meanwhile: some 0.1 ms.
LARGEST_BATCH = 64


class Verb(StrEnum):
    """What to do with the counts: to look is to be told when there is room for as much."""

    ADD = "add"
    LOOK = "look"
    GIVE_BACK = "give back"


@dataclass(frozen=True, slots=True)
class Limit:
    """At most so many within the last `window_s` seconds; the name is part of the key."""

    name: str
    most: int
    window_s: int = 60


# Of a subject, by a limit, so many.
Want = tuple[str, Limit, int]

# KEYS: of each who asks, one or more. ARGV: for each key most in a window, ms of a window, how many
# are wanted; then for each who asks a verb and their number of keys. Answers for each after how
# many ms they can have all that they want; 0: now. What is refused is not counted, so whoever asks
# too often is let in as soon as anybody would be. More than the limit is let in alone.
TAKE = f"""
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
  for k = first, verb == '{Verb.GIVE_BACK}' and 0 or last do
    longest = math.max(longest, wait(counts[KEYS[k]], math.max(0, ARGV[3*k-2] - ARGV[3*k])))
  end
  for k = first, (longest > 0 or verb == '{Verb.LOOK}') and 0 or last do
    local c = counts[KEYS[k]]
    c.now = math.max(0, c.now + (verb == '{Verb.ADD}' and 1 or -1) * ARGV[3*k])
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

_Item = tuple[Sequence[Want], Verb]


class RateLimits:
    """The counts of all subjects."""

    def __init__(self, line: RedisLine) -> None:
        self._line = line
        self._batches = Batches(self._take, LARGEST_BATCH)

    def ask(self, wants: Sequence[Want], verb: Verb = Verb.ADD) -> asyncio.Future[int]:
        """After how many ms all that is wanted can be had; 0: now, and it is counted.

        It is done whether or not the answer is awaited. Errors: RedisAwayError.
        """
        answer = self._batches.begin((wants, verb))
        answer.add_done_callback(_look_at_error)
        return answer

    async def _take(self, items: Sequence[_Item]) -> list[int]:
        all_wants = [want for wants, _ in items for want in wants]
        keys = [key_of(subject, limit) for subject, limit, _ in all_wants]
        arguments: list[str | int] = []
        for _, limit, wanted in all_wants:
            arguments += (limit.most, limit.window_s * 1000, wanted)
        for wants, verb in items:
            arguments += (verb.value, len(wants))
        waits: list[int] = await self._line.send("EVAL", TAKE, len(keys), *keys, *arguments)
        return waits

    def forget(self, subject: str, limit: Limit) -> None:
        """Begin to count anew; not waited for."""
        self._line.send("DEL", key_of(subject, limit))


def key_of(subject: str, limit: Limit) -> str:
    """The key of a count."""
    return f"slotlock:{{rate}}:{subject}:{limit.name}"


def _look_at_error(answer: asyncio.Future[int]) -> None:
    # An answer nobody awaits (of what is given back) must not warn when it fails.
    if not answer.cancelled():
        answer.exception()
