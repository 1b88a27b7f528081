"""The Lua scripts: each is one transaction of Redis, and the only place where more than one command has to be one.

`COMMIT` is the only one that writes events and records: it finds out that what the writer knew is still so, then does what the
writer worked out. The arithmetic stays in Python (`advance.py`), the same for every log.

Numbers travel as texts. Names of keys are `keys.py`'s; replicas share one Redis, so keys need not be declared for a cluster.
"""

import hashlib
from dataclasses import dataclass, field

from reattach_mockserver.logs.redis.keys import PREFIX


@dataclass(frozen=True, slots=True)
class Script:
    """A script and the name under which Redis keeps it once it has seen it."""

    text: str
    sha: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sha", hashlib.sha1(self.text.encode(), usedforsecurity=False).hexdigest())


NUMBER = "\x01number"
"""Stands in a command of COMMIT for the number of the run that it creates."""
TELL = "\x01tell"
"""A command of COMMIT: key, run, JSON of what is told of an operation, its status."""

_ROW = """
local function row(run)
  return redis.call('HMGET', PREFIX .. 'run:' .. run, 'record', 'number', 'version', 'owner')
end
"""
_EVENT = """
local function event(entry)
  local f = entry[2]
  return {string.match(entry[1], '^%d+'), f[2], f[6], f[8], f[12]}
end
"""
_NAMED = """
local function named(text)
  return #text .. ':' .. text .. ':'
end
"""


def _script(text: str) -> Script:
    return Script(f"local PREFIX = '{PREFIX}'\n{text.strip()}")


COMMIT = _script(
    f"""
local at = 2
local function take()
  local n = tonumber(ARGV[at])
  local words = {{}}
  for i = 1, n do words[i] = ARGV[at + i] end
  at = at + n + 1
  return words
end
local function text(value)
  if not value then return '' end
  return tostring(value)
end
for _ = 1, tonumber(ARGV[1]) do
  local check = take()
  local got = redis.call(unpack(check, 3))
  local kept
  if check[1] == 'is' then
    kept = text(got) == check[2]
  elseif check[1] == 'below' then
    kept = tonumber(got) < tonumber(check[2])
  else
    kept = true
    for i = 1, #got do kept = kept and not got[i] end
  end
  if not kept then return false end
end
local number = ''
local function tell(key, run, told, status)
  local old = redis.call('HGET', key, run)
  if not old then
    local new = cjson.decode(told)
    new.order = redis.call('HLEN', key) + 1
    redis.call('HSET', key, run, cjson.encode(new))
    return
  end
  local known = cjson.decode(old)
  if known.status ~= 'committed' then
    known.status = status
    redis.call('HSET', key, run, cjson.encode(known))
  end
end
while at <= #ARGV do
  local command = take()
  for i = 1, #command do
    if command[i] == '{NUMBER}' then
      if number == '' then number = text(redis.call('HINCRBY', PREFIX .. 'counts', 'runs', 1)) end
      command[i] = number
    end
  end
  if command[1] == '{TELL}' then
    tell(unpack(command, 2))
  else
    redis.call(unpack(command))
  end
end
return {{1, number}}
"""
)

LOOK = _script(
    _ROW
    + _EVENT
    + """
local found = {row(ARGV[1])}
local base = PREFIX .. 'run:' .. ARGV[1]
for i = 2, #ARGV do
  local place = redis.call('HGET', base .. ':ids', ARGV[i])
  local entry = place and redis.call('XRANGE', base .. ':events', place .. '-0', place .. '-0')[1]
  -- One that was let go of is known all the same; only its text is gone.
  found[i] = entry and event(entry) or place and {place, ARGV[i], '', '0', ''} or false
end
return found
"""
)
"""A run's row, then of each event id its event, if the run has it."""

