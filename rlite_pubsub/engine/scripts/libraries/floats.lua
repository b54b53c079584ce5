-- Floats as their bytes, high byte first (IEEE 754), and back. Of what is not a number only the sign is kept.
--
-- It is Lua, for nothing of Python's may be called where memory can run out: Lua's errors jump over Python's frames.

local byte, char, find, format = string.byte, string.char, string.find, string.format
local floor, frexp, ldexp = math.floor, math.frexp, math.ldexp

local NEGATIVE_NAN = 0 / 0 -- as x86 makes it
local POSITIVE_NAN = -NEGATIVE_NAN
if find(format('%f', POSITIVE_NAN), '-', 1, true) then
  NEGATIVE_NAN, POSITIVE_NAN = POSITIVE_NAN, NEGATIVE_NAN
end

local M = {}

local function is_negative(number)
  if number ~= number then
    return find(format('%f', number), '-', 1, true) ~= nil
  end
  return number < 0 or (number == 0 and 1 / number < 0)
end

local function rounded(number) -- to the even one, in the middle
  local whole = floor(number)
  local rest = number - whole
  if rest > 0.5 or (rest == 0.5 and whole % 2 == 1) then
    return whole + 1
  end
  return whole
end

function M.double_packed(number)
  local sign = is_negative(number) and 128 or 0
  local exponent, mantissa = 0, 0
  if number ~= number then
    exponent, mantissa = 2047, 2251799813685248
  elseif number - number ~= 0 then
    exponent = 2047
  elseif number ~= 0 then
    local fraction
    fraction, exponent = frexp(number < 0 and -number or number)
    exponent = exponent + 1022
    if exponent > 0 then
      mantissa = (fraction * 2 - 1) * 4503599627370496
    else
      mantissa = ldexp(fraction, exponent + 52)
      exponent = 0
    end
  end
  local high, low = floor(mantissa / 4294967296), mantissa % 4294967296
  return (char(
    sign + floor(exponent / 16), exponent % 16 * 16 + floor(high / 65536), floor(high / 256) % 256, high % 256,
    floor(low / 16777216), floor(low / 65536) % 256, floor(low / 256) % 256, low % 256
  ))
end

-- The number as the float that is nearest, and whether that is the same number.
function M.float_packed(number)
  local sign = is_negative(number) and 128 or 0
  local exponent, mantissa, is_same = 0, 0, true
  if number ~= number then
    exponent, mantissa, is_same = 255, 4194304, false
  elseif number - number ~= 0 then
    exponent = 255
  elseif number ~= 0 then
    local fraction, exact
    fraction, exponent = frexp(number < 0 and -number or number)
    exponent = exponent + 126
    if exponent > 0 then
      exact = (fraction * 2 - 1) * 8388608
    else
      exact = ldexp(fraction, exponent + 23)
      exponent = 0
    end
    mantissa = rounded(exact)
    is_same = mantissa == exact
    if mantissa == 8388608 then
      mantissa, exponent = 0, exponent + 1
    end
    if exponent > 254 then
      exponent, mantissa, is_same = 255, 0, false
    end
  end
  return char(
    sign + floor(exponent / 2), exponent % 2 * 128 + floor(mantissa / 65536), floor(mantissa / 256) % 256, mantissa % 256
  ), is_same
end

local function value(is_minus, exponent, mantissa, most, bits)
  local number
  if exponent == most then
    if mantissa ~= 0 then
      return is_minus and NEGATIVE_NAN or POSITIVE_NAN
    end
    number = 1 / 0
  elseif exponent == 0 then
    number = ldexp(mantissa, 2 - (most + 1) / 2 - bits)
  else
    number = ldexp(mantissa + 2 ^ bits, exponent - (most - 1) / 2 - bits)
  end
  if is_minus then
    return -number
  end
  return number
end

function M.double_unpacked(data)
  local a, b, c, d, e, f, g, h = byte(data, 1, 8)
  local high, low = b % 16 * 65536 + c * 256 + d, e * 16777216 + f * 65536 + g * 256 + h
  return (value(a >= 128, a % 128 * 16 + floor(b / 16), high * 4294967296 + low, 2047, 52))
end

function M.float_unpacked(data)
  local a, b, c, d = byte(data, 1, 4)
  return (value(a >= 128, a % 128 * 2 + floor(b / 128), b % 128 * 65536 + c * 256 + d, 255, 23))
end

return M
