"""What Redis does for the admission queue, each in one step, and the shape of what it keeps.

Keys of a partition, all under its hash tag, and in this order the KEYS of each script:

    slotlock:{queue:n}:requests   stream: the requests in order of arrival; consumer group `desk`
    slotlock:{queue:n}:tickets    hash: what is known of those who stand in line, see below
    slotlock:{queue:n}:aside      stream: the requests that could not be served, with the reason

Fields of the hash, so that a request is found by its key and by whom it is for:

    k<asked by><key>              "<q or a>:<entry>:<number>:<question>:<ms>" of one queued or aside
    c<slot><user><asked by><hold> the k field of the request that stands in line for the same
    i<slot>, o<slot>              how many came for this slot, and how many of them have left

The number counts those who came for a slot, so that the number less `o` is the place in line. Both
counts begin at the time in ms when the line was empty, so that a number from before Redis lost all
is less than any after it. An entry is deleted when it is answered, so that the length of the stream
is that of the line.
"""

from slotlock.domain.booking.booking import SlotId

CONSUMER_GROUP = "desk"
QUEUE_ADVANCED_PREFIX = "slotlock:moved:"

# What the hash knows of a request whose entry is gone, with its stream alone, is not so.
_LOOKUP = """
local function known(field, slot)
  local found = redis.call('hget', KEYS[2], field)
  if not found then return false end
  local state, id = string.match(found, '^(%a):([^:]+):')
  local stream = state == 'a' and KEYS[3] or KEYS[1]
  if #redis.call('xrange', stream, id, id) == 0 then
    redis.call('hdel', KEYS[2], field)
    return false
  end
  return {found, redis.call('hget', KEYS[2], 'o' .. slot) or '0', field}
end
"""

# ARGV: slot, k field, and for whoever stands in line for the same, c field. Answers as ADD, or nil.
FIND = (
    _LOOKUP
    + """
local found = known(ARGV[2], ARGV[1])
if found or not ARGV[3] then return found end
local same = redis.call('hget', KEYS[2], ARGV[3])
return same and known(same, ARGV[1])
"""
)

_COUNT_ARRIVAL = """
local time = redis.call('time')
local ms = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
local function come(slot)
  local known = redis.call('hexists', KEYS[2], 'i' .. slot) == 1
  if not known or redis.call('xlen', KEYS[1]) == 0 then
    redis.call('hset', KEYS[2], 'i' .. slot, ms, 'o' .. slot, ms)
  end
  return string.format('%.0f', redis.call('hincrby', KEYS[2], 'i' .. slot, 1))
end
"""

# ARGV: k field, c field, question, most in line and aside, slot, then the fields and values of the
# entry. When it came is kept with it: ids go on from the highest, by a clock that was ahead once.
# Answers what is known of the request, how many have left, and under which k field; nil when full.
ENQUEUE = (
    _COUNT_ARRIVAL
    + _LOOKUP
    + """
local before = known(ARGV[1], ARGV[5])
if not before then
  local same = redis.call('hget', KEYS[2], ARGV[2])
  before = same and known(same, ARGV[5])
end
if before then return before end
local kept = redis.call('xlen', KEYS[1]) + redis.call('xlen', KEYS[3])
if kept >= tonumber(ARGV[4]) then return false end
local number = come(ARGV[5])
local fields = {unpack(ARGV, 6)}
fields[#fields + 1], fields[#fields + 2] = 'ms', ms
local id = redis.call('xadd', KEYS[1], '*', unpack(fields))
local ticket = table.concat({'q', id, number, ARGV[3], ms}, ':')
redis.call('hset', KEYS[2], ARGV[1], ticket, ARGV[2], ARGV[1])
return known(ARGV[1], ARGV[5])
"""
)

_REMOVE = f"""
local function leave(id, k, c)
  redis.call('xack', KEYS[1], '{CONSUMER_GROUP}', id)
  if redis.call('xdel', KEYS[1], id) == 0 then return false end
  local known = redis.call('hget', KEYS[2], k)
  if known and string.find(known, ':' .. id .. ':', 1, true) then redis.call('hdel', KEYS[2], k) end
  if redis.call('hget', KEYS[2], c) == k then redis.call('hdel', KEYS[2], c) end
  return true
end
local function move(slot, by)
  local out = redis.call('hincrby', KEYS[2], 'o' .. slot, by)
  local came = redis.call('hget', KEYS[2], 'i' .. slot)
  if not came or tonumber(came) <= out then
    redis.call('hdel', KEYS[2], 'i' .. slot, 'o' .. slot)
  end
  redis.call('publish', '{QUEUE_ADVANCED_PREFIX}' .. slot, string.format('%.0f', out))
end
"""

# ARGV: slot, then for each request its entry, k field and c field.
ACKNOWLEDGE = (
    _REMOVE
    + """
local left = 0
for n = 2, #ARGV, 3 do
  if leave(ARGV[n], ARGV[n + 1], ARGV[n + 2]) then left = left + 1 end
end
if left > 0 then move(ARGV[1], left) end
return left
"""
)

# ARGV: slot, entry, k field, c field, question, ms, then the fields and values of what is kept.
# What is no request of ours has neither slot nor fields.
DEAD_LETTER = (
    _REMOVE
    + """
if not leave(ARGV[2], ARGV[3], ARGV[4]) then return 0 end
local id = redis.call('xadd', KEYS[3], '*', unpack(ARGV, 7))
if ARGV[1] ~= '' then
  redis.call('hset', KEYS[2], ARGV[3], table.concat({'a', id, 0, ARGV[5], ARGV[6]}, ':'))
  move(ARGV[1], 1)
end
return 1
"""
)

# ARGV: entry aside, slot, k field, c field, question, ms, then the fields and values of the entry.
REQUEUE = (
    _COUNT_ARRIVAL
    + """
if redis.call('xdel', KEYS[3], ARGV[1]) == 0 then return 0 end
local number = come(ARGV[2])
local id = redis.call('xadd', KEYS[1], '*', unpack(ARGV, 7))
local ticket = table.concat({'q', id, number, ARGV[5], ARGV[6]}, ':')
redis.call('hset', KEYS[2], ARGV[3], ticket)
redis.call('hsetnx', KEYS[2], ARGV[4], ARGV[3])
return 1
"""
)

# ARGV: entry aside, k field.
DISCARD = """
if redis.call('xdel', KEYS[3], ARGV[1]) == 0 then return 0 end
local known = redis.call('hget', KEYS[2], ARGV[2])
if known and string.find(known, ':' .. ARGV[1] .. ':', 1, true) then
  redis.call('hdel', KEYS[2], ARGV[2])
end
return 1
"""


def keys(partition: int) -> tuple[str, str, str]:
    """The keys of a partition. Braces: on a Redis Cluster they lie on one node."""
    tag = f"slotlock:{{queue:{partition}}}:"
    return tag + "requests", tag + "tickets", tag + "aside"


def queue_advanced_channel(slot_id: SlotId) -> str:
    """Where it is told how many have left the line for a slot."""
    return QUEUE_ADVANCED_PREFIX + slot_id