LOOK_CREATE = _script(
    _ROW
    + _NAMED
    + """
local principal, key, session, paused = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local place = named(principal) .. session
local known = redis.call('GET', PREFIX .. 'key:' .. named(principal) .. key)
if known then return {known, row(cjson.decode(known)[1])} end
local waiting = {}
for _, run in ipairs(redis.call('SMEMBERS', PREFIX .. 'session-waiting:' .. place)) do
  waiting[#waiting + 1] = row(run)
end
local before = paused ~= '' and row(paused) or false
local after = false
if before and before[1] then
  local by = cjson.decode(before[1]).continued_by
  after = by ~= cjson.null and row(by) or false
end
return {
  false, redis.call('HMGET', PREFIX .. 'session:' .. place, 'created_at', 'version'),
  redis.call('SMEMBERS', PREFIX .. 'session-active:' .. place), waiting,
  redis.call('ZCARD', PREFIX .. 'active:' .. principal), before, after,
}
"""
)
"""All that decides a create, as of one moment."""

BY_KEY = _script(
    _ROW
    + """
local known = redis.call('GET', ARGV[1])
if not known then return false end
return {known, row(cjson.decode(known)[1])}
"""
)

LIST = _script(
    _ROW
    + """
local rows = {}
local runs = redis.call('ZRANGEBYSCORE', ARGV[1], '(' .. ARGV[2], '+inf', 'LIMIT', 0, ARGV[3])
for i, run in ipairs(runs) do rows[i] = row(run) end
return rows
"""
)
"""The rows of the runs of a sorted set whose number is above one, at most so many."""

READ = _script(
    _EVENT
    + """
local after, left, room = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local page = {}
while left > 0 do
  local some = redis.call('XRANGE', ARGV[1], string.format('%.0f-0', after + 1), '+', 'COUNT', math.min(left, 16))
  if #some == 0 then break end
  for _, entry in ipairs(some) do
    local one = event(entry)
    room = room - #one[5]
    if #page > 0 and room < 0 then return page end
    page[#page + 1] = one
    after = tonumber(one[1])
    left = left - 1
  end
end
return page
"""
)
"""A page of events. Few at a time: a page of large ones is to take no more memory than it may."""

FIRST_SINCE = _script(
    """
local function id(n) return string.format('%.0f-0', n) end
local function nearest(command, from, to)
  return redis.call(command, ARGV[1], from, to, 'COUNT', 1)[1]
end
local function place(entry) return tonumber(string.match(entry[1], '^%d+')) end
local first, last = nearest('XRANGE', '-', '+'), nearest('XREVRANGE', '+', '-')
if not first then return ARGV[3] end
local low, high, at = place(first), place(last) + 1, tonumber(ARGV[2])
while low < high do
  local middle = math.floor((low + high) / 2)
  local entry = redis.call('XRANGE', ARGV[1], id(middle), id(middle))[1]
  if tonumber(entry[2][10]) < at then low = middle + 1 else high = middle end
end
return string.format('%.0f', low)
"""
)

TAIL = _script(
    """
local found = {}
for i, entry in ipairs(redis.call('XRANGE', ARGV[1], ARGV[2] .. '-0', ARGV[3] .. '-0')) do
  local f = entry[2]
  found[i] = {string.match(entry[1], '^%d+'), f[2], f[4], f[12]}
end
return found
"""
)
"""Of the events from one sequence to another: sequence, id, step, body."""

COMPACT = _script(
    """
local base = PREFIX .. 'run:' .. ARGV[1]
if redis.call('HGET', base, 'writer') ~= ARGV[2] then return 0 end
if (redis.call('HGET', base .. ':base', 'sequence') or '0') ~= ARGV[3] then return 0 end
redis.call('HSET', base .. ':base', 'sequence', ARGV[4], 'fold', ARGV[5])
return redis.call('XTRIM', base .. ':events', 'MINID', string.format('%.0f-0', tonumber(ARGV[4]) + 1))
"""
)
"""The fold of a run's first events in their place."""

CLAIM = _script(
    """
local base = PREFIX .. 'run:' .. ARGV[1]
local run = redis.call('HMGET', base, 'writer', 'settled')
if not run[1] then return 'missing' end
if run[1] ~= ARGV[2] then return 'writer' end
if run[2] == '1' then return 'settled' end
local done = redis.call('HGET', base .. ':effects', ARGV[3])
if not done then redis.call('HINCRBY', base .. ':claims', ARGV[3], 1) end
return {redis.call('HGET', base .. ':claims', ARGV[3]) or '0', done}
"""
)

