"""Lua scripts of the admission queue. Each runs atomically on the keys of one partition.

KEYS of each script, see `keys.queue_keys`:

    requests      stream: the queued requests in order of arrival, read by one consumer group
    tickets       hash: the state of each queued request, see below
    dead_letters  stream: the requests that could not be processed, each with the reason

Fields of the hash `tickets`, by which a request is found:

    k<requested by><key>   "<q or d>:<entry id>:<sequence>:<request hash>:<ms>", q queued, d dead
    c<slot><user><requested by><hold>   the k field of the queued request for the same booking
    i<slot>, o<slot>       how many requests for this slot were enqueued, and how many have left

The sequence of a request is the value of `i` after it was enqueued, so sequence - `o` is its
position. Both counts begin with the time in ms at which the queue of the slot was empty. A sequence
from before Redis lost its data is therefore less than any later one. An entry is deleted when its
outcome is stored, so the length of the stream is the length of the queue.
"""

from slotlock.infrastructure.redis.keys import QUEUE_ADVANCED_PREFIX

CONSUMER_GROUP = "admission-workers"
STATE_QUEUED = "q"
STATE_DEAD_LETTER = "d"

# A ticket without its entry (the stream alone was lost) is deleted.
_FIND_TICKET = f"""
local function find_ticket(field, slot)
  local ticket = redis.call('hget', KEYS[2], field)
  if not ticket then return false end
  local state, id = string.match(ticket, '^(%a):([^:]+):')
  local stream = state == '{STATE_DEAD_LETTER}' and KEYS[3] or KEYS[1]
  if #redis.call('xrange', stream, id, id) == 0 then
    redis.call('hdel', KEYS[2], field)
    return false
  end
  return {{ticket, redis.call('hget', KEYS[2], 'o' .. slot) or '0', field}}
end
"""

# ARGV: slot, k field, and optionally the c field, to find a request for the same booking.
# Returns as ENQUEUE does, or nil.
FIND = (
    _FIND_TICKET
    + """
local ticket = find_ticket(ARGV[2], ARGV[1])
if ticket or not ARGV[3] then return ticket end
local claimed_by = redis.call('hget', KEYS[2], ARGV[3])
return claimed_by and find_ticket(claimed_by, ARGV[1])
"""
)

_NEXT_SEQUENCE = """
local time = redis.call('time')
local now_ms = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
local function next_sequence(slot, queue_length)
  local has_counts = redis.call('hexists', KEYS[2], 'i' .. slot) == 1
  if not has_counts or queue_length == 0 then
    redis.call('hset', KEYS[2], 'i' .. slot, now_ms, 'o' .. slot, now_ms)
  end
  return string.format('%.0f', redis.call('hincrby', KEYS[2], 'i' .. slot, 1))
end
"""

# ARGV: maximum length (dead letters included), how many arguments each request has, then for each
# request its slot, k field, c field, request hash, ms, and the fields and values of its entry. The
# ms are those of the caller's clock, which is MongoDB's. They decide for how long a ticket is
# valid, so the clock of Redis must not: ids of a stream are later than the present after that clock
# was ahead.
# Returns, for each request in order, the ticket, how many requests have left, and the k field; nil
# if the queue is full.
ENQUEUE = (
    _NEXT_SEQUENCE
    + _FIND_TICKET
    + f"""
local queue_length = redis.call('xlen', KEYS[1])
local room = tonumber(ARGV[1]) - queue_length - redis.call('xlen', KEYS[3])
local function enqueue(slot, key_field, claim_field, request_hash, ms, ...)
  local known = redis.call('hmget', KEYS[2], key_field, claim_field)
  local ticket = known[1] and find_ticket(key_field, slot)
  if ticket then return ticket end
  ticket = known[2] and find_ticket(known[2], slot)
  if ticket then return ticket end
  if room <= 0 then return false end
  local sequence = next_sequence(slot, queue_length)
  local id = redis.call('xadd', KEYS[1], '*', 'ms', ms, ...)
  local value = table.concat({{'{STATE_QUEUED}', id, sequence, request_hash, ms}}, ':')
  redis.call('hset', KEYS[2], key_field, value, claim_field, key_field)
  queue_length, room = queue_length + 1, room - 1
  return {{value, redis.call('hget', KEYS[2], 'o' .. slot), key_field}}
end
local replies = {{}}
for n = 3, #ARGV, ARGV[2] do
  replies[#replies + 1] = enqueue(unpack(ARGV, n, n + ARGV[2] - 1))
end
return replies
"""
)

