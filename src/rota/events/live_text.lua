-- Adds to the live text of a task, and sends what was added to the watchers.
-- The value is the version of the text, with a fixed length, and then the text itself.
--
-- KEYS[1]  the text; also the channel of its watchers
-- ARGV     version, offset in bytes, what is added there, how many seconds the text is kept
-- Returns  1 if it was added, 0 if Redis does not have what comes before it, and -1 if there is a
--          newer version.
local key, version, offset, added = KEYS[1], ARGV[1], tonumber(ARGV[2]), ARGV[3]
local stored = redis.call('GETRANGE', key, 0, #version - 1)
if stored > version then
  return -1
elseif offset == 0 then
  redis.call('SET', key, version .. added)
elseif stored == version and redis.call('STRLEN', key) == #version + offset then
  redis.call('APPEND', key, added)
else
  return 0
end
redis.call('EXPIRE', key, ARGV[4])
redis.call('PUBLISH', key, version .. string.format('%010d', offset) .. added)
return 1
