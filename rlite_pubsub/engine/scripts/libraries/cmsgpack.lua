-- cmsgpack (lua-cmsgpack 0.4.0): MessagePack.
--
-- What C calls its stack (at most 8,000 values) is counted, for it ends nesting and streams that no other limit ends.

local arguments, floats, unpacked_by_c = ...

local byte, char, sub = string.byte, string.char, string.sub
local concat, floor = table.concat, math.floor
local error, next, select, type, unpack = error, next, select, type, unpack
local raise, argument_error = arguments.raise, arguments.argument_error
local check_string, check_integer = arguments.check_string, arguments.check_integer
local optional_integer, int = arguments.optional_integer, arguments.int
local float_packed, double_packed, float_unpacked, double_unpacked =
  floats.float_packed, floats.double_packed, floats.float_unpacked, floats.double_unpacked

local STACK = 8000
local MAX_NESTING = 16
local INT_MAX = 2147483647

-- Packing.

local function two_bytes(value)
  return (char(floor(value / 256) % 256, value % 256))
end

local function four_bytes(value)
  return (char(floor(value / 16777216) % 256, floor(value / 65536) % 256, floor(value / 256) % 256, value % 256))
end

local function packed_integer(value)
  if value >= 0 then
    if value <= 127 then
      return (char(value))
    elseif value <= 0xff then
      return (char(0xcc, value))
    elseif value <= 0xffff then
      return '\205' .. two_bytes(value)
    elseif value <= 0xffffffff then
      return '\206' .. four_bytes(value)
    end
    return '\207' .. four_bytes(floor(value / 4294967296)) .. four_bytes(value % 4294967296)
  elseif value >= -32 then
    return (char(256 + value))
  elseif value >= -128 then
    return (char(0xd0, 256 + value))
  elseif value >= -32768 then
    return '\209' .. two_bytes(value)
  elseif value >= -2147483648 then
    return '\210' .. four_bytes(value)
  end
  return '\211' .. four_bytes(floor(value / 4294967296)) .. four_bytes(value % 4294967296)
end

-- The head of a string, an array or a map; `small`, `two` and `four` are first bytes.
local function head(length, least, limit, two, four)
  if length < limit then
    return (char(least + length))
  elseif length <= 0xffff then
    return char(two) .. two_bytes(length)
  end
  return char(four) .. four_bytes(length)
end

local function packed_float(value)
  local short, is_same = float_packed(value)
  if is_same then
    return '\202' .. short
  end
  return '\203' .. double_packed(value)
end

-- How many elements the table has as an array; nothing if it is none.
local function array_length(value)
  local count, max = 0, 0
  for key in next, value do
    if type(key) ~= 'number' or key <= 0 or key > INT_MAX or floor(key) ~= key then
      return nil
    end
    if key > max then
      max = key
    end
    count = count + 1
  end
  if max == count then
    return count
  end
  return nil
end

-- Puts the value behind the `count` pieces that there are; how many there are then.
local function append(out, count, value, level)
  local kind = type(value)
  count = count + 1
  if kind == 'string' then
    local length = #value
    if length >= 32 and length <= 0xff then
      out[count] = char(0xd9, length) .. value
    else
      out[count] = head(length, 0xa0, 32, 0xda, 0xdb)
      count = count + 1
      out[count] = value
    end
  elseif kind == 'number' then
    if floor(value) == value and value >= -9223372036854775808 and value < 9223372036854775808 then
      out[count] = packed_integer(value)
    else
      out[count] = packed_float(value)
    end
  elseif kind == 'boolean' then
    out[count] = value and '\195' or '\194'
  elseif kind == 'table' and level < MAX_NESTING then
    local length = array_length(value)
    if length then
      out[count] = head(length, 0x90, 16, 0xdc, 0xdd)
      for index = 1, length do
        count = append(out, count, value[index], level + 1)
      end
    else
      length = 0
      for _ in next, value do
        length = length + 1
      end
      out[count] = head(length, 0x80, 16, 0xde, 0xdf)
      for key, member in next, value do
        count = append(out, count, key, level + 1)
        count = append(out, count, member, level + 1)
      end
    end
  else
    out[count] = '\192'
  end
  return count
end

-- Unpacking. One text at a time: no script runs in the midst.

local text, at -- `at`: the next byte

local function need(count)
  if #text - at + 1 < count then
    text = nil
    raise('Missing bytes in input.')
  end
end

local function check_stack(used, what)
  if used + 1 > STACK then
    text = nil
    raise('stack overflow (' .. what .. ')')
  end
end

-- An integer of so many bytes behind the first, and the place is behind it.
local function taken(count)
  need(1 + count)
  local from = at + 1
  at = from + count
  if count == 1 then
    return (byte(text, from))
  elseif count == 2 then
    local first, second = byte(text, from, from + 1)
    return first * 256 + second
  end
  local first, second, third, fourth = byte(text, from, from + 3)
  return first * 16777216 + second * 65536 + third * 256 + fourth
end

local function taken_string(head_bytes, length)
  need(head_bytes + length)
  local from = at + head_bytes
  at = from + length
  return (sub(text, from, at - 1))
end

local value_at

local function array_at(length, used)
  local array = {}
  check_stack(used + 1, 'in function mp_decode_to_lua_array')
  for index = 1, length do
    array[index] = value_at(used + 2)
  end
  return array
end

local function map_at(length, used)
  local map = {}
  for _ = 1, length do
    local key = value_at(used + 1)
    local value = value_at(used + 2)
    if key == nil then
      text = nil
      error('table index is nil', 0)
    elseif key ~= key then
      text = nil
      error('table index is NaN', 0)
    end
    map[key] = value
  end
  return map