_REMOVE = f"""
local function remove_entry(id, key_field, claim_field)
  redis.call('xack', KEYS[1], '{CONSUMER_GROUP}', id)
  if redis.call('xdel', KEYS[1], id) == 0 then return false end
  local found = redis.call('hmget', KEYS[2], key_field, claim_field)
  local is_own_ticket = found[1] and string.find(found[1], ':' .. id .. ':', 1, true)
  local is_own_claim = found[2] == key_field
  if is_own_ticket and is_own_claim then
    redis.call('hdel', KEYS[2], key_field, claim_field)
  elseif is_own_ticket then
    redis.call('hdel', KEYS[2], key_field)
  elseif is_own_claim then
    redis.call('hdel', KEYS[2], claim_field)
  end
  return true
end
local function advance_queue(slot, count)
  local left = redis.call('hincrby', KEYS[2], 'o' .. slot, count)
  local enqueued = redis.call('hget', KEYS[2], 'i' .. slot)
  if not enqueued or tonumber(enqueued) <= left then
    redis.call('hdel', KEYS[2], 'i' .. slot, 'o' .. slot)
  end
  redis.call('publish', '{QUEUE_ADVANCED_PREFIX}' .. slot, string.format('%.0f', left))
end
"""

# ARGV: slot, then for each request its entry id, k field and c field.
# Returns how many requests left the queue.
ACKNOWLEDGE = (
    _REMOVE
    + """
local removed = 0
for n = 2, #ARGV, 3 do
  if remove_entry(ARGV[n], ARGV[n + 1], ARGV[n + 2]) then removed = removed + 1 end
end
if removed > 0 then advance_queue(ARGV[1], removed) end
return removed
"""
)

# ARGV: slot, entry id, k field, c field, request hash, ms, then the fields and values of the dead
# letter. An entry that is no booking request has an empty slot and empty fields.
DEAD_LETTER = (
    _REMOVE
    + f"""
if not remove_entry(ARGV[2], ARGV[3], ARGV[4]) then return 0 end
local id = redis.call('xadd', KEYS[3], '*', unpack(ARGV, 7))
if ARGV[1] ~= '' then
  local ticket = table.concat({{'{STATE_DEAD_LETTER}', id, 0, ARGV[5], ARGV[6]}}, ':')
  redis.call('hset', KEYS[2], ARGV[3], ticket)
  advance_queue(ARGV[1], 1)
end
return 1
"""
)

# ARGV: id of the dead letter, slot, k field, c field, request hash, ms, then the fields and values
# of the entry.
REQUEUE = (
    _NEXT_SEQUENCE
    + f"""
if redis.call('xdel', KEYS[3], ARGV[1]) == 0 then return 0 end
local sequence = next_sequence(ARGV[2], redis.call('xlen', KEYS[1]))
local id = redis.call('xadd', KEYS[1], '*', unpack(ARGV, 7))
local ticket = table.concat({{'{STATE_QUEUED}', id, sequence, ARGV[5], ARGV[6]}}, ':')
redis.call('hset', KEYS[2], ARGV[3], ticket)
redis.call('hsetnx', KEYS[2], ARGV[4], ARGV[3])
return 1
"""
)

# ARGV: id of the dead letter, k field.
DISCARD = """
if redis.call('xdel', KEYS[3], ARGV[1]) == 0 then return 0 end
local ticket = redis.call('hget', KEYS[2], ARGV[2])
if ticket and string.find(ticket, ':' .. ARGV[1] .. ':', 1, true) then
  redis.call('hdel', KEYS[2], ARGV[2])
end
return 1
"""
