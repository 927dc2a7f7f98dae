-- Checks requests against one or two exact rolling windows each and counts them, in one atomic step.
--
-- KEYS  for each request, one log for each ceiling that it counts toward
-- ARGV  the window in microseconds, and for each request: the number of its logs, two ceilings in the
--       order of the logs, how many requests it counts as, the time of the entry that it replaces,
--       and in how many of the logs that is. Several requests can have the same time
-- Returns for each request {admitted, which log the headers describe, remaining, reset in seconds, time in
-- microseconds}.
--
-- A log is a list of the times of admitted requests, oldest first. Redis stores each integer of a
-- list in 10 bytes, so 6,000 of them need about 61 KB. A sorted set would need ten times as much.

local window = tonumber(ARGV[1])
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]

local function append(key, time)
  redis.call('RPUSH', key, string.format('%.0f', time))
end

-- The clock of Redis went back, so the newest entry is in the future. The whole log moves back until
-- its newest entry is now. The distances between entries stay the same and no entry becomes older
-- than it is, so the limit still holds and the window keeps moving.
local function move_back(key, by)
  local log = redis.call('LRANGE', key, 0, -1)
  redis.call('DEL', key)
  for _, time in ipairs(log) do
    append(key, time - by)
  end
end

-- Removes expired entries and returns the number of those that remain. The log is sorted, so an
-- exponential search finds the first entry that remains: about twenty lookups for a burst of
-- thousands that expires at once, and two for the usual one or two entries.
local function trim(key)
  local newest = redis.call('LINDEX', key, -1)
  if not newest then
    return 0
  end
  if tonumber(newest) > now then
    move_back(key, newest - now)
  end
  local size = redis.call('LLEN', key)
  local function expired(index)
    return redis.call('LINDEX', key, index) + window <= now
  end
  if not expired(0) then
    return size
  end
  local last_expired, first_kept = 0, 1
  while first_kept < size and expired(first_kept) do
    last_expired, first_kept = first_kept, first_kept * 2
  end
  first_kept = math.min(first_kept, size)
  while first_kept - last_expired > 1 do
    local middle = math.floor((last_expired + first_kept) / 2)
    if expired(middle) then
      last_expired = middle
    else
      first_kept = middle
    end
  end
  redis.call('LTRIM', key, first_kept, -1)
  return size - first_kept
end

local function check(keys, ceilings, cost, replaces, logs_replaced)
  local admitted = 1
  local sizes = {}
  local replaced = {}
  for i, key in ipairs(keys) do
    -- A request that counts as more than the whole window needs an empty one.
    cost = math.max(1, math.min(cost, ceilings[i]))
  end
  for i, key in ipairs(keys) do
    sizes[i] = trim(key)
    replaced[i] = 0
    if i <= logs_replaced then
      replaced[i] = redis.call('LREM', key, -1, replaces)
      sizes[i] = sizes[i] - replaced[i]
    end
    if sizes[i] + cost > ceilings[i] then
      admitted = 0
    end
  end

  -- A request that was admitted, and now counts as more than fits, still counts as one where it did
  -- before: it was read.
  for i, key in ipairs(keys) do
    local counted = admitted == 1 and cost or replaced[i]
    if counted > 0 then
      for _ = 1, counted do
        append(key, now)
      end
      -- A second longer than the window, because Redis rounds the expiry to milliseconds and the log
      -- must not expire before its last entry.
      redis.call('PEXPIRE', key, math.ceil(window / 1000) + 1000)
      sizes[i] = sizes[i] + counted
    end
  end

  -- The headers describe the log with fewer requests remaining or, if both have the same, the one with
  -- the longer wait: after that wait, both logs have room.
  local which, remaining, wait
  for i, key in ipairs(keys) do
    local ceiling = ceilings[i]
    local left = math.max(ceiling - sizes[i], 0)
    -- The entry that has to expire before another request is allowed, or this one if it is refused. It
    -- is the oldest one, unless the request counts as several or the ceiling was lowered below the size
    -- of the log.
    local needed = admitted == 1 and 1 or cost
    local blocking = redis.call('LINDEX', key, math.max(sizes[i] + needed - 1 - ceiling, 0)) or now
    local until_then = blocking + window - now
    if not which or left < remaining or (left == remaining and until_then > wait) then
      which, remaining, wait = i, left, until_then
    end
  end

  return {admitted, which, remaining, math.ceil(wait / 1000000), now}
end

local replies = {}
local next_key = 1
for first = 2, #ARGV, 6 do
  local keys = {}
  for _ = 1, tonumber(ARGV[first]) do
    keys[#keys + 1] = KEYS[next_key]
    next_key = next_key + 1
  end
  local ceilings = {tonumber(ARGV[first + 1]), tonumber(ARGV[first + 2])}
  replies[#replies + 1] = check(
    keys, ceilings, tonumber(ARGV[first + 3]), ARGV[first + 4], tonumber(ARGV[first + 5])
  )
end
return replies
