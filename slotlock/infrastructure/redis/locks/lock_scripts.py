"""Lua scripts of the locks, each atomic: acquire, keep waiting, renew, release.

KEYS of each script, for each of its locks, see `keys.lock_keys`:

    lock        "<token>:<fencing token>" of the holder, with a time to live. If it was granted to
                a waiter, ":<us>" follows: how long after the waiter the next one came or, if
                nobody else waited, the grant
    queue       sorted set: the tokens of the waiters by their times of arrival, in microseconds
    heartbeats  hash: when each instance with waiters was last alive, in microseconds

An instance is one `Locks` object of a process. The first 16 characters of a token are the id of its
instance, so that a release knows which instance to wake. Every script but RENEW returns the lock as
it leaves it, or nil. All times are those of Redis (TIME), so other clocks do not matter.
"""

from collections.abc import Sequence

from slotlock.domain.shared.value_object import value_object
from slotlock.infrastructure.redis.auto_pipeline import Command
from slotlock.infrastructure.redis.keys import WAKEUP_PREFIX, all_lock_keys, locked_name

INSTANCE_ID_CHARS = 16
# A lock that is granted to a waiter expires after this time unless its instance renews it. An
# instance without a heartbeat for as long is skipped: when the lock of a dead waiter expires, the
# other waiters of its instance are known to be dead, too. Must exceed the heartbeat interval.
GRANT_TTL_MS = 1_500
DEAD_AFTER_US = GRANT_TTL_MS * 1_000
HEARTBEAT_S = 0.5
# The time to live of the queue and of the heartbeats, in case all waiters die.
QUEUE_TTL_MS = 10_000

# `..` would round a number to 14 digits, so microseconds need string.format.
# After a FLUSHALL, the time is still greater than any fencing token issued before.
_GRANT_LOCK = """
local function now_us()
  local time = redis.call('time')
  return time[1] * 1000000 + time[2]
end
local function grant(lock_key, token, ttl_ms, highest_fencing_token, next_after_us)
  local fencing_token = string.format('%.0f', math.max(now_us(), highest_fencing_token + 1))
  local lock = token .. ':' .. fencing_token
  if next_after_us then lock = lock .. string.format(':%.0f', math.max(next_after_us, 0)) end
  redis.call('set', lock_key, lock, 'PX', ttl_ms)
  return lock
end
"""

# The instance that runs the script reads its own grant in the reply; other instances are woken by
# a message.
_GRANT_NEXT = (
    _GRANT_LOCK
    + f"""
local function grant_next(lock_key, queue_key, heartbeats_key, own_instance, highest_fencing_token)
  local token, arrival_us = unpack(redis.call('zpopmin', queue_key))
  if not token then return false end
  local lock = false
  while token and not lock do
    local instance = string.sub(token, 1, {INSTANCE_ID_CHARS})
    local heartbeat = redis.call('hget', heartbeats_key, instance)
    if heartbeat and now_us() - heartbeat < {DEAD_AFTER_US} then
      local next_us = redis.call('zrange', queue_key, 0, 0, 'withscores')[2] or now_us()
      local next_after_us = next_us - arrival_us
      lock = grant(lock_key, token, {GRANT_TTL_MS}, highest_fencing_token, next_after_us)
      if instance ~= own_instance then
        redis.call('publish', '{WAKEUP_PREFIX}' .. instance, lock_key .. ' ' .. lock)
      end
    else
      token, arrival_us = unpack(redis.call('zpopmin', queue_key))
    end
  end
  if redis.call('exists', queue_key) == 0 then redis.call('del', heartbeats_key) end
  return lock
end
"""
)

_ENQUEUE = f"""
local function enqueue(queue_key, token, waited_us, give_way_us)
  local place = now_us() - waited_us
  if give_way_us > 0 then
    local last = redis.call(
      'zrevrangebyscore', queue_key, place + give_way_us, '-inf', 'withscores', 'limit', 0, 1
    )[2]
    if last then place = math.max(place, last + 1) end
  end
  redis.call('zadd', queue_key, place, token)
end
local function record_heartbeat(queue_key, heartbeats_key, instance)
  redis.call('hset', heartbeats_key, instance, now_us())
  redis.call('pexpire', queue_key, {QUEUE_TTL_MS})
  redis.call('pexpire', heartbeats_key, {QUEUE_TTL_MS})
end
"""

