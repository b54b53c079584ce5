-- cjson 2.1.0, as Redis 7.0.15 has it.
--
-- Tables are read as Lua keeps them, without metamethods, so no script runs in the midst. What C calls its stack (at most
-- 8,000 values) is counted, for it ends nesting that no other limit ends.

local arguments = ...

local byte, char, find, format, gsub, match, sub =
  string.byte, string.char, string.find, string.format, string.gsub, string.match, string.sub
local concat, floor = table.concat, math.floor
local getmetatable, newproxy, next, rawget, select, tonumber, tostring, type =
  getmetatable, newproxy, next, rawget, select, tonumber, tostring, type
local raise, argument_error = arguments.raise, arguments.argument_error
local check_string, check_integer, int = arguments.check_string, arguments.check_integer, arguments.int

local STACK = 8000
local INT_MAX, INT_MIN = 2147483647, -2147483648

local null = newproxy(true)
getmetatable(null).__tostring = function() return 'userdata: (nil)' end
getmetatable(null).__metatable = false

-- Encoding.

local SPECIAL = '[%z\1-\31"\\/\127]'
local ESCAPES = { ['"'] = '\\"', ['\\'] = '\\\\', ['/'] = '\\/', ['\127'] = '\\u007f' }
for code = 0, 31 do
  ESCAPES[char(code)] = format('\\u%04x', code)
end
ESCAPES['\b'], ESCAPES['\t'], ESCAPES['\n'], ESCAPES['\f'], ESCAPES['\r'] = '\\b', '\\t', '\\n', '\\f', '\\r'

local function refuse(value, reason)
  raise('Cannot serialise ' .. type(value) .. ': ' .. reason)
end

-- How many elements the table has as an array; at most 0 if it is none.
local function array_length(config, value)
  local max, items = 0, 0
  for key in next, value do
    if type(key) ~= 'number' or key < 1 or floor(key) ~= key then
      return -1
    end
    if key > max then
      max = key > INT_MAX and INT_MIN or key -- what a C int makes of it
    end
    items = items + 1
  end
  local ratio = config.encode_sparse_ratio
  if ratio > 0 and max > int(items * ratio) and max > config.encode_sparse_safe then
    if not config.encode_sparse_convert then
      refuse(value, 'excessively sparse array')
    end
    return -1
  end
  return max
end

-- The number, or a text of it. Lua itself writes numbers with 14 digits.
local function number_text(config, number)
  if number - number ~= 0 then
    if config.encode_invalid_numbers == 0 then
      refuse(number, 'must not be NaN or Inf')
    elseif config.encode_invalid_numbers == 2 then
      return 'null'
    elseif number ~= number then
      return 'nan'
    end
  end
  if config.encode_number_precision == 14 then
    return number
  end
  return (format(config.number_format, number))
end

-- Puts the value behind the `count` pieces of text that there are; how many there are then.
local function append(config, out, count, value, depth, slots)
  local kind = type(value)
  count = count + 1
  if kind == 'string' then
    if find(value, SPECIAL) then
      value = gsub(value, SPECIAL, ESCAPES)
    end
    out[count] = '"' .. value .. '"'
  elseif kind == 'number' then
    out[count] = number_text(config, value)
  elseif kind == 'boolean' then
    out[count] = value and 'true' or 'false'
  elseif kind == 'table' then
    depth = depth + 1
    if depth > config.encode_max_depth or slots + 3 > STACK then
      raise('Cannot serialise, excessive nesting (' .. depth .. ')')
    end
    local length = array_length(config, value)
    if length > 0 then
      out[count] = '['
      for index = 1, length do
        count = append(config, out, count, rawget(value, index), depth, slots + 1) + 1
        out[count] = ','
      end
      out[count] = ']'
    else
      local before = '{"'
      for key, member in next, value do
        local kind_of_key = type(key)
        if kind_of_key == 'string' then
          if find(key, SPECIAL) then
            key = gsub(key, SPECIAL, ESCAPES)
          end
        elseif kind_of_key == 'number' then
          key = number_text(config, key)
        else
          refuse(key, 'table key must be a number or string')
        end
        out[count] = before .. key .. '":'
        before = ',"'
        count = append(config, out, count, member, depth, slots + 2) + 1
      end
      out[count] = before == '{"' and '{}' or '}'
    end
  elseif value == nil or value == null then
    out[count] = 'null'
  else
    refuse(value, 'type not supported')
  end
  return count
end

-- Decoding. One text at a time: no script runs in the midst.

local config, text, at -- `at`: where the next token begins

