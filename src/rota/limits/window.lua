-- Decides one request against one or two exact rolling windows, in one atomic step.
--
-- KEYS  one log for each ceiling that the request counts toward
-- ARGV  the window in microseconds, then the ceiling of each log
-- Gives {admitted, which log the headers describe, remaining, reset in seconds, time in microseconds}.
--
-- A log is a list of the times of admitted requests, oldest first. Redis packs integers of a list
-- into 10 bytes each, so that 6,000 of them take about 61 KB; a sorted set would take ten times that.

local window = tonumber(ARGV[1])
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]

local function append(key, time)
  redis.call('RPUSH', key, string.format('%.0f', time))
end

-- Redis' clock has gone back, so the newest entry lies in the future. Moving the whole log back
-- until its newest entry is now keeps the distances between entries and makes none of them older
-- than it is: no request too many passes, and the window moves on at once.
local function move_back(key, by)
  local log = redis.call('LRANGE', key, 0, -1)
  redis.call('DEL', key)
  for _, time in ipairs(log) do
    append(key, time - by)
  end
end

-- Drops what has left the window and gives the number of entries that stay. The log is sorted, so
-- the first one to stay is found in steps that double and then halve: a burst of thousands that
-- leaves at once costs some twenty looks, and the usual one or two entries cost two.
local function trim(key)
  local newest = redis.call('LINDEX', key, -1)
  if not newest then
    return 0
  end
  if tonumber(newest) > now then
    move_back(key, newest - now)
  end
  local size = redis.call('LLEN', key)
  local function gone(index)
    return redis.call('LINDEX', key, index) + window <= now
  end
  if not gone(0) then
    return size
  end
  local last_gone, first_kept = 0, 1
  while first_kept < size and gone(first_kept) do
    last_gone, first_kept = first_kept, first_kept * 2
  end
  first_kept = math.min(first_kept, size)
  while first_kept - last_gone > 1 do
    local middle = math.floor((last_gone + first_kept) / 2)
    if gone(middle) then
      last_gone = middle
    else
      first_kept = middle
    end
  end
  redis.call('LTRIM', key, first_kept, -1)
  return size - first_kept
end

local admitted = 1
local sizes = {}
for i, key in ipairs(KEYS) do
  sizes[i] = trim(key)
  if sizes[i] >= tonumber(ARGV[i + 1]) then
    admitted = 0
  end
end

if admitted == 1 then
  for i, key in ipairs(KEYS) do
    append(key, now)
    -- A second longer than the window, because expiry is rounded to milliseconds and must never
    -- come before the last entry's own time.
    redis.call('PEXPIRE', key, math.ceil(window / 1000) + 1000)
    sizes[i] = sizes[i] + 1
  end
end

-- The headers describe the log with the fewer requests remaining and, of two alike, the one that
-- gives a request back later: a caller that waits for that one finds room in both.
local which, remaining, wait
for i, key in ipairs(KEYS) do
  local ceiling = tonumber(ARGV[i + 1])
  local left = math.max(ceiling - sizes[i], 0)
  -- The entry that must leave before a request is given back. It is the oldest one, unless the
  -- ceiling was lowered below what is in the log.
  local blocking = redis.call('LINDEX', key, math.max(sizes[i] - ceiling, 0)) or now
  local until_then = blocking + window - now
  if not which or left < remaining or (left == remaining and until_then > wait) then
    which, remaining, wait = i, left, until_then
  end
end

return {admitted, which, remaining, math.ceil(wait / 1000000), now}
