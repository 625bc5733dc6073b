"""Lua scripts of the admission queue. Each runs atomically on the keys of one partition.

KEYS of each script, see `keys.queue_keys`:

    requests      stream: the queued requests in order of arrival, read by one consumer group
    tickets       hash: the state of each queued request, see below
    dead_letters  stream: the requests that could not be processed, each with the reason
    cancelled     sorted set of `<slot>:<sequence>`, in the order of the texts: the requests that
                  left the queue before others that were ahead of them

Fields of the hash `tickets`, by which a request is found:

    k<requested by><key>   "<q or d>:<entry id>:<sequence>:<request hash>:<ms>", q queued, d dead
    c<slot><user><requested by><hold>   the k field of the queued request for the same booking
    i<slot>, o<slot>       how many requests for this slot were enqueued, and how many have left

The sequence of a request is the value of `i` after it was enqueued. Its position is sequence - `o`,
less the cancelled requests between them. `o` passes a cancelled request as soon as all requests
before it have left, so `cancelled` has only sequences after `o`. Sequences have 13 digits, so the
texts of one slot have the order of the numbers. Both counts begin with the time in ms at which the
queue of the slot was empty. A sequence from before Redis lost its data is therefore less than any
later one. An entry is deleted when its outcome is stored, so the length of the stream is the length
of the queue.
"""

from slotlock.infrastructure.redis.keys import QUEUE_ADVANCED_PREFIX

CONSUMER_GROUP = "admission-workers"
STATE_QUEUED = "q"
STATE_DEAD_LETTER = "d"

# A ticket without its entry (the stream alone was lost) is deleted.
_FIND_TICKET = f"""
local function to_reply(ticket, field, slot, sequence)
  local left = redis.call('hget', KEYS[2], 'o' .. slot) or '0'
  local from, to = '(' .. slot .. ':' .. left, '(' .. slot .. ':' .. sequence
  return {{ticket, left, field, redis.call('zlexcount', KEYS[4], from, to)}}
end
local function find_ticket(field, slot)
  local ticket = redis.call('hget', KEYS[2], field)
  if not ticket then return false end
  local state, id, sequence = string.match(ticket, '^(%a):([^:]+):(%d+):')
  local stream = state == '{STATE_DEAD_LETTER}' and KEYS[3] or KEYS[1]
  if #redis.call('xrange', stream, id, id) == 0 then
    redis.call('hdel', KEYS[2], field)
    return false
  end
  return to_reply(ticket, field, slot, sequence)
end
"""

# ARGV, for each search: slot, k field, and the c field to find a request for the same booking or an
# empty text. Returns for each, in order, what ENQUEUE does, or nil.
FIND = (
    _FIND_TICKET
    + """
local function find(slot, key_field, booking_field)
  local ticket = find_ticket(key_field, slot)
  if ticket or booking_field == '' then return ticket end
  local queued_key = redis.call('hget', KEYS[2], booking_field)
  return queued_key and find_ticket(queued_key, slot)
end
local replies = {}
for n = 1, #ARGV, 3 do
  replies[#replies + 1] = find(unpack(ARGV, n, n + 2))
end
return replies
"""
)

# The counts `i` and `o` of a slot, which start anew with the present time if its queue is empty.
_FIND_COUNTS = """
local function find_counts(slot, queue_length)
  local found = redis.call('hmget', KEYS[2], 'i' .. slot, 'o' .. slot)
  if found[1] and queue_length > 0 then return found[1], found[2] or '0' end
  local time = redis.call('time')
  local now_ms = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
  redis.call('hset', KEYS[2], 'i' .. slot, now_ms, 'o' .. slot, now_ms)
  redis.call('zremrangebylex', KEYS[4], '[' .. slot .. ':', '(' .. slot .. ';')
  return now_ms, now_ms
end
"""

# ARGV: maximum length (dead letters included), how many arguments each request has, then for each
# request its slot, k field, c field, request hash, ms, and the fields and values of its entry. The
# ms are those of the caller's clock, which is MongoDB's. They decide for how long a ticket is
# valid, so the clock of Redis must not: ids of a stream are later than the present after that clock
# was ahead.
# Returns, for each request in order, the ticket, how many requests have left, the k field, and how
# many requests ahead were cancelled; nil if the queue is full.
ENQUEUE = (
    _FIND_COUNTS
    + _FIND_TICKET
    + f"""
-- The end of the queue of each slot: a batch has many requests for few slots.
local ends = {{}}
local function find_end(slot, queue_length)
  local enqueued, left = find_counts(slot, queue_length)
  local from, to = '(' .. slot .. ':' .. left, '[' .. slot .. ':' .. enqueued
  local cancelled = redis.call('zlexcount', KEYS[4], from, to)
  return {{enqueued = tonumber(enqueued), left = left, cancelled = cancelled}}
end
local queue_length = redis.call('xlen', KEYS[1])
local room = tonumber(ARGV[1]) - queue_length - redis.call('xlen', KEYS[3])
local function enqueue(slot, key_field, booking_field, request_hash, ms, ...)
  local known = redis.call('hmget', KEYS[2], key_field, booking_field)
  local ticket = known[1] and find_ticket(key_field, slot)
  if ticket then return ticket end
  ticket = known[2] and find_ticket(known[2], slot)
  if ticket then return ticket end
  if room <= 0 then return false end
  local last = ends[slot] or find_end(slot, queue_length)
  ends[slot] = last
  last.enqueued = last.enqueued + 1
  local sequence = string.format('%.0f', last.enqueued)
  local id = redis.call('xadd', KEYS[1], '*', 'ms', ms, ...)
  local value = table.concat({{'{STATE_QUEUED}', id, sequence, request_hash, ms}}, ':')
  redis.call('hset', KEYS[2], key_field, value, booking_field, key_field, 'i' .. slot, sequence)
  queue_length, room = queue_length + 1, room - 1
  return {{value, last.left, key_field, last.cancelled}}
end
local replies = {{}}
for n = 3, #ARGV, ARGV[2] do
  replies[#replies + 1] = enqueue(unpack(ARGV, n, n + ARGV[2] - 1))
end
return replies
"""
)

