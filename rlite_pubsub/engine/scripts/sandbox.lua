-- What scripts see, and what they do not.
--
-- Lua as lupa has it knows no read-only tables, which Redis's own has. So what scripts must not change they never hold:
-- they are given proxies, empty tables whose fields are read from a backing table. `backing` knows it by its proxy. What
-- looks at a table without asking its metatable (next, rawget, table.insert, ...) is replaced by what knows proxies.
--
-- Nothing of Python's can be reached: scripts get Lua functions of this file, which check what they hand on. The
-- functions of the host take strings, numbers, booleans and tables, never raise, and return what costs little memory:
-- an error that Lua raises while Python is at work (as where memory is short) would tear down the process.
--
-- Whoever catches errors (pcall, xpcall, coroutines) lets that one pass that ends a killed script.

local host = ...
local as_function = python.as_function
local execute, execute_packed = as_function(host.execute), as_function(host.execute_packed)
local fetch_left = as_function(host.fetch)
local crossing = host.crossing  -- C's, which does what is here without it (crossing.py); or false
local interrupt = as_function(host.interrupt)
local sha1hex, log = as_function(host.sha1hex), as_function(host.log)
local set_protocol, check_permission = as_function(host.set_protocol), as_function(host.check_permission)
local ticks, max_made_bytes = host.ticks, host.max_made_bytes
local version, version_number = host.version, host.version_number
local function_flags = host.function_flags  -- what functions may say of themselves: a flag by itself

local debug, error, getmetatable, ipairs, load = debug, error, getmetatable, ipairs, load
local loadstring, next, pairs, pcall, rawequal = loadstring, next, pairs, pcall, rawequal
local rawget, rawset, select, setfenv, setmetatable = rawget, rawset, select, setfenv, setmetatable
local tonumber, tostring, type, unpack, xpcall = tonumber, tostring, type, unpack, xpcall
local assert, collectgarbage, gcinfo, original = assert, collectgarbage, gcinfo, _G
local string, table, math, coroutine, os = string, table, math, coroutine, os
local byte, find, format, gsub, lower = string.byte, string.find, string.format, string.gsub, string.lower
local match, rep, sub = string.match, string.rep, string.sub
local concat, floor, clock = table.concat, math.floor, os.clock
local getinfo, sethook = debug.getinfo, debug.sethook

local READONLY = "Attempt to modify a readonly table"
local OWN_NAME = "=[C]"  -- of this chunk and of the libraries': scripts see what they see of C's functions
local MARK = "[C]:"  -- how a position in these begins

local backing = setmetatable({}, {__mode = "k"})  -- proxy -> what it shows
local shown_metatable = {}  -- proxy -> what getmetatable says of it
local globals = {}  -- what scripts' proxy for them shows
local environment = {}  -- that proxy
local KILLED = {}  -- the error that nobody catches
local killed, killed_at = false, nil

local function deny()
  error(READONLY, 2)
end

local function protect(proxy, fields)
  backing[proxy] = fields
  return setmetatable(proxy, {__index = fields, __newindex = deny})
end

local function is_string(value)  -- as lua_isstring
  local kind = type(value)
  return kind == "string" or kind == "number"
end

local function whole_number(value)
  -- As C makes an int of it; nil if it is not a number.
  local number = tonumber(value)
  if number == nil or number ~= number or number >= 2 ^ 63 or number < -2 ^ 63 then
    return number and 0
  end
  number = (number < 0 and -floor(-number) or floor(number)) % 4294967296
  return number < 2147483648 and number or number - 4294967296
end

setfenv(1, environment)  -- what is made from here on has nothing of its own

-- -- errors

local function unmarked(text)
  -- What a function of C's has raised that is called here says this place, not the script's.
  if type(text) == "string" and sub(text, 1, 4) == MARK then
    text = gsub(text, "^%[C%]:%d+: ", "", 1)
  end
  return text
end

local function where()
  -- The innermost place of a script.
  local level = 3
  while true do
    local info = getinfo(level, "Sl")
    if info == nil then
      return nil
    end
    if info.what ~= "C" and info.what ~= "tail" and info.source ~= OWN_NAME then
      return info
    end
    level = level + 1
  end