local SPACE, STRUCTURE = '[^ \t\n\r]', {
  [0] = 'T_END',
  [0x7b] = 'T_OBJ_BEGIN',
  [0x7d] = 'T_OBJ_END',
  [0x5b] = 'T_ARR_BEGIN',
  [0x5d] = 'T_ARR_END',
  [0x2c] = 'T_COMMA',
  [0x3a] = 'T_COLON',
}
local LITERALS = { [0x74] = 'true', [0x66] = 'false', [0x6e] = 'null' }
local UNESCAPED = {
  [0x22] = '"', [0x5c] = '\\', [0x2f] = '/', [0x62] = '\b', [0x74] = '\t', [0x6e] = '\n', [0x66] = '\f', [0x72] = '\r',
}

local function utf8(code)
  if code <= 0x7f then
    return (char(code))
  elseif code <= 0x7ff then
    return (char(0xc0 + floor(code / 0x40), 0x80 + code % 0x40))
  elseif code <= 0xffff then
    return (char(0xe0 + floor(code / 0x1000), 0x80 + floor(code / 0x40) % 0x40, 0x80 + code % 0x40))
  end
  return (char(
    0xf0 + floor(code / 0x40000),
    0x80 + floor(code / 0x1000) % 0x40,
    0x80 + floor(code / 0x40) % 0x40,
    0x80 + code % 0x40
  ))
end

-- The character of the escape \uXXXX at `from`, and where it ends; nothing if it is none.
local function unicode_escape(from)
  if not find(text, '^%x%x%x%x', from + 2) then
    return nil
  end
  local code = tonumber(sub(text, from + 2, from + 5), 16)
  if code < 0xd800 or code > 0xdfff then
    return utf8(code), from + 6
  end
  if code >= 0xdc00 or not find(text, '^\\u[dD][c-fC-F]%x%x', from + 6) then
    return nil
  end
  local low = tonumber(sub(text, from + 8, from + 11), 16)
  return utf8((code - 0xd800) * 0x400 + (low - 0xdc00) + 0x10000), from + 12
end

