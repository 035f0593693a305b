"""The steps of the Redis store, each one Lua script: the server runs it as a whole or not at all.

Keys, all of one hash slot by the braces in ``{prefix}``: ``{prefix}:s:ID`` (hash: what is known of a session),
``{prefix}:s:ID:m`` (list: its messages), ``{prefix}:lru`` (sorted set: last use by id, microseconds of the server's
clock), ``{prefix}:sizes`` (hash: bytes by id, known beyond the session's end) and ``{prefix}:bytes`` (their sum).

Arguments of every script: ttl in milliseconds, max_sessions, max_bytes. Its reply: how many sessions went for each
reason in the order of ``GONE``, then its own result.
"""

from typing import Final

from router_ext.sessions.limits import Eviction

GONE: Final = (Eviction.TTL, Eviction.MAX_SESSIONS, Eviction.MAX_BYTES, Eviction.LOST)

# A script forgets at most 100 expired sessions, so that it stays short; the next ones go on with it.
_PRELUDE: Final = """
local base, lru, sizes, total = KEYS[1], KEYS[1] .. ':lru', KEYS[1] .. ':sizes', KEYS[1] .. ':bytes'
local ttl_ms, max_sessions, max_bytes = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local oldest = now - ttl_ms * 1000
local TTL, SESSIONS, BYTES, LOST, DELETED = 1, 2, 3, 4, 5
local gone = {0, 0, 0, 0, 0}

local function exact(number) return string.format('%.0f', number) end
local function hash(id) return base .. ':s:' .. id end
local function list(id) return base .. ':s:' .. id .. ':m' end
local function meta(id)
  return redis.call('HMGET', hash(id), 'id', 'owner', 'created_s', 'used_s', 'turns', 'tokens', 'bytes')
end

local function drop(id, reason)
  local used = redis.call('ZSCORE', lru, id)
  if used then
    if tonumber(used) <= oldest then reason = TTL end
    gone[reason] = gone[reason] + 1
    redis.call('ZREM', lru, id)
  end
  local size = redis.call('HGET', sizes, id)
  if size then
    redis.call('HDEL', sizes, id)
    redis.call('DECRBY', total, size)
  end
  redis.call('UNLINK', hash(id), list(id))
end

for _, id in ipairs(redis.call('ZRANGEBYSCORE', lru, '-inf', exact(oldest), 'LIMIT', 0, 100)) do drop(id, TTL) end

-- Whether the session is there for this owner, with every message that it ought to have.
local function is_kept(id, owner)
  local kept = redis.call('HMGET', hash(id), 'owner', 'messages')
  if kept[1] and kept[1] ~= owner then return false end
  if kept[1] and redis.call('LLEN', list(id)) == tonumber(kept[2]) then return true end
  drop(id, LOST)
  return false
end

local function touch(id, now_s)
  redis.call('HSET', hash(id), 'used_s', now_s)
  redis.call('PEXPIRE', hash(id), ttl_ms)
  redis.call('PEXPIRE', list(id), ttl_ms)
  redis.call('ZADD', lru, exact(now), id)
end

-- All arguments from the given one on; in slices, since Lua's stack holds some thousand values.
local function push(id, first)
  for at = first, #ARGV, 1000 do
    redis.call('RPUSH', list(id), unpack(ARGV, at, math.min(at + 999, #ARGV)))
  end
  redis.call('HINCRBY', hash(id), 'messages', #ARGV - first + 1)
end

local function grow(id, size)
  redis.call('HINCRBY', hash(id), 'bytes', size)
  redis.call('HINCRBY', sizes, id, size)
  redis.call('INCRBY', total, size)
end

local function make_room()
  local over = redis.call('ZCARD', lru) - max_sessions
  if over > 0 then
    for _, id in ipairs(redis.call('ZRANGE', lru, 0, over - 1)) do drop(id, SESSIONS) end
  end
  while tonumber(redis.call('GET', total) or 0) > max_bytes do
    local id = redis.call('ZRANGE', lru, 0, 0)[1]
    if not id then redis.call('DEL', total, sizes) break end
    drop(id, BYTES)
  end
end
"""

# id, owner, now_s, tokens, bytes, blobs. Result: 0 when the id is another owner's.
CREATE: Final = (
    _PRELUDE
    + """
local id, owner, now_s, tokens, size = ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8]
local known = redis.call('HGET', hash(id), 'owner')
if known and known ~= owner then return {gone, 0} end
drop(id, DELETED)
if tonumber(size) > max_bytes then
  gone[BYTES] = gone[BYTES] + 1
  return {gone, 1}
end
push(id, 9)
redis.call('HSET', hash(id), 'id', id, 'owner', owner, 'created_s', now_s, 'turns', 1, 'tokens', tokens)
grow(id, size)
touch(id, now_s)
make_room()
return {gone, 1}
"""
)

# id, owner, now_s. Result: what is known and the blobs; nil when it is not there.
LOAD: Final = (
    _PRELUDE
    + """
local id, owner = ARGV[4], ARGV[5]
if not is_kept(id, owner) then return {gone, false} end
touch(id, ARGV[6])
return {gone, {meta(id), redis.call('LRANGE', list(id), 0, -1)}}
"""
)

# As LOAD, and the session does not count as used.
PEEK: Final = (
    _PRELUDE
    + """
local id, owner = ARGV[4], ARGV[5]
if not is_kept(id, owner) then return {gone, false} end
return {gone, {meta(id), redis.call('LRANGE', list(id), 0, -1)}}
"""
)

# id, owner, now_s, tokens ('' when unknown), estimated tokens, bytes, blobs. Result: 1 when it was added.
APPEND: Final = (
    _PRELUDE
    + """
local id, owner, now_s, tokens, estimated, size = ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8], ARGV[9]
if not is_kept(id, owner) then return {gone, 0} end
if redis.call('HGET', hash(id), 'bytes') + size > max_bytes then
  drop(id, BYTES)
  return {gone, 0}
end
push(id, 10)
redis.call('HINCRBY', hash(id), 'turns', 1)
if tokens == '' then
  redis.call('HINCRBY', hash(id), 'tokens', estimated)
else
  redis.call('HSET', hash(id), 'tokens', tokens)
end
grow(id, size)
touch(id, now_s)
make_room()
return {gone, 1}
"""
)

# id, then the owner, or nothing more for any. Result: 1 when it was there.
DELETE: Final = (
    _PRELUDE
    + """
local id = ARGV[4]
local owner = redis.call('HGET', hash(id), 'owner')
if not owner or (ARGV[5] and ARGV[5] ~= owner) then return {gone, 0} end
drop(id, DELETED)
return {gone, gone[DELETED]}
"""
)

# id. Result: 1 when it is there.
HOLDS: Final = (
    _PRELUDE
    + """
return {gone, redis.call('EXISTS', hash(ARGV[4]))}
"""
)

# limit. Result: what is known of each, most recently used first.
LISTED: Final = (
    _PRELUDE
    + """
local found = {}
for _, id in ipairs(redis.call('ZREVRANGEBYSCORE', lru, '+inf', '(' .. exact(oldest), 'LIMIT', 0, ARGV[4])) do
  local known = meta(id)
  if known[1] then found[#found + 1] = known end
end
return {gone, found}
"""
)

# Result: how many.
COUNT: Final = (
    _PRELUDE
    + """
return {gone, redis.call('ZCOUNT', lru, '(' .. exact(oldest), '+inf')}
"""
)