end

local function tell_error(failure)
  local info = where()
  if failure == KILLED then
    killed_at = killed_at or info
    return failure
  end
  if type(failure) ~= "table" then
    if type(failure) == "string" and sub(failure, 1, 4) == MARK then
      failure = unmarked(failure)
      if info ~= nil and info.currentline > 0 then
        failure = info.short_src .. ":" .. info.currentline .. ": " .. failure
      end
    end
    failure = {err = "ERR " .. tostring(failure)}
  end
  if info ~= nil and backing[failure] == nil then
    failure.source = info.source
    failure.line = info.currentline
  end
  return failure
end

local function raise(text)
  error({err = "ERR " .. text}, 0)
end

local function caught(is_well, ...)
  if is_well then
    return true, ...
  end
  if killed then
    error(KILLED, 0)
  end
  local failure = ...
  if type(failure) == "table" then
    local text = failure.err
    if is_string(text) then
      return false, text
    end
  end
  return false, unmarked(failure)
end

local function caught_as_it_is(is_well, ...)
  if killed and not is_well then
    error(KILLED, 0)
  end
  return is_well, ...
end

function globals.pcall(...)
  if select("#", ...) == 0 then
    return false, "attempt to call a boolean value"  -- as Redis's, which finds its own result there
  end
  return caught(pcall(...))
end

function globals.xpcall(...)
  if select("#", ...) < 2 then
    error("bad argument #2 to 'xpcall' (value expected)", 2)
  end
  local called, handler = ...
  return caught_as_it_is(xpcall(called, function(failure)
    if killed then
      return failure
    end
    return handler(unmarked(failure))
  end))
end

-- -- tables

-- What these say of wrong arguments Lua says of them by the names that they have here.

function globals.rawset(...)
  if backing[...] ~= nil then
    error(READONLY, 0)
  end
  return rawset(...)
end

function globals.rawget(...)
  local shown = backing[...]
  if shown ~= nil then
    return rawget(shown, select(2, ...))
  end
  return rawget(...)
end

function globals.next(...)
  local shown = backing[...]
  if shown ~= nil then
    return next(shown, select(2, ...))
  end
  return next(...)
end

function globals.pairs(...)
  if backing[...] ~= nil then
    return globals.next, (...), nil
  end
  return pairs(...)
end

function globals.getmetatable(...)
  if backing[...] ~= nil then
    return shown_metatable[...]
  end
  return getmetatable(...)
end

function globals.setmetatable(...)
  if backing[...] ~= nil and (select(2, ...) == nil or type(select(2, ...)) == "table") then
    error(READONLY, 0)
  end
  return setmetatable(...)
end

local tables = {}
for name, value in pairs(table) do
  tables[name] = value
end
local insert, foreach, maxn, getn = table.insert, table.foreach, table.maxn, table.getn

function tables.insert(...)
  if backing[...] ~= nil then
    error(READONLY, 0)
  end
  return insert(...)
end

function tables.foreach(...)
  local shown = backing[...]
  if shown ~= nil then
    return foreach(shown, select(2, ...))
  end
  return foreach(...)
end

function tables.maxn(...)
  return maxn(backing[...] or ...)
end

function tables.getn(...)
  return getn(backing[...] or ...)
end

