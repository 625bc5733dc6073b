"""What Redis does for the locks, each in one step: give, tend the line, renew, hand on.

Keys of a slot, all under its hash tag, and in this order the KEYS of each script:

    slotlock:{slot}:lock    "<token>:<fence>" of who holds it, with a time to live
    slotlock:{slot}:line    the tokens of who waits, sorted by their places
    slotlock:{slot}:beats   when each office was last heard of, in microseconds

An office is a process with its locks. A token begins with the 16 characters that name its office,
so that whoever hands the lock on knows whom to wake. Every script but RENEW answers with the lock
as it leaves it, or nil. TIME is Redis's own, so that the offices' clocks do not matter.
"""

from slotlock.domain.booking.booking import SlotId

INSTANCE_ID_CHARS = 16
# A lock handed to a waiter lasts only so long until its office says that it heard. An office that
# was silent for as long is passed over: when the lock of one who died before it heard runs out, all
# of that office's other waiters are known to be dead. Both must be more than a beat.
GRANT_TTL_MS = 1_500
DEAD_AFTER_US = GRANT_TTL_MS * 1_000
HEARTBEAT_S = 0.5
# Of the line and the beats: they outlive whoever waits, but not by much.
QUEUE_TTL_MS = 10_000

# `..` would round a number to 14 digits: microseconds need format.
# After a FLUSHALL, the time still is more than any fence given before.
_GRANT_LOCK = """
local function micros()
  local time = redis.call('time')
  return time[1] * 1000000 + time[2]
end
local function give(token, ms, seen)
  local lock = token .. ':' .. string.format('%.0f', math.max(micros(), seen + 1))
  redis.call('set', KEYS[1], lock, 'PX', ms)
  return lock
end
"""

# An office that hands on to itself reads it in the answer; only others are woken by a message.
_GRANT_NEXT = (
    _GRANT_LOCK
    + f"""
local function hand_on(office, seen)
  local first = redis.call('zpopmin', KEYS[2])[1]
  if not first then return false end
  local lock = false
  while first and not lock do
    local theirs = string.sub(first, 1, {INSTANCE_ID_CHARS})
    local beat = redis.call('hget', KEYS[3], theirs)
    if beat and micros() - beat < {DEAD_AFTER_US} then
      lock = give(first, {GRANT_TTL_MS}, seen)
      if theirs ~= office then
        redis.call('publish', 'slotlock:wake:' .. theirs, KEYS[1] .. ' ' .. lock)
      end
    else
      first = redis.call('zpopmin', KEYS[2])[1]
    end
  end
  if redis.call('exists', KEYS[2]) == 0 then redis.call('del', KEYS[3]) end
  return lock
end
"""
)

_ENQUEUE = f"""
local function stand(token)
  local last = redis.call('zrange', KEYS[2], -1, -1, 'withscores')[2] or 0
  redis.call('zadd', KEYS[2], last + 1, token)
end
local function beat(office)
  redis.call('hset', KEYS[3], office, micros())
  redis.call('pexpire', KEYS[2], {QUEUE_TTL_MS})
  redis.call('pexpire', KEYS[3], {QUEUE_TTL_MS})
end
"""

# ARGV: token, ms to live, highest fence seen, 1 to wait in line.
# A lock that ran out belongs to the first in line, not to the newcomer.
ACQUIRE = (
    _GRANT_NEXT
    + _ENQUEUE
    + f"""
local office = string.sub(ARGV[1], 1, {INSTANCE_ID_CHARS})
local lock = redis.call('get', KEYS[1])
if not lock and redis.call('exists', KEYS[2]) == 1 then lock = hand_on(office, ARGV[3]) end
if not lock then return give(ARGV[1], ARGV[2], ARGV[3]) end
if ARGV[4] == '1' then
  stand(ARGV[1])
  beat(office)
end
return lock
"""
)

# ARGV: office, highest fence seen, the tokens of all who wait in it. Those whom a FLUSHALL or a
# long silence of the office removed stand in line again. Answers also how long the lock lasts.
KEEP_ALIVE = (
    _GRANT_NEXT
    + _ENQUEUE
    + """
local lock = redis.call('get', KEYS[1])
for n = 3, #ARGV do
  local holds = lock and string.sub(lock, 1, #ARGV[n]) == ARGV[n]
  if not holds and not redis.call('zscore', KEYS[2], ARGV[n]) then stand(ARGV[n]) end
end
beat(ARGV[1])
if not lock then lock = hand_on(ARGV[1], ARGV[2]) end
return {lock, redis.call('pttl', KEYS[1])}
"""
)

# ARGV: token, ms to live. Answers whether the lock still was the token's.
RENEW = """
local lock = redis.call('get', KEYS[1])
if not lock or string.sub(lock, 1, #ARGV[1]) ~= ARGV[1] then return 0 end
return redis.call('pexpire', KEYS[1], ARGV[2])
"""

# ARGV: token, highest fence seen, then channels and messages to publish in the same round trip.
# The lock may have run out and be another's by now (D1's plain DEL frees it). One who leaves need
# not know whether it still waits or was just given the lock.
RELEASE = (
    _GRANT_NEXT
    + f"""
local lock = redis.call('get', KEYS[1])
if lock and string.sub(lock, 1, #ARGV[1]) == ARGV[1] then
  lock = hand_on(string.sub(ARGV[1], 1, {INSTANCE_ID_CHARS}), ARGV[2])
  if not lock then redis.call('del', KEYS[1]) end
elseif redis.call('zrem', KEYS[2], ARGV[1]) == 1 and redis.call('exists', KEYS[2]) == 0 then
  redis.call('del', KEYS[3])
end
for n = 3, #ARGV, 2 do redis.call('publish', ARGV[n], ARGV[n + 1]) end
return lock
"""
)


def keys(slot_id: SlotId) -> tuple[str, str, str]:
    """The keys of a slot's lock. Braces: on a Redis Cluster they lie on one node."""
    tag = f"slotlock:{{{slot_id}}}:"
    return tag + "lock", tag + "line", tag + "beats"


def wake_channel(instance_id: str) -> str:
    """Where an office hears that a lock was handed to it."""
    return f"slotlock:wake:{instance_id}"


def parse_wakeup(message: bytes) -> tuple[SlotId, bytes]:
    """What such a message says."""
    key, lock = message.split(b" ")
    return SlotId(key[key.index(b"{") + 1 : key.index(b"}")].decode()), lock


def parse_lock(lock: bytes) -> tuple[str, int]:
    """Who holds this lock; one of an older slotlock has no fence."""
    token, _, fence = lock.decode().partition(":")
    return token, int(fence or 0)