end

-- A signed integer of 64 bits behind the first byte. C reads unsigned ones so, too.
local function taken_64()
  need(9)
  local high = taken(4)
  at = at - 1
  local low = taken(4)
  if high >= 2147483648 then
    high = high - 4294967296
  end
  return high * 4294967296 + low
end

local READ = {
  [0xc0] = function() at = at + 1 return nil end,
  [0xc2] = function() at = at + 1 return false end,
  [0xc3] = function() at = at + 1 return true end,
  [0xca] = function()
    need(5)
    at = at + 5
    return (float_unpacked(sub(text, at - 4, at - 1)))
  end,
  [0xcb] = function()
    need(9)
    at = at + 9
    return (double_unpacked(sub(text, at - 8, at - 1)))
  end,
  [0xcc] = function() return (taken(1)) end,
  [0xcd] = function() return (taken(2)) end,
  [0xce] = function() return (taken(4)) end,
  [0xcf] = taken_64,
  [0xd0] = function()
    local value = taken(1)
    return value < 128 and value or value - 256
  end,
  [0xd1] = function()
    local value = taken(2)
    return value < 32768 and value or value - 65536
  end,
  [0xd2] = function()
    local value = taken(4)
    return value < 2147483648 and value or value - 4294967296
  end,
  [0xd3] = taken_64,
  [0xd9] = function()
    need(2)
    return (taken_string(2, (byte(text, at + 1))))
  end,
  [0xda] = function()
    need(3)
    local first, second = byte(text, at + 1, at + 2)
    return (taken_string(3, first * 256 + second))
  end,
  [0xdb] = function()
    local length = taken(4)
    return (taken_string(0, length))
  end,
  [0xdc] = function(used)
    local length = taken(2)
    return (array_at(length, used))
  end,
  [0xdd] = function(used)
    local length = taken(4)
    return (array_at(length, used))
  end,
  [0xde] = function(used)
    local length = taken(2)
    return (map_at(length, used))
  end,
  [0xdf] = function(used)
    local length = taken(4)
    return (map_at(length, used))
  end,
}

-- The value at the place, which is behind it then. `used`: how many values C's stack has.
function value_at(used)
  need(1)
  check_stack(used, 'too many return values at once; use unpack_one or unpack_limit instead.')
  local first = byte(text, at)
  if first < 0x80 then
    at = at + 1
    return first
  elseif first >= 0xe0 then
    at = at + 1
    return first - 256
  elseif first >= 0xa0 and first < 0xc0 then
    return (taken_string(1, first - 0xa0))
  elseif first < 0x90 then
    at = at + 1
    return (map_at(first - 0x80, used))
  elseif first < 0xa0 then
    at = at + 1
    return (array_at(first - 0x90, used))
  end
  local read = READ[first]
  if not read then
    text = nil
    raise('Bad data format in input.')
  end
  return (read(used))
end

-- Up to `limit` values behind `offset`, and how many; before them where the next is, where that was asked for.
local function unpacked(given, limit, offset)
  local length = #given
  if offset < 0 or limit < 0 then
    raise('Invalid request to unpack with offset of ' .. int(offset) .. ' and limit of ' .. int(length) .. '.')
  elseif offset > length then
    raise('Start offset ' .. int(offset) .. ' greater than input length ' .. int(length) .. '.')
  end
  local everything = limit == 0 and offset == 0
  if everything then
    limit = INT_MAX
  end
  text, at = given, offset + 1
  local values, count, first = {}, 0, everything and 0 or 1
  while at <= length and count < limit do
    count = count + 1
    values[count + first] = value_at(count)
  end
  text = nil
  if not everything then
    check_stack(count + 1, 'in function mp_unpack_full')
    values[1] = at > length and -1 or at - 1
  end
  return values, count + first
end

-- As `unpack`, which takes a few less than C can return.
local function returned(values, count)
  if count < 7990 then
    return unpack(values, 1, count)
  end
  return values[1], values[2], values[3], values[4], values[5], values[6], values[7], values[8], values[9], values[10],
    unpack(values, 11, count)
end

local M = {}

function M.pack(...)
  local count = select('#', ...)
  if count == 0 then
    argument_error(0, 'MessagePack pack needs input.')
  elseif 2 * count > STACK then
    argument_error(0, 'Too many arguments for MessagePack pack.')
  end
  local out = {}
  if count == 1 then
    append(out, 0, (...), 0)
  else
    local values, pieces = { ... }, 0
    for number = 1, count do
      pieces = append(out, pieces, values[number], 0)
    end
  end
  return (concat(out))
end

function M.unpack(...)
  local given = check_string(1, (...), select('#', ...))
  if unpacked_by_c then
    local is_plain, value = unpacked_by_c(given)
    if is_plain then
      return value
    end
  end
  return returned(unpacked(given, 0, 0))
end

function M.unpack_one(...)
  local count = select('#', ...)
  local given, offset = ...
  offset = optional_integer(2, offset, count, 0)
  given = check_string(1, given, count)
  return returned(unpacked(given, 1, offset))
end

function M.unpack_limit(...)
  local count = select('#', ...)
  local given, limit, offset = ...
  limit = check_integer(2, limit, count)
  offset = optional_integer(3, offset, count, 0)
  given = check_string(1, given, count)
  return returned(unpacked(given, limit, offset))
end

M._NAME = 'cmsgpack'
M._VERSION = 'lua-cmsgpack 0.4.0'
M._COPYRIGHT = 'Copyright (C) 2012, Salvatore Sanfilippo'
M._DESCRIPTION = 'MessagePack C implementation for Lua'

return M