function globals.unpack(...)
  local list, first, last = ...
  if (first ~= nil or last ~= nil) and type(list) == "table" then
    first, last = whole_number(first == nil and 1 or first), whole_number(last == nil and #list or last)
    if first ~= nil and last ~= nil and last - first >= 2147483647 then
      error("too many results to unpack", 2)  -- Lua's own counts beyond what an int can hold, and ends the process
    end
  end
  return unpack(...)
end

-- -- loading

-- Lua does not keep the chunk's name while it asks `load`'s reader for more, and would go on with memory that it has
-- freed. So the name is always one that is held here: with nothing behind a NUL, because Lua would make a copy up to it.

local function held_name(name)
  if name == nil then
    return "=(load)"
  end
  return type(name) == "string" and match(name, "^%Z*") or name
end

local function in_environment(made, ...)
  if made ~= nil then
    return setfenv(made, environment)
  end
  if killed then  -- `load` has caught it, which a function of the script's raised
    error(KILLED, 0)
  end
  return made, ...
end

function globals.loadstring(...)
  local text, name = ...
  if type(text) == "string" and byte(text) == 27 then
    return in_environment(loadstring(" " .. text, name or text))  -- read as source, whatever it is
  end
  return in_environment(loadstring(...))
end

function globals.load(...)
  local reader, name = ...
  if type(reader) ~= "function" then
    return load(...)
  end
  local is_first = true
  return in_environment(load(function()
    local piece = reader()
    if is_first and type(piece) == "string" and #piece > 0 then
      is_first = false
      if byte(piece) == 27 then
        return " " .. piece
      end
    end
    return piece
  end, held_name(name)))
end

function globals.collectgarbage(what, ...)
  if what == nil or what == "collect" then
    return collectgarbage("collect")
  elseif what == "count" or what == "step" then
    return collectgarbage(what, ...)
  elseif what == "stop" or what == "restart" then
    return 0  -- memory is everybody's
  elseif what == "setpause" or what == "setstepmul" then
    return 200
  end
  return collectgarbage(what, ...)
end

-- -- coroutines

local function tick()
  if interrupt() then
    killed = true
    error(KILLED, 0)
  end
end

local threads = {}
for name, value in pairs(coroutine) do
  threads[name] = value
end
local create, resume = coroutine.create, coroutine.resume

function threads.create(body)
  local thread = create(body)
  sethook(thread, tick, "", ticks)
  return thread
end

function threads.resume(thread, ...)
  return caught_as_it_is(resume(thread, ...))
end

local function passed_on(is_well, failure, ...)
  if is_well then
    return failure, ...
  end
  if killed then
    error(KILLED, 0)
  end
  error(failure, type(failure) == "string" and 3 or 0)  -- above the call that this ended
end

function threads.wrap(body)
  if type(body) ~= "function" then
    error("bad argument #1 to 'wrap' (Lua function expected)", 2)
  end
  local thread = threads.create(body)
  return function(...)
    return passed_on(resume(thread, ...))
  end
end

-- -- strings

local texts = {}
for name, value in pairs(string) do
  texts[name] = value
end

function texts.rep(...)
  local text, count = ...
  if is_string(text) and is_string(count) and tonumber(count) ~= nil then
    local size, times = #tostring(text), whole_number(count)
    if size == 0 or times < 1 then
      return ""
    elseif size * times > max_made_bytes then
      error("not enough memory", 0)
    end
  end
  return rep(...)
end

-- Lua 5.1 calls itself, in C, for each item of a pattern that may be repeated or captured: a long one is the end of
-- the process's stack, and of the process.
local LONGEST_PATTERN = 4000
local gmatch = string.gmatch

local function check_pattern(pattern)
  if type(pattern) == "string" and #pattern > LONGEST_PATTERN and find(pattern, "[-?*+()]") then
    error("pattern too complex", 3)
  end
end

function texts.find(...)
  local _, pattern, _, is_plain = ...
  if not is_plain then
    check_pattern(pattern)
  end
  return find(...)
end

function texts.match(...)
  check_pattern((select(2, ...)))
  return match(...)
end

function texts.gmatch(...)
  check_pattern((select(2, ...)))
  return gmatch(...)
end

function texts.gsub(...)
  check_pattern((select(2, ...)))
  return gsub(...)
end

-- -- math: the same numbers on every machine (lrand48)

local numbers = {}
for name, value in pairs(math) do
  numbers[name] = value
end

local high, low = 0x1234AB, 0xCD330E  -- 24 bits each
local function draw()
  -- x = x * 0x5DEECE66D + 0xB, in 48 bits
  local sum = low * 0xECE66D + 0xB
  local carried = floor(sum / 16777216)
  local next_high = high * 0xECE66D + low * 0x5DE + carried
  low = sum - carried * 16777216
  high = next_high - floor(next_high / 16777216) * 16777216
  return high * 128 + floor(low / 131072)  -- the upper 31 bits
end

local function whole(value, place, name)
  local number = tonumber(value)
  if not is_string(value) or number == nil then
    local got = value == nil and "no value" or type(value)
    error("bad argument #" .. place .. " to '" .. name .. "' (number expected, got " .. got .. ")", 3)
  end
  return number < 0 and -floor(-number) or floor(number)
end

function numbers.random(...)
  local drawn = (draw() % 2147483647) / 2147483647
  local count = select("#", ...)
  if count == 0 then
    return drawn
  elseif count == 1 then
    local upper = whole((...), 1, "random")
    if upper < 1 then
      error("bad argument #1 to 'random' (interval is empty)", 2)
    end
    return floor(drawn * upper) + 1
  elseif count == 2 then
    local lower, upper = whole((...), 1, "random"), whole(select(2, ...), 2, "random")
    if lower > upper then
      error("bad argument #2 to 'random' (interval is empty)", 2)
    end
    return floor(drawn * (upper - lower + 1)) + lower
  end
  error("wrong number of arguments", 2)
end

function numbers.randomseed(seed)
  local number = whole(seed, 1, "randomseed") % 4294967296
  high = floor(number / 256)
  low = (number % 256) * 65536 + 0x330E
end

-- -- redis

local redis = {
  REDIS_VERSION = version, REDIS_VERSION_NUM = version_number,
  LOG_DEBUG = 0, LOG_VERBOSE = 1, LOG_NOTICE = 2, LOG_WARNING = 3,
  REPL_NONE = 0, REPL_AOF = 1, REPL_SLAVE = 2, REPL_REPLICA = 2, REPL_ALL = 3,
}
local is_running = false  -- a script, so that its functions may be called
local function runs()
  return is_running
end
local protocol = 2  -- what the script wants to be told in

local function check_arguments(...)
  local count = select("#", ...)
  if count == 0 then
    return "Please specify at least one argument for this redis lib call"
  end
  for place = 1, count do
    if not is_string((select(place, ...))) then
      return "Lua redis lib command arguments must be strings or integers"
    end
  end
end

local MOST = 4000  -- arguments for a function of the host's, which needs room of its own beside them

local function pack(wrong, ...)
  if wrong ~= nil then
    return wrong
  end
  local parts, all = {}, {...}
  for place = 1, #all do
    local word = all[place]
    word = type(word) == "string" and word or format("%.17g", word)
    parts[2 * place - 1] = #word .. "\n"
    parts[2 * place] = word
  end
  return nil, concat(parts)
end

local function execute_many(...)
  local wrong, packed = pack(check_arguments(...), ...)
  if wrong ~= nil then
    return false, "ERR " .. wrong
  end
  return execute_packed(packed)
end

local function failed(kind, text)
  -- `kind`: whether it was a command that has failed, and is counted; nil: the script is to end.
  if kind == nil then
    killed = true
    error(KILLED, 0)
  end
  return {err = text, ignore_error_stats_update = kind or nil}
end

-- What `execute` returns: a reply; of a status its text, nil and true; of an array nil, nil, false and its elements.

local function answered(reply, failure, form, ...)
  if failure ~= nil then
    error(failed(reply, failure), 0)
  elseif form == nil then
    return reply
  elseif form then
    return {ok = reply}
  end
  return {...}
end

local function answered_anyhow(reply, failure, form, ...)
  if failure ~= nil then
    return failed(reply, failure)
  elseif form == nil then
    return reply
  elseif form then
    return {ok = reply}
  end
  return {...}
end

local function is_short(count, ...)
  -- Whether there is not the memory to hand this to Python, and be answered: one string may be given many times, and
  -- Python makes as many of it.
  local used_kib = collectgarbage("count")
  if used_kib * 1024 > max_made_bytes then
    collectgarbage()
    used_kib = collectgarbage("count")
    if used_kib * 1024 > max_made_bytes then
      return true
    end
  end
  if count * used_kib * 1024 <= max_made_bytes then
    return false
  end
  local size, all = 0, {...}
  for place = 1, count do
    local word = all[place]
    size = size + (type(word) == "string" and #word or 0)
  end
  return size > max_made_bytes
end

function redis.call(...)
  local count = select("#", ...)
  if not is_running then
    raise("redis.call/pcall can only be called inside a script invocation")
  elseif is_short(count, ...) then
    raise("not enough memory")
  elseif count > MOST then
    return answered(execute_many(...))
  end
  return answered(execute(...))
end

function redis.pcall(...)
  local count = select("#", ...)
  if not is_running then
    raise("redis.call/pcall can only be called inside a script invocation")
  elseif is_short(count, ...) then
    return failed(false, "ERR not enough memory")
  elseif count > MOST then
    return answered_anyhow(execute_many(...))
  end
  return answered_anyhow(execute(...))
end

function redis.sha1hex(...)
  if select("#", ...) ~= 1 then
    raise("wrong number of arguments")
  end
  if is_short(0) then
    raise("not enough memory")
  end
  local text = ...
  return sha1hex(is_string(text) and tostring(text) or "")
end

local function c_string(text)
  local ending = find(text, "\0", 1, true)
  return ending and sub(text, 1, ending - 1) or text
end

local function error_table(text)
  -- As luaPushErrorBuff: what begins with a minus has its code before the first space.
  if sub(text, 1, 1) == "-" then
    local space = find(text, " ", 1, true)
    if space == nil then
      return {err = "ERR " .. sub(text, 2)}
    end
    return {err = sub(text, 2, space - 1) .. " " .. gsub(gsub(sub(text, space + 1), "^[\r\n]+", ""), "[\r\n]+$", "")}
  end
  return {err = "ERR " .. text}
end

function redis.error_reply(...)
  local text = ...
  if select("#", ...) ~= 1 or type(text) ~= "string" then
    return {err = "ERR wrong number or type of arguments"}
  end
  text = c_string(text)
  return error_table(sub(text, 1, 1) == "-" and text or "-" .. text)
end

function redis.status_reply(...)
  local text = ...
  if select("#", ...) ~= 1 or type(text) ~= "string" then
    return {err = "ERR wrong number or type of arguments"}
  end
  return {ok = text}
end

function redis.set_repl(...)
  if not runs() then
    raise("redis.set_repl can only be called inside a script invocation")
  end
  if select("#", ...) ~= 1 then
    raise("redis.set_repl() requires two arguments.")
  end
  local flags = tonumber((...)) or 0
  flags = flags < 0 and -floor(-flags) or floor(flags)
  if flags < 0 or flags > 3 then
    raise("Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.")
  end
end

function redis.replicate_commands()
  return true
end

function redis.breakpoint()
  return false
end

function redis.debug()
end

function redis.acl_check_cmd(...)
  if not runs() then
    raise("redis.acl_check_cmd can only be called inside a script invocation")
  end
  local wrong = check_arguments(...)
  if wrong ~= nil then
    raise(wrong)
  elseif is_short(select("#", ...), ...) then
    raise("not enough memory")
  end
  local may = check_permission(...)
  if may == nil then
    raise("Invalid command passed to redis.acl_check_cmd()")
  end
  return may
end

function redis.log(...)
  local count = select("#", ...)
  if count < 2 then
    raise("redis.log() requires two arguments or more.")
  end
  local level = tonumber((...))
  if level == nil or not is_string((...)) then
    raise("First argument must be a number (log level).")
  end
  level = level < 0 and -floor(-level) or floor(level)
  if level < 0 or level > 3 then
    raise("Invalid debug level.")
  end
  local parts = {}
  for place = 2, count do
    local part = select(place, ...)
    if is_string(part) then
      parts[#parts + 1] = place == 2 and tostring(part) or " " .. tostring(part)
    end
  end
  log(level, concat(parts))
end

function redis.setresp(...)
  if not runs() then
    raise("redis.setresp can only be called inside a script invocation")
  end
  if select("#", ...) ~= 1 then
    raise("redis.setresp() requires one argument.")
  end
  local wanted = tonumber((...)) or 0
  wanted = wanted < 0 and -floor(-wanted) or floor(wanted)
  if wanted ~= 2 and wanted ~= 3 then
    raise("RESP version must be 2 or 3.")
  end
  protocol = wanted
  set_protocol(wanted)
end

-- -- replies

local MAX_DEPTH = 7994  -- places on a stack of Lua's in Redis: an array within an array needs one, others three

local put

local function put_fields(parts, found, answered, depth, with_values)
  local place = #parts + 1
  parts[place] = ""
  local size = 0
  for key, value in next, found do
    put(parts, key, answered, depth + 3)
    if with_values then
      put(parts, value, answered, depth + 3)
    end
    size = size + 1
  end
  if answered == 3 then
    parts[place] = format(with_values and "%%%d\r\n" or "~%d\r\n", size)
  else
    parts[place] = format("*%d\r\n", with_values and 2 * size or size)
  end
end

local function put_table(parts, value, answered, depth)
  local shown = backing[value] or value
  local found = rawget(shown, "err")
  if type(found) == "string" then
    found = value.err
    local is_counted = value.ignore_error_stats_update ~= true
    parts[#parts + 1] = "-" .. gsub(gsub(c_string(tostring(found)), "[\r\n]+$", ""), "[\r\n]", " ") .. "\r\n"
    parts.failures = parts.failures or {known = 0}
    if is_counted then
      parts.failures[#parts.failures + 1] = c_string(tostring(found))
    else
      parts.failures.known = parts.failures.known + 1
    end
    return
  end
  found = rawget(shown, "ok")
  if type(found) == "string" then
    parts[#parts + 1] = "+" .. gsub(c_string(found), "[\r\n]", " ") .. "\r\n"
    return
  end
  found = rawget(shown, "double")
  if type(found) == "number" then
    local text = format("%.17g", found)
    parts[#parts + 1] = answered == 3 and "," .. text .. "\r\n" or format("$%d\r\n", #text) .. text .. "\r\n"
    return
  end
  found = rawget(shown, "big_number")
  if type(found) == "string" then
    local text = gsub(found, "[\r\n]", " ")
    parts[#parts + 1] = answered == 3 and "(" .. text .. "\r\n" or format("$%d\r\n", #text) .. text .. "\r\n"
    return
  end
  found = rawget(shown, "verbatim_string")
  if type(found) == "table" then
    local kind, text = rawget(found, "format"), rawget(found, "string")
    if type(kind) == "string" and type(text) == "string" then
      if answered == 3 then
        kind = sub(c_string(kind) .. "   ", 1, 3)
        parts[#parts + 1] = format("=%d\r\n", #text + 4) .. kind .. ":" .. text .. "\r\n"
      else
        parts[#parts + 1] = format("$%d\r\n", #text) .. text .. "\r\n"
      end
      return
    end
  end
  found = rawget(shown, "map")
  if type(found) == "table" then
    return put_fields(parts, backing[found] or found, answered, depth, true)
  end
  found = rawget(shown, "set")
  if type(found) == "table" then
    return put_fields(parts, backing[found] or found, answered, depth, false)
  end
  local place, size = #parts + 1, 0
  parts[place] = ""
  while true do
    local element = rawget(shown, size + 1)
    if element == nil then
      break
    end
    put(parts, element, answered, depth + 1)
    size = size + 1
  end
  parts[place] = format("*%d\r\n", size)
end

function put(parts, value, answered, depth)
  local kind = type(value)
  if depth > MAX_DEPTH then
    parts[#parts + 1] = "-ERR reached lua stack limit\r\n"
  elseif kind == "string" then
    local place = #parts
    parts[place + 1] = format("$%d\r\n", #value)
    parts[place + 2] = value
    parts[place + 3] = "\r\n"
  elseif kind == "number" then
    parts[#parts + 1] = format(":%d\r\n", value)
  elseif kind == "table" then
    put_table(parts, value, answered, depth)
  elseif kind ~= "boolean" then
    parts[#parts + 1] = answered == 3 and "_\r\n" or "$-1\r\n"
  elseif protocol == 3 then
    parts[#parts + 1] = answered == 3 and (value and "#t\r\n" or "#f\r\n") or (value and ":1\r\n" or ":0\r\n")
  elseif value then
    parts[#parts + 1] = ":1\r\n"
  else
    parts[#parts + 1] = answered == 3 and "_\r\n" or "$-1\r\n"
  end
end

local function encode(value, answered)
  local parts = {}
  put(parts, value, answered, 0)
  local failures = parts.failures
  if failures ~= nil then
    return concat(parts), concat(failures, "\n"), failures.known
  end
  return concat(parts), true
end

-- -- running

local function split(count, ...)
  if count == 0 then
    return {}, {...}
  end
  local keys, arguments = {}, {}
  local total = select("#", ...)
  local all = {...}
  for place = 1, count do
    keys[place] = all[place]
  end
  for place = count + 1, total do
    arguments[place - count] = all[place]
  end
  return keys, arguments
end

local LARGEST = 9007199254740992  -- whole numbers below it are the same for whoever is handed them

local function finish(is_well, value, answered)
  if is_well then
    if type(value) == "number" and value % 1 == 0 and value < LARGEST and value > -LARGEST then
      return value
    end
    local is_encoded, text, failures, known = pcall(encode, value, answered)
    if is_encoded then
      return text, failures, known
    end
    value = text
  end
  if value == KILLED then
    if killed_at == nil then
      return nil, nil, nil
    end
    return nil, killed_at.source, tostring(killed_at.currentline)
  end
  if type(value) ~= "table" then
    return false, is_string(value) and tostring(value) or "execution failure"
  end
  local function text_of(name)
    local found = value[name]
    return is_string(found) and tostring(found) or nil
  end
  local is_told, text, source, line, is_counted = pcall(function()
    return text_of("err"), text_of("source"), text_of("line"), value.ignore_error_stats_update ~= true
  end)
  if not is_told then
    return false, "execution failure"
  end
  return false, text or "ERR unknown error", source, line, is_counted
end

local function reset()
  killed, killed_at, protocol = false, nil, 2
end

local function run_script(called, answered, count, ...)
  reset()
  is_running = true
  if count == 1 then
    globals.KEYS, globals.ARGV = {(...)}, {select(2, ...)}
  else
    globals.KEYS, globals.ARGV = split(count, ...)
  end
  local is_well, value = xpcall(called, tell_error)
  is_running = false
  globals.KEYS, globals.ARGV = nil, nil
  if is_well and type(value) == "string" then
    return value
  end
  return finish(is_well, value, answered)
end

local function run_function(called, answered, count, ...)
  reset()
  is_running = true
  local keys, arguments = split(count, ...)
  local is_well, value = xpcall(function()
    return (called(keys, arguments))
  end, tell_error)
  is_running = false
  if is_well and type(value) == "string" then
    return value
  end
  return finish(is_well, value, answered)
end

local function fetch(is_protected)
  -- A reply that C did not hand over.
  if is_protected then
    return answered_anyhow(fetch_left())
  end
  return answered(fetch_left())
end

local keep
if crossing then
  redis.call, redis.pcall, keep, runs = crossing(globals, tell_error, finish, failed, fetch, reset)
end

-- -- what scripts find

for name, value in pairs({
  assert = assert, error = error, gcinfo = gcinfo, ipairs = ipairs, rawequal = rawequal, select = select,
  tonumber = tonumber, tostring = tostring, type = type, _VERSION = original._VERSION,
}) do
  globals[name] = value
end

local function install(name, fields)
  globals[name] = protect({}, fields)
end

install("string", texts)
install("table", tables)
install("math", numbers)
install("coroutine", threads)
install("os", {clock = clock})
install("redis", redis)

globals._G = environment

local function nonexistent(_, name)
  if not is_string(name) then
    error("Second argument to luaProtectedTableError must be a string or number", 2)
  end
  error("Script attempted to access nonexistent global variable '" .. tostring(name) .. "'", 2)
end

setmetatable(globals, {__index = nonexistent})
protect(environment, globals)
shown_metatable[environment] = protect({}, {__index = nonexistent})

local of_strings = debug.getmetatable("")
of_strings.__index = texts
of_strings.__metatable = protect({}, {__index = globals.string})

for name, fields in pairs(host.libraries) do
  install(name, fields)
end

-- -- libraries of functions: while one is loaded there is nothing but a `redis` of its own

local registering  -- what the library has registered so far, in order; nil while none is loaded
local registered  -- the same by name

local function flags_of(given)
  local flags, place = {}, 1
  while true do
    local flag = given[place]
    if flag == nil then
      return flags
    end
    flag = is_string(flag) and function_flags[lower(c_string(tostring(flag)))]
    if not flag then
      raise("unknown flag given")
    end
    flags[flag] = true
    place = place + 1
  end
end

local function named_function(given)
  if type(given) ~= "table" then
    raise("calling redis.register_function with a single argument is only applicable to Lua table " ..
      "(representing named arguments).")
  end
  local name, description, callback, flags
  for key, value in next, given do
    if not is_string(key) then
      raise("named argument key given to redis.register_function is not a string")
    end
    key = lower(c_string(tostring(key)))
    if key == "function_name" then
      if not is_string(value) then
        raise("function_name argument given to redis.register_function must be a string")
      end
      name = tostring(value)
    elseif key == "description" then
      if not is_string(value) then
        raise("description argument given to redis.register_function must be a string")
      end
      description = tostring(value)
    elseif key == "callback" then
      if type(value) ~= "function" then
        raise("callback argument given to redis.register_function must be a function")
      end
      callback = value
    elseif key == "flags" then
      if type(value) ~= "table" then
        raise("flags argument to redis.register_function must be a table representing function flags")
      end
      flags = flags_of(value)
    else
      raise("unknown argument given to redis.register_function")
    end
  end
  if name == nil then
    raise("redis.register_function must get a function name argument")
  elseif callback == nil then
    raise("redis.register_function must get a callback argument")
  end
  return name, callback, description, flags
end

local function register_function(...)
  if registering == nil then
    raise("redis.register_function can only be called on FUNCTION LOAD command")
  end
  local count = select("#", ...)
  local name, callback, description, flags
  if count == 1 then
    name, callback, description, flags = named_function((...))
  elseif count == 2 then
    name, callback = ...
    if not is_string(name) then
      raise("first argument to redis.register_function must be a string")
    elseif type(callback) ~= "function" then
      raise("second argument to redis.register_function must be a function")
    end
    name = tostring(name)
  else
    raise("wrong number of arguments to redis.register_function")
  end
  if not find(name, "^[%w_]+$") then
    raise("Library names can only contain letters, numbers, or underscores(_) and must be at least one character long")
  elseif registered[name] then
    raise("Function already exists in the library")
  end
  registered[name] = true
  local words = {}
  for flag in next, flags or {} do
    words[#words + 1] = flag
  end
  registering[#registering + 1] = {name, description or false, concat(words, " "), callback}
end

local of_libraries = {redis = {register_function = register_function}}
for name, value in pairs(redis) do
  if name == "log" or sub(name, 1, 4) == "LOG_" or sub(name, 1, 13) == "REDIS_VERSION" then
    of_libraries.redis[name] = value
  end
end
setmetatable(of_libraries.redis, {__index = nonexistent})
of_libraries.redis = protect({}, of_libraries.redis)
setmetatable(of_libraries, {__index = nonexistent})
local of_environment = getmetatable(environment)

local function load_library(called)
  -- What it has registered; or false and what went wrong, nil if it took too long.
  killed, killed_at = false, nil
  registering, registered = {}, {}
  of_environment.__index = of_libraries
  local is_well, failure = xpcall(called, tell_error)
  of_environment.__index = globals
  local found = registering
  registering, registered = nil, nil
  killed, killed_at = false, nil
  if is_well then
    return found
  elseif failure == KILLED then
    return nil
  end
  if type(failure) ~= "table" then  -- where memory or C's stack has ended nothing was told of it
    return false, "ERR " .. tostring(failure)
  end
  local text = rawget(failure, "err")
  return false, is_string(text) and c_string(tostring(text)) or "(null)"
end

for name in pairs(original) do
  original[name] = nil
end
sethook(tick, "", ticks)
collectgarbage("setpause", 150)

return {
  run_script = run_script, run_function = run_function, load_library = load_library, keep = keep, dump = string.dump,
  own = function(called)
    return setfenv(called, environment)
  end,
}