# ARGV: instance, time to live in ms, highest known fencing token, how long the caller has waited in
# us (-1 not to wait in the queues), up to how many us later other waiters came who go first, then
# the token of each lock. Returns a list of locks.
# A lock that expired belongs to the first waiter, not to a new caller.
ACQUIRE = (
    _GRANT_NEXT
    + _ENQUEUE
    + """
local locks = {}
for n = 1, #KEYS / 3 do
  local lock_key, queue_key, heartbeats_key = KEYS[3 * n - 2], KEYS[3 * n - 1], KEYS[3 * n]
  local token = ARGV[5 + n]
  local lock = redis.call('get', lock_key)
  if not lock and redis.call('exists', queue_key) == 1 then
    lock = grant_next(lock_key, queue_key, heartbeats_key, ARGV[1], ARGV[3])
  end
  if not lock then
    lock = grant(lock_key, token, ARGV[2], ARGV[3])
  elseif ARGV[4] ~= '-1' then
    enqueue(queue_key, token, ARGV[4], tonumber(ARGV[5]))
    record_heartbeat(queue_key, heartbeats_key, ARGV[1])
  end
  locks[n] = lock
end
return locks
"""
)

# ARGV: instance, highest known fencing token, the tokens of all its waiters. Waiters that a
# FLUSHALL or a long silence of the instance removed are enqueued again.
# Returns the lock and its remaining time to live in ms.
KEEP_ALIVE = (
    _GRANT_NEXT
    + _ENQUEUE
    + """
local lock = redis.call('get', KEYS[1])
for n = 3, #ARGV do
  local is_holder = lock and string.sub(lock, 1, #ARGV[n]) == ARGV[n]
  if not is_holder and not redis.call('zscore', KEYS[2], ARGV[n]) then
    enqueue(KEYS[2], ARGV[n], 0, 0)
  end
end
record_heartbeat(KEYS[2], KEYS[3], ARGV[1])
if not lock then lock = grant_next(KEYS[1], KEYS[2], KEYS[3], ARGV[1], ARGV[2]) end
return {lock, redis.call('pttl', KEYS[1])}
"""
)

# ARGV: token, time to live in ms. Returns 1 if the token still holds the lock, else 0.
RENEW = """
local lock = redis.call('get', KEYS[1])
if not lock or string.sub(lock, 1, #ARGV[1]) ~= ARGV[1] then return 0 end
return redis.call('pexpire', KEYS[1], ARGV[2])
"""

# ARGV: instance, highest known fencing token, the token of each lock, then channels and messages to
# publish. Returns a list of locks.
# A plain DEL would free the lock of another holder after this one expired. The caller need not
# know whether its token still waits or was just granted the lock.
RELEASE = (
    _GRANT_NEXT
    + """
local locks = {}
for n = 1, #KEYS / 3 do
  local lock_key, queue_key, heartbeats_key = KEYS[3 * n - 2], KEYS[3 * n - 1], KEYS[3 * n]
  local token = ARGV[2 + n]
  local lock = redis.call('get', lock_key)
  if lock and string.sub(lock, 1, #token) == token then
    lock = grant_next(lock_key, queue_key, heartbeats_key, ARGV[1], ARGV[2])
    if not lock then redis.call('del', lock_key) end
  elseif redis.call('zrem', queue_key, token) == 1 and redis.call('exists', queue_key) == 0 then
    redis.call('del', heartbeats_key)
  end
  locks[n] = lock
end
for n = 3 + #KEYS / 3, #ARGV, 2 do redis.call('publish', ARGV[n], ARGV[n + 1]) end
return locks
"""
)


def parse_wakeup(message: bytes) -> tuple[str, bytes]:
    """Return the name of the granted lock and its value. Raises: ValueError."""
    key, lock = message.split(b" ")
    return locked_name(key), lock


@value_object
class LockValue:
    """The token of the holder, and its fencing token.

    `next_after_s` is how many seconds after the waiter who was granted the lock the next one came
    or, if nobody else waited, the grant. It is 0 for a lock that was free.
    """

    token: str
    fencing_token: int
    next_after_s: float = 0.0


def parse_lock(lock: bytes) -> LockValue:
    """Return the parts of the value of a lock."""
    token, *numbers = lock.decode().split(":")
    if not numbers:
        return LockValue(token, 0)
    return LockValue(token, int(numbers[0]), int(numbers[1]) / 1e6 if numbers[1:] else 0.0)


@value_object
class LockRequest:
    """The name of a lock and the token that is to hold it."""

    name: str
    token: str


@value_object
class AcquiredLock:
    """The fencing token of a lock, and whether it was granted to a waiter.

    `next_arrival`: see `RedisLockLease`.
    """

    fencing_token: int
    was_waiting: bool
    next_arrival: float


def parts_per_script(
    requests: Sequence[LockRequest], *, is_cluster: bool
) -> list[Sequence[LockRequest]]:
    """Return the requests in the parts that one script may process.

    On a Cluster, each lock may be on another node.
    """
    if is_cluster:
        return [[request] for request in requests]
    return [requests] if requests else []


def script_command(script: str, requests: Sequence[LockRequest], arguments: Command) -> Command:
    """Return the command that runs a script on these locks."""
    keys = all_lock_keys([request.name for request in requests])
    tokens = [request.token for request in requests]
    return ("EVAL", script, len(keys), *keys, *arguments, *tokens)
