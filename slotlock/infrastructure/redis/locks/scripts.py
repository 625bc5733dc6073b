"""Lua scripts of the locks, each atomic: acquire, keep waiting, renew, release.

KEYS of each script, see `keys.lock_keys`:

    lock        "<token>:<fencing token>" of the holder, with a time to live
    queue       sorted set: the tokens of the waiters, in order of arrival
    heartbeats  hash: when each instance with waiters was last alive, in microseconds

An instance is one `Locks` object of a process. The first 16 characters of a token are the id of its
instance, so that a release knows which instance to wake. Every script but RENEW returns the lock as
it leaves it, or nil. All times are those of Redis (TIME), so other clocks do not matter.
"""

from slotlock.infrastructure.redis.keys import WAKEUP_PREFIX, locked_name

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
local function grant(token, ttl_ms, highest_fencing_token)
  local fencing_token = string.format('%.0f', math.max(now_us(), highest_fencing_token + 1))
  local lock = token .. ':' .. fencing_token
  redis.call('set', KEYS[1], lock, 'PX', ttl_ms)
  return lock
end
"""

# The instance that runs the script reads its own grant in the reply; other instances are woken by
# a message.
_GRANT_NEXT = (
    _GRANT_LOCK
    + f"""
local function grant_next(own_instance, highest_fencing_token)
  local token = redis.call('zpopmin', KEYS[2])[1]
  if not token then return false end
  local lock = false
  while token and not lock do
    local instance = string.sub(token, 1, {INSTANCE_ID_CHARS})
    local heartbeat = redis.call('hget', KEYS[3], instance)
    if heartbeat and now_us() - heartbeat < {DEAD_AFTER_US} then
      lock = grant(token, {GRANT_TTL_MS}, highest_fencing_token)
      if instance ~= own_instance then
        redis.call('publish', '{WAKEUP_PREFIX}' .. instance, KEYS[1] .. ' ' .. lock)
      end
    else
      token = redis.call('zpopmin', KEYS[2])[1]
    end
  end
  if redis.call('exists', KEYS[2]) == 0 then redis.call('del', KEYS[3]) end
  return lock
end
"""
)

_ENQUEUE = f"""
local function enqueue(token)
  local last = redis.call('zrange', KEYS[2], -1, -1, 'withscores')[2] or 0
  redis.call('zadd', KEYS[2], last + 1, token)
end
local function record_heartbeat(instance)
  redis.call('hset', KEYS[3], instance, now_us())
  redis.call('pexpire', KEYS[2], {QUEUE_TTL_MS})
  redis.call('pexpire', KEYS[3], {QUEUE_TTL_MS})
end
"""

# ARGV: token, time to live in ms, highest known fencing token, 1 to wait in the queue.
# A lock that expired belongs to the first waiter, not to a new caller.
ACQUIRE = (
    _GRANT_NEXT
    + _ENQUEUE
    + f"""
local instance = string.sub(ARGV[1], 1, {INSTANCE_ID_CHARS})
local lock = redis.call('get', KEYS[1])
if not lock and redis.call('exists', KEYS[2]) == 1 then lock = grant_next(instance, ARGV[3]) end
if not lock then return grant(ARGV[1], ARGV[2], ARGV[3]) end
if ARGV[4] == '1' then
  enqueue(ARGV[1])
  record_heartbeat(instance)
end
return lock
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
  if not is_holder and not redis.call('zscore', KEYS[2], ARGV[n]) then enqueue(ARGV[n]) end
end
record_heartbeat(ARGV[1])
if not lock then lock = grant_next(ARGV[1], ARGV[2]) end
return {lock, redis.call('pttl', KEYS[1])}
"""
)

# ARGV: token, time to live in ms. Returns 1 if the token still holds the lock, else 0.
RENEW = """
local lock = redis.call('get', KEYS[1])
if not lock or string.sub(lock, 1, #ARGV[1]) ~= ARGV[1] then return 0 end
return redis.call('pexpire', KEYS[1], ARGV[2])
"""

# ARGV: token, highest known fencing token, then channels and messages to publish.
# A plain DEL would free the lock of another holder after this one expired. The caller need not
# know whether its token still waits or was just granted the lock.
RELEASE = (
    _GRANT_NEXT
    + f"""
local lock = redis.call('get', KEYS[1])
if lock and string.sub(lock, 1, #ARGV[1]) == ARGV[1] then
  lock = grant_next(string.sub(ARGV[1], 1, {INSTANCE_ID_CHARS}), ARGV[2])
  if not lock then redis.call('del', KEYS[1]) end
elseif redis.call('zrem', KEYS[2], ARGV[1]) == 1 and redis.call('exists', KEYS[2]) == 0 then
  redis.call('del', KEYS[3])
end
for n = 3, #ARGV, 2 do redis.call('publish', ARGV[n], ARGV[n + 1]) end
return lock
"""
)


def parse_wakeup(message: bytes) -> tuple[str, bytes]:
    """Return the name of the granted lock and its value. Raises: ValueError."""
    key, lock = message.split(b" ")
    return locked_name(key), lock


def parse_lock(lock: bytes) -> tuple[str, int]:
    """Return the token of the holder and the fencing token."""
    token, _, fencing_token = lock.decode().partition(":")
    return token, int(fencing_token or 0)
