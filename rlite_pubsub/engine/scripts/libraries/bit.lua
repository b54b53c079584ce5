-- bit (Lua BitOp 1.0.2): bitwise operations on 32-bit integers.

local arguments = ...

local floor, frexp = math.floor, math.frexp
local format, sub, upper = string.format, string.sub, string.upper
local select, tonumber, type = select, tonumber, type
local type_error = arguments.type_error

local WORD = 4294967296

-- The lowest 32 bits that C finds in the argument once 2^52 + 2^51 is added to it.
local function bits(number, value, count)
  local read = type(value) == 'number' and value or (type(value) == 'string' and tonumber(value)) or nil
  if not read then
    type_error(number, 'number', value, count)
  end
  if read >= 0 and read < WORD and floor(read) == read then
    return read + 0 -- no negative zero
  end
  local shifted = read + 6755399441055744
  if shifted >= 4503599627370496 and shifted < 9007199254740992 then
    return shifted % WORD
  elseif shifted - shifted ~= 0 then
    return 0 -- infinite, or not a number
  end
  local mantissa = frexp(shifted < 0 and -shifted or shifted)
  return mantissa * 9007199254740992 % WORD
end

local function signed(word)
  if word >= 2147483648 then
    return word - WORD
  end
  return word
end

local BOTH = {} -- of two groups of 4 bits, at 16 * one + the other: those that are set in both
for one = 0, 15 do
  for other = 0, 15 do
    local both, place = 0, 1
    for _ = 1, 4 do
      if floor(one / place) % 2 == 1 and floor(other / place) % 2 == 1 then
        both = both + place
      end
      place = place * 2
    end
    BOTH[16 * one + other] = both
  end
end

local function both(one, other)
  local result, place = 0, 1
  for _ = 1, 8 do
    local low, low_of_other = one % 16, other % 16
    result = result + place * BOTH[16 * low + low_of_other]
    one, other, place = (one - low) / 16, (other - low_of_other) / 16, place * 16
  end
  return result
end

-- An operation on any number of arguments, from the last to the first, as C checks them.
local function of_all(operation)
  return function(...)
    local count = select('#', ...)
    local result = bits(1, (...), count)
    for number = count, 2, -1 do
      result = operation(result, bits(number, (select(number, ...)), count))
    end
    return (signed(result))
  end
end

local function of_shift(operation)
  return function(...)
    local count = select('#', ...)
    local value, places = ...
    value, places = bits(1, value, count), bits(2, places, count) % 32
    return (signed(operation(value, 2 ^ places, 2 ^ (32 - places))))
  end
end

local M = {}

function M.tobit(...)
  return (signed(bits(1, (...), select('#', ...))))
end

function M.bnot(...)
  return (signed(WORD - 1 - bits(1, (...), select('#', ...))))
end

M.band = of_all(both)

M.bor = of_all(function(one, other)
  return one + other - both(one, other)
end)

M.bxor = of_all(function(one, other)
  return one + other - 2 * both(one, other)
end)

M.lshift = of_shift(function(value, times)
  return value * times % WORD
end)

M.rshift = of_shift(function(value, times)
  return floor(value / times)
end)

M.arshift = of_shift(function(value, times)
  return floor(signed(value) / times) % WORD
end)

M.rol = of_shift(function(value, times, rest)
  return value * times % WORD + floor(value / rest)
end)

M.ror = of_shift(function(value, times, rest)
  return floor(value / times) + value * rest % WORD
end)

function M.bswap(...)
  local value = bits(1, (...), select('#', ...))
  local first, second, third = value % 256, floor(value / 256) % 256, floor(value / 65536) % 256
  return (signed(first * 16777216 + second * 65536 + third * 256 + floor(value / 16777216)))
end

function M.tohex(...)
  local count = select('#', ...)
  local value, digits = ...
  value = bits(1, value, count)
  digits = count < 2 and 8 or signed(bits(2, digits, count))
  local text = format('%04x%04x', floor(value / 65536), value % 65536)
  if digits < 0 then
    digits, text = -digits, upper(text)
  end
  return digits >= 8 and text or sub(text, 9 - digits)
end

return M