PERFORM = _script(
    _NAMED
    + """
local run, operation, claim, offered = ARGV[1], ARGV[2], ARGV[3], cjson.decode(ARGV[4])
local base = PREFIX .. 'run:' .. run
if (redis.call('HGET', base .. ':claims', operation) or '0') ~= claim then return false end
local effects, counts = base .. ':effects', PREFIX .. 'counts'
local old = redis.call('HGET', effects, operation)
local done
if old then
  done = cjson.decode(old)
  done.attempts = done.attempts + 1
else
  done = offered
  done.order = redis.call('HLEN', effects) + 1
  redis.call('HINCRBY', counts, 'effects', 1)
end
redis.call('HINCRBY', counts, 'attempts', 1)
local text = cjson.encode(done)
redis.call('HSET', effects, operation, text)
local key = PREFIX .. 'operation:' .. named(redis.call('HGET', base, 'principal')) .. operation
local told = redis.call('HGET', key, run)
local known
if told then
  known = cjson.decode(told)
else
  known = {tool = done.tool, external = false, order = redis.call('HLEN', key) + 1}
end
known.status, known.reversible, known.result, known.waits = 'committed', done.reversible, done.result, false
redis.call('HSET', key, run, cjson.encode(known))
return text
"""
)
"""An effect, the count of its attempts, and its operation."""

_YOUNG = """
local function young(lease)
  local up = string.match(redis.call('INFO', 'server'), 'uptime_in_seconds:(%d+)')
  return tonumber(up) * 1000 <= math.min(lease, 10000)
end
"""
"""Whether Redis runs for less than a lease: who lives first has to find it again, and to look there for what was shown."""

BEAT = _script(
    _YOUNG
    + """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local mine = redis.call('ZSCORE', PREFIX .. 'replicas', ARGV[1])
redis.call('ZADD', PREFIX .. 'replicas', now + tonumber(ARGV[2]), ARGV[1])
local orphans = redis.call('SCARD', PREFIX .. 'owned:')
for _, replica in ipairs(redis.call('ZRANGEBYSCORE', PREFIX .. 'replicas', '-inf', now)) do
  local owned = redis.call('SCARD', PREFIX .. 'owned:' .. replica)
  if owned == 0 then redis.call('ZREM', PREFIX .. 'replicas', replica) end
  orphans = orphans + owned
end
if orphans > 0 and young(tonumber(ARGV[2])) then orphans = 0 end
return {mine and tonumber(mine) > now and 1 or 0, orphans}
"""
)
"""Renew a replica's lease; return whether it still held one, and how many runs are nobody's."""

ORPHANS = _script(
    _ROW
    + _YOUNG
    + """
if young(tonumber(ARGV[2])) then return {} end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local owners = redis.call('ZRANGEBYSCORE', PREFIX .. 'replicas', '-inf', now)
owners[#owners + 1] = ''
local rows = {}
for _, owner in ipairs(owners) do
  for _, run in ipairs(redis.call('SRANDMEMBER', PREFIX .. 'owned:' .. owner, math.max(0, tonumber(ARGV[1]) - #rows))) do
    rows[#rows + 1] = row(run)
  end
end
return rows
"""
)

OWNED = _script(
    _ROW
    + """
local rows = {}
for i, run in ipairs(redis.call('SMEMBERS', ARGV[1])) do rows[i] = row(run) end
return rows
"""
)

LEAVE = _script(
    """
local mine = PREFIX .. 'owned:' .. ARGV[1]
local left = redis.call('SMEMBERS', mine)
for _, run in ipairs(left) do
  redis.call('SADD', PREFIX .. 'owned:', run)
  redis.call('HSET', PREFIX .. 'run:' .. run, 'owner', '')
end
redis.call('DEL', mine)
redis.call('ZREM', PREFIX .. 'replicas', ARGV[1])
if #left > 0 then redis.call('PUBLISH', PREFIX .. 'wakes', ARGV[1] .. ' orphans') end
return #left
"""
)
"""Let go of all that a replica owns."""
