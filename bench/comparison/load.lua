-- Sends the same requests to every target and counts the responses in the same way.
-- Environment: KIND (rest, mercurius, slotlock), WORKLOAD, TOKENS (a file),
-- FIRST_SLOT and SLOTS (numbers of slots), FIRST_DAY (seconds since 1970),
-- BODY (a file, for the workload board).
local KIND, WORKLOAD = os.getenv("KIND"), os.getenv("WORKLOAD")
local FIRST_SLOT, SLOTS = tonumber(os.getenv("FIRST_SLOT")), tonumber(os.getenv("SLOTS"))
local FIRST_DAY = tonumber(os.getenv("FIRST_DAY"))
local SLOTS_PER_DAY, SECONDS_PER_DAY = 200, 86400
local HOT_SLOTS, LIST_LENGTH = 20, 50
local HOT_STEP, DAYS = math.floor(SLOTS / HOT_SLOTS), math.floor(SLOTS / SLOTS_PER_DAY)
-- A crowd waits as long as it takes.
local CROWD_WAIT_MS = 15000

local floor, format, random = math.floor, string.format, math.random
local HEADERS = " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
  .. "Accept: application/json\r\nAuthorization: Bearer "

local tokens = {}
for line in io.lines(os.getenv("TOKENS")) do tokens[#tokens + 1] = line end
local user_count = #tokens

local function slot_id(number) return format("%024x", FIRST_SLOT + number) end

-- The head of each user's requests is built once.
local function graphql(query, name, variables_of)
  local before = '{"query":"' .. query .. '","operationName":"' .. name .. '","variables":'
  local heads = {}
  for i, token in ipairs(tokens) do
    heads[i] = "POST /graphql" .. HEADERS .. token .. "\r\nContent-Length: "
  end
  return function(user, number)
    local variables = variables_of(number)
    local length = #before + #variables + 1
    return heads[user] .. length .. "\r\n\r\n" .. before .. variables .. "}"
  end
end

local function rest(head, tail, path_of)
  local tails = {}
  for i, token in ipairs(tokens) do tails[i] = HEADERS .. token .. tail end
  return function(user, number) return head .. path_of(number) .. tails[user] end
end

local function slot_variables(prefix)
  return function(number) return '{"id":"' .. prefix .. slot_id(number) .. '"}' end
end

local function day_start(day)
  return os.date("!%Y-%m-%dT00:00:00Z", FIRST_DAY + day * SECONDS_PER_DAY)
end

local days = {}
if KIND == "slotlock" then
  for day = 0, DAYS - 1 do
    days[day] = '{"from":"' .. day_start(day) .. '","before":"' .. day_start(day + 1) .. '"}'
  end
end

local book, read, list, book_waiting, request_booking, board
if KIND == "slotlock" then
  local id = slot_variables("slot_")
  local result = "{ __typename ... on Booked { slot { id isBooked bookedBy { id } } } "
    .. "... on Refusal { code } }"
  book = graphql("mutation B($id: ID!) { bookSlot(input: {slotId: $id}) " .. result .. " }", "B", id)
  book_waiting = graphql("mutation W($id: ID!) { bookSlot(input: {slotId: $id, waitMs: "
    .. CROWD_WAIT_MS .. "}) " .. "{ __typename ... on Booked { booking { id } } "
    .. "... on Refusal { code } } }", "W", id)
  request_booking = graphql("mutation R($id: ID!) { requestBooking(input: {slotId: $id}) "
    .. "{ __typename ... on Ticket { id status position } ... on Refusal { code } } }", "R", id)
  read = graphql("query S($id: ID!) { slot(id: $id) { id isBooked startTime title location } }",
    "S", id)
  list = graphql("query L($from: DateTime!, $before: DateTime!) { slots(filter: {startsFrom: $from, "
    .. "startsBefore: $before, onlyWithPlacesLeft: true}, first: " .. LIST_LENGTH
    .. ") { nodes { id startTime location } } }", "L", function(day) return days[day] end)
  if WORKLOAD == "board" then
    local body = assert(io.open(os.getenv("BODY"))):read("*a")
    board = rest("POST /graphql", "\r\nContent-Length: " .. #body .. "\r\n\r\n" .. body,
      function() return "" end)
  end
elseif KIND == "mercurius" then
  local id = slot_variables("")
  book = graphql("mutation B($id: ID!) { bookSlot(slotId: $id) "
    .. "{ status slot { id isBooked bookedBy } } }", "B", id)
  read = graphql("query S($id: ID!) { slot(id: $id) { id isBooked bookedBy startTime venue } }",
    "S", id)
  list = graphql("query L($day: Int!) { openSlots(day: $day, first: " .. LIST_LENGTH
    .. ") { id startTime venue } }", "L", function(day) return '{"day":' .. day .. '}' end)
elseif KIND == "rest" then
  book = rest("POST /api/slot/book/", "\r\nContent-Length: 0\r\n\r\n", slot_id)
  read = rest("GET /api/slot/", "\r\n\r\n", slot_id)
  list = rest("GET /api/slot/open/", "\r\n\r\n", function(day) return day end)
else
  error("KIND is rest, mercurius or slotlock")
end

math.randomseed(42)
local function random_slot() return random(0, SLOTS - 1) end
local function random_day() return random(0, DAYS - 1) end

-- Each takes the number of the request and returns the operation and its slot or day.
local choose = {
  spread = function(number) return book, number % SLOTS end,
  hot = function() return book, random(0, HOT_SLOTS - 1) * HOT_STEP end,
  one = function() return read, random_slot() end,
  list = function() return list, random_day() end,
  mixed = function(number)
    local part = number % 10
    -- 7919 is prime to the number of slots: every booking has a slot of its own.
    if part == 0 then return book, number / 10 * 7919 % SLOTS end
    if part == 5 then return list, random_day() end
    return read, random_slot()
  end,
  -- All users come to one slot, then all of them to the next.
  crowd = function(number) return book_waiting, floor(number / user_count) % SLOTS end,
  board = function() return board, 0 end,
  queue = function(number) return request_booking, floor(number / user_count) % SLOTS end,
}
local chosen = choose[WORKLOAD]
if WORKLOAD == "crowd" or WORKLOAD == "queue" then assert(KIND == "slotlock") end
local all_users_at_once = WORKLOAD == "crowd" or WORKLOAD == "queue"
-- wrk calls `request` once to check the script, and does not send what it returns.
local request_number = -1

function request()
  local make, slot_or_day = chosen(request_number)
  -- No user books the same slot again when all slots have been booked once.
  local user = request_number
  if not all_users_at_once then user = user + floor(request_number / SLOTS) end
  request_number = request_number + 1
  return make(user % user_count + 1, slot_or_day)
end

-- With the quotes, "BOOKED" does not match "ALREADY_BOOKED", nor "Booked" "isBooked".
local BOOKING = {
  { '"Booked"', "booked" }, { '"BOOKED"', "booked" },
  { '"Locked"', "locked" }, { '"LOCKED"', "locked" },
  { '"SlotFull"', "full" }, { '"AlreadyBooked"', "full" }, { '"ALREADY_BOOKED"', "full" },
}
local LISTING = { { '"nodes":[{', "list" }, { '"openSlots":[{', "list" }, { '[{"id"', "list" } }
local READING = { { '"isBooked"', "read" } }
local TICKETS = { { '"Ticket"', "ticket" }, { '"SlotFull"', "full" } }
local function joined(...)
  local all = {}
  for _, patterns in ipairs({ ... }) do
    for _, pattern in ipairs(patterns) do all[#all + 1] = pattern end
  end
  return all
end
local patterns = ({
  one = READING, list = LISTING, board = LISTING, mixed = joined(LISTING, BOOKING, READING), queue = TICKETS,
})[WORKLOAD] or BOOKING
local find = string.find

-- Globals, because `done` runs in another Lua state, which sees no locals of this one.
outcomes = { booked = 0, locked = 0, full = 0, read = 0, list = 0, ticket = 0, other = 0 }
statuses = {}
unexpected = ""

local SAMPLED = 50
local function is_short(body)
  return WORKLOAD == "list" and outcomes.list % SAMPLED == 0
    and select(2, body:gsub('"startTime"', "")) ~= LIST_LENGTH
end

function response(status, _, body)
  statuses[status] = (statuses[status] or 0) + 1
  for i = 1, #patterns do
    if find(body, patterns[i][1], 1, true) and not is_short(body) then
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
    '\n{"requests":%d,"duration_us":%d,"p50_us":%d,"p99_us":%d,"p999_us":%d,'
      .. '"outcomes":%s,"statuses":%s,"socket_errors":%s,"unexpected":"%s"}\n',
    summary.requests, summary.duration,
    latency:percentile(50), latency:percentile(99), latency:percentile(99.9),
    object(thread:get("outcomes")), object(thread:get("statuses")), object({
      connect = summary.errors.connect, read = summary.errors.read,
      write = summary.errors.write, timeout = summary.errors.timeout,
    }), (thread:get("unexpected"):gsub('[%c"\\]', "'"))))
end
