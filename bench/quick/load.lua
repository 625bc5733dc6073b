-- Sends the same requests to every target and counts the responses in the same way.
-- Environment: KIND (rest, mercurius, slotlock), WORKLOAD (spread, hot, one), SLOTS, TOKENS (a file).
local KIND, WORKLOAD = os.getenv("KIND"), os.getenv("WORKLOAD")
local SLOTS = tonumber(os.getenv("SLOTS"))
local HOT_SLOTS = 20
local STEP = math.floor(SLOTS / HOT_SLOTS)

local HEADERS = " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
  .. "Accept: application/json\r\nAuthorization: Bearer "

local tokens = {}
for line in io.lines(os.getenv("TOKENS")) do tokens[#tokens + 1] = line end
local user_count = #tokens

-- The request of each user is built once; only the slot's id changes.
local function graphql(query, name, id_prefix)
  local before = '{"query":"' .. query .. '","operationName":"' .. name
    .. '","variables":{"id":"' .. id_prefix
  local after = '"}}'
  local length = #before + 24 + #after
  local beginnings = {}
  for i, token in ipairs(tokens) do
    beginnings[i] = "POST /graphql" .. HEADERS .. token
      .. "\r\nContent-Length: " .. length .. "\r\n\r\n" .. before
  end
  return function(user, slot) return beginnings[user] .. slot .. after end
end

local function rest(head, tail)
  local tails = {}
  for i, token in ipairs(tokens) do tails[i] = HEADERS .. token .. tail end
  return function(user, slot) return head .. slot .. tails[user] end
end

local book, read
if KIND == "slotlock" then
  book = graphql("mutation B($id: ID!) { bookSlot(input: {slotId: $id}) { __typename "
    .. "... on Booked { slot { id isBooked bookedBy { id } } } ... on Refusal { code } } }",
    "B", "slot_")
  read = graphql("query S($id: ID!) { slot(id: $id) { id isBooked startTime title location } }",
    "S", "slot_")
elseif KIND == "mercurius" then
  book = graphql("mutation B($id: ID!) { bookSlot(slotId: $id) "
    .. "{ status slot { id isBooked bookedBy } } }", "B", "")
  read = graphql("query S($id: ID!) { slot(id: $id) { id isBooked bookedBy startTime venue } }",
    "S", "")
elseif KIND == "rest" then
  book = rest("POST /api/slot/book/", "\r\nContent-Length: 0\r\n\r\n")
  read = rest("GET /api/slot/", "\r\n\r\n")
else
  error("KIND is rest, mercurius or slotlock")
end

math.randomseed(42)
local random, format = math.random, string.format
local choose = {
  spread = function(number) return book, number % SLOTS end,
  hot = function() return book, random(0, HOT_SLOTS - 1) * STEP end,
  one = function() return read, random(0, SLOTS - 1) end,
}
local chosen = choose[WORKLOAD]
local request_number = 0

function request()
  local make, slot = chosen(request_number)
  request_number = request_number + 1
  return make(request_number % user_count + 1, format("%024x", slot))
end

-- With the quotes, "BOOKED" does not match "ALREADY_BOOKED", nor "Booked" "isBooked".
local BOOKING = {
  { '"Booked"', "booked" }, { '"BOOKED"', "booked" },
  { '"Locked"', "locked" }, { '"LOCKED"', "locked" },
  { '"SlotFull"', "full" }, { '"AlreadyBooked"', "full" }, { '"ALREADY_BOOKED"', "full" },
}
local READING = { { '"isBooked"', "read" } }
local patterns = WORKLOAD == "one" and READING or BOOKING
local find = string.find

-- Globals, because `done` runs in another Lua state, which sees no locals of this one.
outcomes = { booked = 0, locked = 0, full = 0, read = 0, other = 0 }
statuses = {}
unexpected = ""

function response(status, _, body)
  statuses[status] = (statuses[status] or 0) + 1
  for i = 1, #patterns do
    if find(body, patterns[i][1], 1, true) then
      local outcome = patterns[i][2]
      outcomes[outcome] = outcomes[outcome] + 1
      return
    end
  end
  outcomes.other = outcomes.other + 1
  unexpected = body:sub(1, 300)
end

local threads = {}
function setup(thread) threads[#threads + 1] = thread end

local function object(counts)
  local fields = {}
  for key, count in pairs(counts) do fields[#fields + 1] = format('"%s":%d', key, count) end
  return "{" .. table.concat(fields, ",") .. "}"
end

function done(summary, latency)
  local thread = threads[1] -- the only one: -t1
  io.write(format(
    '\n{"requests":%d,"duration_us":%d,"p50_us":%d,"p99_us":%d,'
      .. '"outcomes":%s,"statuses":%s,"socket_errors":%s,"unexpected":"%s"}\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
    object(thread:get("outcomes")), object(thread:get("statuses")), object({
      connect = summary.errors.connect, read = summary.errors.read,
      write = summary.errors.write, timeout = summary.errors.timeout,
    }), (thread:get("unexpected"):gsub('[%c"\\]', "'"))))
end