_REMOVE = f"""
local function remove_entries(...)
  local entries, ids, removed, fields, own = {{...}}, {{}}, {{}}, {{}}, {{}}
  for n = 1, #entries, 3 do
    ids[#ids + 1] = entries[n]
    if redis.call('xdel', KEYS[1], entries[n]) == 1 then
      removed[#removed + 1] = entries[n]
      fields[#fields + 1], fields[#fields + 2] = entries[n + 1], entries[n + 2]
    end
  end
  redis.call('xack', KEYS[1], '{CONSUMER_GROUP}', unpack(ids))
  if #removed == 0 then return 0 end
  local found = redis.call('hmget', KEYS[2], unpack(fields))
  for n, id in ipairs(removed) do
    local ticket, queued_key, key_field = found[2 * n - 1], found[2 * n], fields[2 * n - 1]
    if ticket and string.find(ticket, ':' .. id .. ':', 1, true) then own[#own + 1] = key_field end
    if queued_key == key_field then own[#own + 1] = fields[2 * n] end
  end
  if #own > 0 then redis.call('hdel', KEYS[2], unpack(own)) end
  return #removed
end
local function pass_cancelled(slot, left)
  local passed = 0
  repeat
    local last = string.format('[%s:%.0f', slot, left + passed + 1)
    local found = redis.call('zrangebylex', KEYS[4], '[' .. slot .. ':', last, 'LIMIT', 0, 1)[1]
    passed = passed + (found and redis.call('zrem', KEYS[4], found) or 0)
  until not found
  return redis.call('hincrby', KEYS[2], 'o' .. slot, passed)
end
local function advance_queue(slot, count)
  local left = pass_cancelled(slot, redis.call('hincrby', KEYS[2], 'o' .. slot, count))
  local enqueued = redis.call('hget', KEYS[2], 'i' .. slot)
  if not enqueued or tonumber(enqueued) <= left then
    redis.call('hdel', KEYS[2], 'i' .. slot, 'o' .. slot)
    redis.call('zremrangebylex', KEYS[4], '[' .. slot .. ':', '(' .. slot .. ';')
  end
  redis.call('publish', '{QUEUE_ADVANCED_PREFIX}' .. slot, string.format('%.0f', left))
end
"""

# ARGV: slot, then for each request its entry id, k field and c field.
# Returns how many requests left the queue.
ACKNOWLEDGE = (
    _REMOVE
    + """
local removed = remove_entries(unpack(ARGV, 2))
if removed > 0 then advance_queue(ARGV[1], removed) end
return removed
"""
)

# ARGV: slot, entry id, k field, c field, request hash, ms, then the fields and values of the dead
# letter. An entry that is no booking request has an empty slot and empty fields.
DEAD_LETTER = (
    _REMOVE
    + f"""
if remove_entries(ARGV[2], ARGV[3], ARGV[4]) == 0 then return 0 end
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
    _FIND_COUNTS
    + f"""
if redis.call('xdel', KEYS[3], ARGV[1]) == 0 then return 0 end
find_counts(ARGV[2], redis.call('xlen', KEYS[1]))
local sequence = string.format('%.0f', redis.call('hincrby', KEYS[2], 'i' .. ARGV[2], 1))
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

# ARGV: slot, k field, request hash. Those behind move up at once: the request is counted as
# cancelled until all before it have left. Returns whether the request was queued.
CANCEL = (
    _REMOVE
    + f"""
local ticket = redis.call('hget', KEYS[2], ARGV[2])
if not ticket then return 0 end
local state, id, sequence, request_hash = string.match(ticket, '^(%a):([^:]+):(%d+):([^:]+):')
if request_hash ~= ARGV[3] then return 0 end
if state == '{STATE_DEAD_LETTER}' then
  redis.call('hdel', KEYS[2], ARGV[2])
  return redis.call('xdel', KEYS[3], id)
end
local entry = redis.call('xrange', KEYS[1], id, id)[1]
if not entry then return redis.call('hdel', KEYS[2], ARGV[2]) end
local fields = {{}}
for n = 1, #entry[2], 2 do fields[entry[2][n]] = entry[2][n + 1] end
local booking_field = 'c' .. fields.slot .. fields.user .. fields.by .. fields.hold
remove_entries(id, ARGV[2], booking_field)
redis.call('zadd', KEYS[4], 0, ARGV[1] .. ':' .. sequence)
advance_queue(ARGV[1], 0)
return 1
"""
)
