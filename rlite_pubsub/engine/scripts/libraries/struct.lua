-- struct 0.2 (Roberto Ierusalimschy's), as Redis 7.0.15 has it: packs and unpacks structures as C has them.

local arguments, floats = ...

local byte, char, find, match, rep, reverse, sub =
  string.byte, string.char, string.find, string.match, string.rep, string.reverse, string.sub
local concat, floor = table.concat, math.floor
local select, tonumber, type, unpack = select, tonumber, type, unpack
local raise, argument_error = arguments.raise, arguments.argument_error
local check_string, check_number = arguments.check_string, arguments.check_number
local optional_integer, to_integer = arguments.optional_integer, arguments.integer
local float_packed, double_packed, float_unpacked, double_unpacked =
  floats.float_packed, floats.double_packed, floats.float_unpacked, floats.double_unpacked

local STACK = 8000
local WORD = 4294967296
local INT_MAX = 2147483647
local MAX_INTEGER_BYTES = 32
local MAX_ALIGNMENT = 8
local SIZES = { B = 1, b = 1, H = 2, h = 2, L = 8, l = 8, T = 8, f = 4, d = 8, x = 1 }
local INTEGERS = { b = true, B = true, h = true, H = true, l = true, L = true, T = true, i = true, I = true }

-- A format as it is walked: `at` is behind the option.

local function number_behind(format, at, default)
  local _, stop = find(format, '^%d+', at)
  if not stop then
    return default, at
  end
  local digits = sub(format, at, stop)
  local number = tonumber(digits)
  if number > INT_MAX then
    raise('integral size overflow')
  end
  return number, stop + 1
end

-- The size of the option, and where the next is.
local function size_of(option, format, at)
  local size = SIZES[option]
  if size then
    return size, at
  elseif option == 'c' then
    size, at = number_behind(format, at, 1)
    return size, at
  elseif option == 'i' or option == 'I' then
    size, at = number_behind(format, at, 4)
    if size > MAX_INTEGER_BYTES then
      raise('integral size ' .. size .. ' is larger than limit of ' .. MAX_INTEGER_BYTES)
    end
    return size, at
  end
  return 0, at
end

-- The bits that are set in both: `mask` is less than 32.
local function both(value, mask)
  local result, place = 0, 1
  value = value % 32
  while mask > 0 do
    if mask % 2 == 1 and value % 2 == 1 then
      result = result + place
    end
    value, mask, place = floor(value / 2), floor(mask / 2), place * 2
  end
  return result
end

-- How many bytes align an element of this size at this place.
local function padding(place, align, option, size)
  if size == 0 or option == 'c' then
    return 0
  end
  if size > align then
    size = align
  end
  return (both(size - both(place, size - 1), size - 1))
end

-- What an option that is no element changes: whether big numbers begin with the high byte, the alignment, and where the
-- next option is.
local function controlled(option, format, at, is_big, align)
  if option == '>' then
    is_big = true
  elseif option == '<' then
    is_big = false
  elseif option == '!' then
    align, at = number_behind(format, at, MAX_ALIGNMENT)
    local power = align
    while power > 1 and power % 2 == 0 do
      power = power / 2
    end
    if power ~= 1 then
      raise('alignment ' .. align .. ' is not a power of 2')
    end
  elseif option ~= ' ' then
    argument_error(1, "invalid format option '" .. option .. "'")
  end
  return is_big, align, at
end

local function check_format(value, count)
  local format = check_string(1, value, count)
  return (match(format, '^[^%z]*'))
end

-- The halves, of 32 bits each, that C makes of a number when it casts it to 64 bits.
local function halves(value)
  if value >= 9223372036854775808 then
    value = value < 18446744073709551616 and value or 0
  elseif value ~= value then
    return 2147483648, 0
  else
    value = to_integer(value)
  end
  return floor(value / WORD) % WORD, value % WORD
end

local function packed_integer(value, size, is_big)
  local high, low = halves(value)
  local bytes = {}
  for place = 1, size do
    local half = place <= 4 and low or high
    bytes[place] = place <= 8 and floor(half / 256 ^ ((place - 1) % 4)) % 256 or 0
  end
  local packed = char(unpack(bytes))
  if is_big then
    packed = reverse(packed)
  end
  return packed
end

-- As packed_integer made it; what stands beyond the lowest 64 bits is not looked at.
local function unpacked_integer(data, is_big, is_signed)
  local size = #data
  if not is_big then
    data = reverse(data)
  end
  local high, low = 0, 0
  for place = size > 8 and size - 7 or 1, size do
    high = (high * 256 + floor(low / 16777216)) % WORD
    low = low * 256 % WORD + byte(data, place)
  end
  if is_signed then
    local bit = (size * 8 - 1) % 64 -- as the processor shifts
    if bit >= 32 then
      local sign = 2 ^ (bit - 32)
      if high >= sign then
        high = WORD - sign + high % sign
      end
    else
      local sign = 2 ^ bit
      if high > 0 or low >= sign then
        high, low = WORD - 1, WORD - sign + low % sign
      end
    end
    if high >= 2147483648 then
      high = high - WORD
    end
  end
  return high * WORD + low
end

local function oriented(packed, is_big)
  if is_big then
    return packed
  end
  return (reverse(packed))
end

local M = {}

function M.pack(...)
  local count = select('#', ...)
  local format = check_format((...), count)
  -- C leaves a nil behind the arguments: one that is missing is nil and not "no value".
  local values, number = { ... }, 2
  local out, place, at = {}, 0, 1
  local is_big, align = false, 1
  while at <= #format do
    local option = sub(format, at, at)
    local size
    size, at = size_of(option, format, at + 1)
    local gap = padding(place, align, option, size)
    if gap > 0 then
      out[#out + 1] = rep('\0', gap)
      place = place + gap
    end
    if INTEGERS[option] then
      out[#out + 1] = packed_integer(check_number(number, values[number], number), size, is_big)
      number = number + 1
    elseif option == 'x' then
      out[#out + 1] = '\0'
    elseif option == 'f' or option == 'd' then
      local value = check_number(number, values[number], number)
      number = number + 1
      local packed
      if option == 'd' then
        packed = double_packed(value)
      else
        packed = float_packed(value)
      end
      out[#out + 1] = oriented(packed, is_big)
    elseif option == 'c' or option == 's' then
      local value = check_string(number, values[number], number)
      number = number + 1
      if size == 0 then
        size = #value
      end
      if #value < size then
        argument_error(number, 'string too short')
      end
      out[#out + 1] = sub(value, 1, size)
      if option == 's' then
        out[#out + 1] = '\0'
        size = size + 1
      end
    else
      is_big, align, at = controlled(option, format, at, is_big, align)
    end
    place = place + size
  end
  return (concat(out))
end

function M.unpack(...)
  local count = select('#', ...)
  local format, data, place = ...
  format = check_format(format, count)
  data = check_string(2, data, count)
  place = optional_integer(3, place, count, 1)
  if place == 0 then
    argument_error(3, 'offset must be 1 or greater')
  end
  if format == '' then
    return place
  end
  place = place - 1
  local length = #data
  local values, found, at = {}, 0, 1
  local is_big, align = false, 1
  while at <= #format do
    local option = sub(format, at, at)
    local size
    size, at = size_of(option, format, at + 1)
    if place >= 0 then
      place = place + padding(place, align, option, size)
    end
    if place < 0 or size > length or place > length - size then
      argument_error(2, 'data string too short')
    end
    if count + found + 2 > STACK then
      raise('stack overflow (too many results)')
    end
    if INTEGERS[option] then
      found = found + 1
      values[found] = unpacked_integer(sub(data, place + 1, place + size), is_big, option >= 'a')
    elseif option == 'f' then
      found = found + 1
      values[found] = float_unpacked(oriented(sub(data, place + 1, place + 4), is_big))
    elseif option == 'd' then
      found = found + 1
      values[found] = double_unpacked(oriented(sub(data, place + 1, place + 8), is_big))
    elseif option == 'c' then
      if size == 0 then
        local before = tonumber(values[found])
        if found == 0 or not before then
          raise("format 'c0' needs a previous size")
        end
        found = found - 1
        size = before < 18446744073709551616 and to_integer(before) or 0
        if size < 0 or size > length or place > length - size then
          argument_error(2, 'data string too short')
        end
      end
      found = found + 1
      values[found] = sub(data, place + 1, place + size)
    elseif option == 's' then
      local stop = find(data, '%z', place + 1)
      if not stop then
        raise('unfinished string in data')
      end
      found = found + 1
      values[found] = sub(data, place + 1, stop - 1)
      size = stop - place
    elseif option ~= 'x' then
      is_big, align, at = controlled(option, format, at, is_big, align)
    end
    place = place + size
  end
  values[found + 1] = place + 1
  found = found + 1
  if found < 7990 then
    return unpack(values, 1, found)
  end
  return values[1], values[2], values[3], values[4], values[5], values[6], values[7], values[8], values[9], values[10],
    unpack(values, 11, found)
end

function M.size(...)
  local format = check_format((...), select('#', ...))
  local place, at = 0, 1
  local align = 1
  while at <= #format do
    local option = sub(format, at, at)
    local size
    size, at = size_of(option, format, at + 1)
    place = place + padding(place, align, option, size)
    if option == 's' then
      argument_error(1, "option 's' has no fixed size")
    elseif option == 'c' and size == 0 then
      argument_error(1, "option 'c0' has no fixed size")
    end
    if not find(option, '%w') then
      local _
      _, align, at = controlled(option, format, at, false, align)
    end
    place = place + size
  end
  return place
end

return M
