-- What Lua's C interface (lauxlib.c) says of arguments and how it words errors, for functions that are C in Redis.
--
-- Whatever is loaded here has the name that C functions have, so messages and error handlers tell no difference. No
-- function of these files is left by a tail call: errors look for the frame of the caller, which would be lost.

local error, select, tonumber, type = error, select, tonumber, type
local floor = math.floor
local getinfo = debug.getinfo

local SOURCE = getinfo(1, 'S').source

local M = {}

-- How deep the caller of the library is below whoever calls this, and what is known of it.
local function caller()
  local level = 3
  local info = getinfo(level, 'Sl')
  while info and info.source == SOURCE and info.what ~= 'C' do
    level = level + 1
    info = getinfo(level, 'Sl')
  end
  return level, info
end

-- luaL_error: the message, behind the line of whoever called the library.
function M.raise(message)
  local _, info = caller()
  if info and info.currentline > 0 then
    message = info.short_src .. ':' .. info.currentline .. ': ' .. message
  end
  error(message, 0)
end

-- luaL_argerror.
function M.argument_error(number, message)
  local level, info = caller()
  local called = getinfo(level - 2, 'n') -- as we see it, one frame nearer than `caller` does
  if called.namewhat == 'method' then
    number = number - 1
  end
  if called.namewhat == 'method' and number == 0 then
    message = "calling '" .. called.name .. "' on bad self (" .. message .. ')'
  else
    message = 'bad argument #' .. number .. " to '" .. (called.name or '?') .. "' (" .. message .. ')'
  end
  if info and info.currentline > 0 then
    message = info.short_src .. ':' .. info.currentline .. ': ' .. message
  end
  error(message, 0)
end

-- luaL_typerror. `count`: how many arguments there are.
function M.type_error(number, expected, value, count)
  local got = number > count and 'no value' or type(value)
  M.argument_error(number, expected .. ' expected, got ' .. got)
end

function M.check_string(number, value, count)
  local kind = type(value)
  if kind == 'number' then
    return value .. ''
  elseif kind ~= 'string' then
    M.type_error(number, 'string', value, count)
  end
  return value
end

function M.check_number(number, value, count)
  local kind = type(value)
  if kind == 'number' then
    return value
  end
  local read = kind == 'string' and tonumber(value) or nil
  if not read then
    M.type_error(number, 'number', value, count)
  end
  return read
end

-- What becomes of a number that is made a 64-bit integer: what does not fit is the least there is.
function M.integer(value)
  if value >= 9223372036854775808 or value < -9223372036854775808 or value ~= value then
    return -9223372036854775808
  end
  if value < 0 then
    return -floor(-value)
  end
  return floor(value)
end

-- And a 32-bit one of that.
function M.int(value)
  value = value % 4294967296
  if value >= 2147483648 then
    return value - 4294967296
  end
  return value
end

function M.check_integer(number, value, count)
  local read = M.integer(M.check_number(number, value, count))
  return read
end

function M.optional_integer(number, value, count, default)
  if value == nil then
    return default
  end
  local read = M.check_integer(number, value, count)
  return read
end

return M