-- The token whose quote is at `from`: its type, its value or what is wrong, and where.
local function string_token(from)
  local start = from + 1
  local stop = find(text, '["\\%z]', start)
  if stop and byte(text, stop) == 0x22 then
    at = stop + 1
    return 'T_STRING', sub(text, start, stop - 1), from
  end
  local parts = {}
  while stop do
    parts[#parts + 1] = sub(text, start, stop - 1)
    local found = byte(text, stop)
    if found == 0x22 then
      at = stop + 1
      return 'T_STRING', concat(parts), from
    elseif found == 0 then
      break
    end
    local escape = byte(text, stop + 1)
    if escape == 0x75 then
      local character, following = unicode_escape(stop)
      if not character then
        return 'T_ERROR', 'invalid unicode escape code', stop
      end
      parts[#parts + 1] = character
      start = following
    elseif UNESCAPED[escape] then
      parts[#parts + 1] = UNESCAPED[escape]
      start = stop + 2
    else
      return 'T_ERROR', 'invalid escape code', stop
    end
    stop = find(text, '["\\%z]', start)
  end
  return 'T_ERROR', 'unexpected end of string', stop or #text + 1
end

-- Where the number that C's strtod finds at `from` ends; nothing if it finds none.
local function end_of_number(from)
  local _, stop = find(text, '^[+-]', from)
  local start = stop and stop + 1 or from
  local word = find(text, '^[iI][nN][fF]', start)
  if word then
    _, stop = find(text, '^[iI][nN][iI][tT][yY]', start + 3)
    return stop or start + 2
  elseif find(text, '^[nN][aA][nN]', start) then
    _, stop = find(text, '^%([%w_]*%)', start + 3)
    return stop or start + 2
  elseif find(text, '^0[xX]%.?%x', start) then
    _, stop = find(text, '^%x*%.?%x*', start + 2)
    local _, behind = find(text, '^[pP][+-]?%d+', stop + 1)
    return behind or stop
  elseif find(text, '^%.?%d', start) then
    _, stop = find(text, '^%d*%.?%d*', start)
    local _, behind = find(text, '^[eE][+-]?%d+', stop + 1)
    return behind or stop
  end
  return nil
end

local function number_token(from)
  local _, stop = find(text, '^%-?%d+', from)
  if not stop or find(text, '^[.eExX]', stop + 1) then
    stop = end_of_number(from)
    if not stop then
      return 'T_ERROR', 'invalid number', from
    end
  end
  at = stop + 1
  local number = tonumber(sub(text, from, stop))
  if not number then -- nan(...): Lua reads it, but not with whatever stands in it
    number = tonumber((gsub(sub(text, from, stop), '%(.*', '')))
  end
  return 'T_NUMBER', number, from
end

local function is_invalid_number(from)
  if find(text, '^%+', from) then
    return true
  end
  if find(text, '^%-', from) then
    from = from + 1
  end
  return (find(text, '^0[xX%d]', from) or find(text, '^[iI][nN][fF]', from) or find(text, '^[nN][aA][nN]', from))
    and true
    or false
end

-- The type of the next token, its value (of an error what is wrong) and its place.
local function next_token()
  local from = find(text, SPACE, at)
  if not from then
    at = #text + 1
    return 'T_END', nil, at
  end
  at = from
  local first = byte(text, from)
  local kind = STRUCTURE[first]
  if kind then
    if first ~= 0 then
      at = from + 1
    end
    return kind, nil, from
  elseif first == 0x22 then
    local found, value, place = string_token(from)
    return found, value, place
  elseif first == 0x2d or (first >= 0x30 and first <= 0x39) then
    if not config.decode_invalid_numbers and is_invalid_number(from) then
      return 'T_ERROR', 'invalid number', from
    end
    local found, value, place = number_token(from)
    return found, value, place
  end
  local literal = LITERALS[first]
  if literal and sub(text, from, from + #literal - 1) == literal then
    at = from + #literal
    if literal == 'null' then
      return 'T_NULL', null, from
    end
    return 'T_BOOLEAN', literal == 'true', from
  end
  if config.decode_invalid_numbers and find(text, '^[iInN+]', from) and is_invalid_number(from) then
    local found, value, place = number_token(from)
    return found, value, place
  end
  return 'T_ERROR', 'invalid token', from
end

local function unexpected(expected, kind, value, place)
  text = nil
  raise('Expected ' .. expected .. ' but found ' .. (kind == 'T_ERROR' and value or kind) .. ' at character ' .. place)
end

local function descend(depth, slots, more)
  if depth > config.decode_max_depth or slots + more > STACK then
    local place = at - 1
    text = nil
    raise('Found too many nested data structures (' .. depth .. ') at character ' .. place)
  end
end

local object_of, array_of

-- The value at `from`, where no space is: most are taken without looking at them as tokens. Lua has room for some 20,000
-- calls in each other, and nesting takes two at each level.
local function value_at(from, depth, slots)
  local first = byte(text, from)
  if first == 0x22 then
    local found, following = match(text, '^([^"\\%z]*)"()', from + 1)
    if found then
      at = following
      return found
    end
  elseif first and first >= 0x2d and first <= 0x39 and config.decode_invalid_numbers then
    local found, following = match(text, '^(-?%d+%.?%d*)()[],} \t\n\r]', from)
    if found then
      at = following
      return (tonumber(found))
    end
  elseif first == 0x7b then
    at = from + 1
    descend(depth + 1, slots, 3)
    return (object_of(depth + 1, slots))
  elseif first == 0x5b then
    at = from + 1
    descend(depth + 1, slots, 2)
    return (array_of(depth + 1, slots))
  end
  at = from
  local kind, value, place = next_token()
  if kind ~= 'T_STRING' and kind ~= 'T_NUMBER' and kind ~= 'T_BOOLEAN' and kind ~= 'T_NULL' then
    unexpected('value', kind, value, place)
  end
  return value
end

function object_of(depth, slots)
  local object = {}
  local from = match(text, '^[ \t\n\r]*()', at)
  if byte(text, from) == 0x7d then
    at = from + 1
    return object
  end
  while true do
    local key, following = match(text, '^"([^"\\%z]*)"[ \t\n\r]*:[ \t\n\r]*()', from)
    if not key then
      at = from
      local kind, value, place = next_token()
      if kind ~= 'T_STRING' then
        unexpected('object key string', kind, value, place)
      end
      key = value
      kind, value, place = next_token()
      if kind ~= 'T_COLON' then
        unexpected('colon', kind, value, place)
      end
      following = match(text, '^[ \t\n\r]*()', at)
    end
    object[key] = value_at(following, depth, slots + 2)
    local separator
    separator, from = match(text, '^[ \t\n\r]*([,}])[ \t\n\r]*()', at)
    if separator == '}' then
      at = from
      return object
    elseif not separator then
      unexpected('comma or object end', next_token())
    end
  end
end

function array_of(depth, slots)
  local array, index = {}, 0
  local from = match(text, '^[ \t\n\r]*()', at)
  if byte(text, from) == 0x5d then
    at = from + 1
    return array
  end
  while true do
    index = index + 1
    array[index] = value_at(from, depth, slots + 1)
    local separator
    separator, from = match(text, '^[ \t\n\r]*([],])[ \t\n\r]*()', at)
    if separator == ']' then
      at = from
      return array
    elseif not separator then
      unexpected('comma or array end', next_token())
    end
  end
end

-- Settings.

local function check_count(count, most)
  if count > most then
    argument_error(most + 1, 'found too many arguments')
  end
end

local function integer_option(settings, name, number, value, count, min, max)
  if value ~= nil then
    local read = int(check_integer(number, value, count))
    if read < min or read > max then
      argument_error(1, format('expected integer between %d and %d', min, max))
    end
    settings[name] = read
  end
  return settings[name]
end

-- Which of the words the value is, from 0 on. true and false are `on` and `off`.
local function word_option(number, value, count, words)
  if type(value) == 'boolean' then
    return value and 1 or 0
  end
  local word = check_string(number, value, count)
  word = gsub(word, '%z.*', '')
  for place = 1, #words do
    if words[place] == word then
      return place - 1
    end
  end
  argument_error(number, "invalid option '" .. word .. "'")
end

local SWITCH = { 'off', 'on' }
local INVALID_NUMBERS = { 'off', 'on', 'null' }

local function switch_option(settings, name, number, value, count)
  if value ~= nil then
    settings[name] = word_option(number, value, count, SWITCH) == 1
  end
  return settings[name]
end

local function new()
  local own = {
    encode_sparse_convert = false,
    encode_sparse_ratio = 2,
    encode_sparse_safe = 10,
    encode_max_depth = 1000,
    decode_max_depth = 1000,
    encode_invalid_numbers = 0,
    decode_invalid_numbers = true,
    encode_keep_buffer = true,
    encode_number_precision = 14,
  }
  -- In this order, as a table that is walked shows it.
  local M = {}

  function M.encode(...)
    if select('#', ...) ~= 1 then
      argument_error(1, 'expected 1 argument')
    end
    local value = ...
    local out = {}
    append(own, out, 0, value, 0, 1)
    return (concat(out))
  end

  function M.decode(...)
    if select('#', ...) ~= 1 then
      argument_error(1, 'expected 1 argument')
    end
    local given = ...
    given = check_string(1, given, 1)
    if #given >= 2 and (byte(given, 1) == 0 or byte(given, 2) == 0) then
      raise('JSON parser does not support UTF-16 or UTF-32')
    end
    config, text, at = own, given, 1
    local value = value_at(match(text, '^[ \t\n\r]*()'), 0, 1)
    local kind, error_of, place = next_token()
    if kind ~= 'T_END' then
      unexpected('the end', kind, error_of, place)
    end
    text = nil
    return value
  end

  function M.encode_sparse_array(...)
    local count = select('#', ...)
    check_count(count, 3)
    local convert, ratio, safe = ...
    convert = switch_option(own, 'encode_sparse_convert', 1, convert, 3)
    ratio = integer_option(own, 'encode_sparse_ratio', 2, ratio, 3, 0, INT_MAX)
    safe = integer_option(own, 'encode_sparse_safe', 3, safe, 3, 0, INT_MAX)
    return convert, ratio, safe
  end

  function M.encode_max_depth(...)
    check_count(select('#', ...), 1)
    local depth = ...
    return (integer_option(own, 'encode_max_depth', 1, depth, 1, 1, INT_MAX))
  end

  function M.decode_max_depth(...)
    check_count(select('#', ...), 1)
    local depth = ...
    return (integer_option(own, 'decode_max_depth', 1, depth, 1, 1, INT_MAX))
  end

  function M.encode_number_precision(...)
    check_count(select('#', ...), 1)
    local digits = ...
    digits = integer_option(own, 'encode_number_precision', 1, digits, 1, 1, 14)
    own.number_format = '%.' .. digits .. 'g'
    return digits
  end

  function M.encode_keep_buffer(...)
    check_count(select('#', ...), 1)
    local keeps = ...
    return (switch_option(own, 'encode_keep_buffer', 1, keeps, 1))
  end

  function M.encode_invalid_numbers(...)
    check_count(select('#', ...), 1)
    local word = ...
    if word ~= nil then
      own.encode_invalid_numbers = word_option(1, word, 1, INVALID_NUMBERS)
    end
    if own.encode_invalid_numbers == 2 then
      return 'null'
    end
    return own.encode_invalid_numbers == 1
  end

  function M.decode_invalid_numbers(...)
    check_count(select('#', ...), 1)
    local accepts = ...
    return (switch_option(own, 'decode_invalid_numbers', 1, accepts, 1))
  end

  M.new = new
  M.null = null
  M._NAME = 'cjson'
  M._VERSION = '2.1.0'
  return M
end

return new()
