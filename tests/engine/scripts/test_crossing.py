"""What stands between Python and Lua: what C does is what lupa's objects do, whatever a script returns and is told."""

from __future__ import annotations

import gc
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from c_module import compiled
from lupa import lua51
from recorded_session import House

from rlite_pubsub.engine.scripts import crossing, runner
from rlite_pubsub.engine.scripts.sandbox import LoadFailure, Sandbox

RETURNED = [
    "return {}",
    "return {{}}",
    "return {1, 2, 3}",
    "return {1, 'two', {3, {4, 'five'}}, true, false, 6}",
    "return {1, nil, 3}",
    "return {false, true}",
    "return {nil, 2}",
    "return {1, 2, nil}",
    "return {1, 2, x = 3}",
    "return {1, ok = 'fine'}",
    "return {1, err = 'ERR bad'}",
    "return {[1] = 'a', [2] = 'b', [3] = 'c'}",
    "return {[3] = 'c', [2] = 'b', [1] = 'a'}",
    "return {[1.5] = 'a'}",
    "return {[true] = 'a'}",
    "local t = {} for i = 1, 300 do t[#t + 1] = i end return t",
    "local t = {} for i = 300, 1, -1 do t[i] = tostring(i) end return t",
    "local t = {1} for i = 1, 40 do t = {t, i} end return t",
    "return {1.5, -1.5, 1e300, -1e300, 2^53, -2^53, 2^53 - 1, 0/0, 1/0}",
    "return 0/0",
    "return 1/0",
    "return 2^53",
    "return -0.9",
    "return 'a\\0b'",
    "return ''",
    "return nil, 2",
    "return true",
    "return false",
    "return function() end",
    "return coroutine.create(function() end)",
    "return redis",
    "return {redis}",
    "return string",
    "return {ok = 'fine'}",
    "return {ok = ''}",
    "return {ok = 'in\\r\\ntwo lines'}",
    "return {ok = 'a\\0b'}",
    "return {ok = 5}",
    "return {ok = 'fine', more = 1}",
    "return {okay = 'fine'}",
    "return {1, {ok = 'fine'}, {err = 'ERR bad'}}",
    "return {{ok = 'fine'}, {ok = 'in\\ntwo'}}",
    "return {err = 'ERR bad'}",
    "return {err = 5}",
    "return {double = 1.5}",
    "return {map = {a = 1}}",
    "return {set = {a = true}}",
    "return {big_number = '123'}",
    "return setmetatable({}, {__index = function(_, place) return place < 4 and place or nil end})",
    "return setmetatable({'a'}, {__index = {err = 'ERR bad'}})",
    "redis.setresp(3) return {true, false}",
    "redis.setresp(3) return true",
    "redis.setresp(3) return redis.call('HGETALL', 'h')",
    "redis.setresp(3) return redis.call('GET', 'none') == nil",
    "return redis.call('GET', 'none')",
    "return redis.call('HGETALL', 'h')",
    "return redis.call('SMEMBERS', 's')",
    "return redis.call('SET', 'k', 'v')",
    "return redis.call('ZADD', 'z', 1.5, 'a') + redis.call('ZSCORE', 'z', 'a')",
    "return redis.call('XADD', 'x', '1-1', 'a', 'b')",
    "return redis.call('XRANGE', 'x', '-', '+')",
    "return redis.call('PING')",
    "return redis.call('ECHO', string.rep('e', 70000))",
    "return redis.call('ECHO', 12345678901234567)",
    "return redis.call('ECHO', 1e17)",
    "return redis.call('ECHO', 0.1)",
    "return redis.call('ECHO', 3.0)",
    "return {redis.call('ECHO', 0), redis.call('ECHO', -7), redis.call('ECHO', -1.5), redis.call('ECHO', 2^63)}",
    "return {redis.call('ECHO', 2^53 - 1), redis.call('ECHO', 1 - 2^53), redis.call('ECHO', 2^53)}",
    "return {redis.pcall('ECHO', 0/0), redis.pcall('ECHO', 1/0), redis.pcall('ECHO', -1/0)}",
    "return redis.call('eChO', 'x') .. redis.call('ECHO', 'y')",
    "return redis.call()",
    "return redis.pcall()",
    "return redis.call(true)",
    "return redis.pcall('ECHO', {})",
    "return redis.call('NONE')",
    "return redis.pcall('NONE').err",
    "return redis.pcall('INCR', 'h').ignore_error_stats_update",
    "return redis.pcall('GET').err",
    "local ok, e = pcall(redis.call, 'INCR', 'h') return {ok, e}",
    "redis.call('INCR', 'h')",
    "return {pcall(error, {err = 'ERR mine'})}",
    "error('mine')",
    "error({err = 'MINE it is'})",
    "error()",
    "return unknown",
    "return {KEYS[1], #KEYS, ARGV[1], #ARGV}",
    "KEYS[1] = 'changed' return KEYS",
    "local c = coroutine.wrap(function() return redis.call('ECHO', 'inside') end) return c()",
    "local c = coroutine.wrap(function() redis.call('INCR', 'h') end) return c()",
    "return redis.pcall(unpack({'SADD', 'many', " + ", ".join(map(str, range(200))) + "}))",
    "local t = {'RPUSH', 'l'} for i = 1, 5000 do t[#t + 1] = i end return redis.call(unpack(t))",
    "return redis.call('LRANGE', 'l', 0, -1)",
    "return string.rep('x', 100000)",
    "local t = {} for i = 1, 300000 do t[i] = i end return t",
    "local t = {{{string.rep('x', 9000000)}}} return {t, {1, t}}",
    "local s = string.rep('x', 9000000) return {{ok = s}, {ok = s}}",
]


@pytest.fixture(scope="module")
def c() -> Any:
    """_crossing.c, compiled."""
    return compiled(Path(crossing.__file__).with_name("_crossing.c"))


@pytest.fixture
def own(c: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """C is between Python and Lua."""
    monkeypatch.setattr(crossing, "_crossing_library", c)


@pytest.fixture
def houses(c: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[House]]:
    """One through lupa, one through C."""
    made = []
    for library in (None, c):
        monkeypatch.setattr(crossing, "_crossing_library", library)
        house = House()
        session = house.session()
        session.do("HSET", "h", "a", "1", "b", "2")
        session.do("SADD", "s", "1", "2", "3")
        assert session.do("EVAL", "return 'begun'", "0") == b"$5\r\nbegun\r\n"
        made.append(house)
    yield made
    kinds = [type(house.engine.scripts.runner.sandbox.crossing) for house in made]
    assert kinds == [crossing.LupasCrossing, crossing.OwnCrossing]


@pytest.mark.parametrize("protocol", ["2", "3"])
def test_c_answers_what_lupa_does(houses: list[House], protocol: str) -> None:
    through_lupa, through_c = (house.session() for house in houses)
    for session in through_lupa, through_c:
        session.do("HELLO", protocol)
    for source in RETURNED:
        request = ("EVAL", source, "1", "key", "argument", "another")
        assert through_c.do(*request) == through_lupa.do(*request), source
    for request in (("INFO", "errorstats"), ("INFO", "commandstats")):
        counted = [
            [line.split(b",usec")[0] for line in session.do(*request).splitlines()[1:]]
            for session in (through_c, through_lupa)
        ]
        assert counted[0] == counted[1]


def test_functions_answer_what_they_do_through_lupa(houses: list[House]) -> None:
    library = """#!lua name=mine
    redis.register_function('given', function(keys, arguments) return {keys, arguments, #keys} end)
    redis.register_function('fails', function(keys, arguments) return redis.call('INCR', 'h') end)
    redis.register_function('globals', function() return {KEYS == nil} end)
    """
    said = []
    for house in houses:
        session = house.session()
        session.do("FUNCTION", "LOAD", library)
        calls = (["given", "2", "a", "b", "c"], ["given", "0"], ["fails", "0"], ["globals", "0"], ["none", "0"])
        said.append([session.do("FCALL", *words) for words in calls])
    assert said[0] == said[1]
    assert said[0][0] == b"*3\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n*1\r\n$1\r\nc\r\n:2\r\n"


DUMP = """
local function dump(value)
  if type(value) ~= 'table' then
    return type(value) .. ':' .. (type(value) == 'number' and string.format('%.17g', value) or tostring(value))
  end
  local parts, is_ordered = {}, true
  for key, member in pairs(value) do
    parts[#parts + 1] = dump(key) .. '=' .. dump(member)
    is_ordered = is_ordered and type(key) ~= 'table'  -- else by where they are in memory
  end
  if not is_ordered then
    table.sort(parts)
  end
  return '{' .. table.concat(parts, ',') .. '}'
end
local said = {}
for place = 1, #ARGV do
  local found = {pcall(cmsgpack.unpack, ARGV[place])}
  for at = 1, #found do
    found[at] = dump(found[at])
  end
  said[place] = table.concat(found, ' ')
end
return said
"""


def packed(chance: random.Random, nested: int) -> bytes:
    """A value as MessagePack has it, in any of its forms."""
    kind = chance.randrange(14 if nested < 4 else 10)
    size = chance.choice((0, 1, 2, 5, 20))
    if kind == 0:
        return bytes([chance.choice((0xC0, 0xC2, 0xC3))])
    if kind == 1:
        return bytes([chance.choice((*range(0x80), *range(0xE0, 0x100)))])
    if kind <= 4:
        count = chance.choice((1, 2, 4, 8))
        first = {1: (0xCC, 0xD0), 2: (0xCD, 0xD1), 4: (0xCE, 0xD2, 0xCA), 8: (0xCF, 0xD3, 0xCB)}[count]
        return bytes([chance.choice(first)]) + chance.choice((chance.randbytes(count), b"\xff" * count, bytes(count)))
    if kind <= 9:
        head = (bytes([0xA0 + size]), b"\xd9" + bytes([size]), b"\xda\0" + bytes([size]), b"\xdb\0\0\0" + bytes([size]))
        return chance.choice(head) + chance.randbytes(size)
    values = b"".join(packed(chance, nested + 1) for _ in range(size * (1 if kind < 12 else 2)))
    small, two, four = (0x90, b"\xdc\0", b"\xdd\0\0\0") if kind < 12 else (0x80, b"\xde\0", b"\xdf\0\0\0")
    last = bytes([size])
    return chance.choice((bytes([small + size]) if size < 16 else two + last, two + last, four + last)) + values


def test_what_c_unpacks_is_what_lua_does(houses: list[House]) -> None:
    chance = random.Random(20_26)
    texts = [b"", *(bytes([first]) for first in range(256)), b"\x91" * 40 + b"\xc0", b"\xdd\xff\xff\xff\xff\x01"]
    for _ in range(1500):
        text = packed(chance, 0)
        texts += [text, text[: chance.randrange(len(text) + 1)], text + chance.randbytes(chance.randrange(3))]
        at = chance.randrange(len(text))
        texts.append(text[:at] + chance.randbytes(1) + text[at + 1 :])
    through_lupa, through_c = (house.session() for house in houses)
    for first in range(0, len(texts), 500):
        request = ("EVAL", DUMP, "0", *texts[first : first + 500])
        assert through_c.do(*request) == through_lupa.do(*request)


@pytest.mark.usefixtures("own")
def test_a_zero_keeps_its_sign() -> None:
    assert House().session().do("EVAL", "return redis.call('ECHO', tonumber('-0'))", "0") == b"$2\r\n-0\r\n"


@pytest.mark.usefixtures("own")
def test_c_unpacks_a_map_with_members_that_are_nil_unless_it_is_large() -> None:
    begun = crossing.begin(lua51.LuaRuntime(encoding=None), lambda words: None, lambda: True, 1 << 20)
    assert begun is not None
    unpacked = begun[2]
    is_plain, found = unpacked(b"\x83\xa1a\xc0\xa1b\x01\xa1c\xc0")
    assert (is_plain, dict(found)) == (True, {b"b": 1})
    many = b"".join(bytes([number, 0xC0]) for number in range(100))
    assert not unpacked(b"\xde\x00\x64" + many)


@pytest.mark.usefixtures("own")
def test_a_script_may_have_more_arguments_than_lua_has_places_for_on_its_stack() -> None:
    session = House().session()
    words = [b"%d" % number for number in range(100_000)]
    said = session.do("EVAL", "return {#KEYS, #ARGV, KEYS[30000], ARGV[70000]}", "30000", *words)
    assert said == b"*4\r\n:30000\r\n:70000\r\n$5\r\n29999\r\n$5\r\n99999\r\n"


@pytest.mark.usefixtures("own")
def test_a_script_that_runs_out_of_memory_fails_and_the_next_one_runs() -> None:
    session = House().session()
    for source in (
        "local t = {} while true do t[#t + 1] = string.rep('x', 50000000) .. #t end",
        "local t = {} for i = 1, 5 do t[i] = string.rep('x', 50000000) .. i end redis.setresp(3) return t",
    ):
        assert session.do("EVAL", source, "0")[:4] == b"-ERR", source
        said = session.do("EVAL", "return {KEYS[1], redis.call('GET', 'none')}", "1", "k")
        assert said == b"*2\r\n$1\r\nk\r\n$-1\r\n"


@pytest.mark.parametrize("way", ["lupa", "C"])
def test_one_string_many_times_takes_no_more_memory_than_a_script_may_have(
    way: str, c: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crossing, "_crossing_library", c if way == "C" else None)
    session = House().session()
    made = "local s, t = string.rep('x', 2000000), {} for i = 1, 150 do t[i] = s end "
    assert b"not enough memory" in session.do("EVAL", made + "return t", "0")[:200]
    for call in ("redis.call('DEL', unpack(t))", "redis.acl_check_cmd('DEL', unpack(t))"):
        assert session.do("EVAL", made + "return " + call, "0").startswith(b"-ERR not enough memory"), call
    caught = made + "return redis.pcall('DEL', unpack(t)).err"
    assert session.do("EVAL", caught, "0") == b"$21\r\nERR not enough memory\r\n"


@pytest.mark.usefixtures("own")
def test_what_a_command_has_replied_is_not_kept_where_lua_has_no_memory_for_it() -> None:
    """Lua's table of all strings grows by doubling, which may be more than the margin; here there is none."""
    answered = [b"a", None]

    class Host:
        def __getattr__(self, name: str) -> Any:
            return lambda *_: True if name == "has_room" else None

        def execute_words(self, words: list[bytes]) -> Any:
            answered[1] = b"%d" % (10**6 + chance.randrange(10**8))
            return answered

    chance = random.Random(7)
    sandbox = Sandbox(Host(), "7.0.15", 8 << 20)
    source = b"""
    local held, count, failures, size, sizes = {}, 0, 0, 0, {1000000, 10000, 100, 10, 1}
    for place = 1, 100000 do held[place] = false end
    local function fill() held[count + 1] = string.rep("x", size) .. count end
    for place = 1, #sizes do
      size = sizes[place]
      while count < 100000 and pcall(fill) do count = count + 1 end
    end
    for _ = 1, 1000 do
      if not pcall(redis.call, "ECHO") then failures = failures + 1 end
    end
    return failures
    """
    before = sys.getrefcount(answered)
    called = sandbox.crossing.callable(sandbox.compile(source, b"@user_script"))
    failures = sandbox.crossing.run_script(called, 2, [b"EVAL", b"", b"0"], 0)
    assert failures > 0
    assert sys.getrefcount(answered) - before <= 1


@pytest.mark.parametrize("way", ["lupa", "C"])
@pytest.mark.parametrize("call", ["redis.sha1hex, 'x'", "redis.call, 'ECHO', 'an answer'", "redis.pcall, 'GET', {}"])
def test_whoever_has_filled_luas_memory_is_told_so_by_lua(
    call: str, way: str, c: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its error would go through Python, which stands still afterwards."""
    monkeypatch.setattr(crossing, "_crossing_library", c if way == "C" else None)
    source = f"""
    local held, count, size, sizes = {{}}, 0, 0, {{1000000, 10000, 100, 10, 1}}
    for place = 1, 100000 do held[place] = false end
    local function fill() held[count + 1] = string.rep("x", size) .. count end
    for place = 1, #sizes do
      size = sizes[place]
      while count < 100000 and pcall(fill) do count = count + 1 end
    end
    local is_well, failure
    for _ = 1, 20 do is_well, failure = pcall({call}) end
    held = nil
    return {{is_well, failure}}
    """
    session = House().session()
    assert session.do("EVAL", source, "0").endswith(b"not enough memory\r\n")
    assert session.do("EVAL", "return redis.call('ECHO', redis.sha1hex(''))", "0").startswith(b"$40\r\nda39a3ee")


@pytest.mark.parametrize("way", ["lupa", "C"])
def test_the_end_of_one_script_is_not_that_of_the_next(way: str, c: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def is_over(engine: Any, run: Any) -> bool:
        run.kill()
        return True

    monkeypatch.setattr(crossing, "_crossing_library", c if way == "C" else None)
    monkeypatch.setattr(runner, "is_over", is_over)
    session = House().session()
    endless = "while true do end"
    for source in (
        endless,
        f"load(function() {endless} end) return 'went on'",
        "local t = {} for i = 1, 6 do t = {t, t, t, t, t, t, t, t, t, t} end return t",
    ):
        assert session.do("EVAL", source, "0").startswith(b"-ERR Script killed by user"), source
        assert session.do("EVAL", "return {pcall(error, 'mine')}", "0") == b"*2\r\n$-1\r\n$4\r\nmine\r\n"
    with pytest.raises(LoadFailure):
        session.engine.scripts.runner.load_library(endless.encode(), 0)
    assert session.do("EVAL", "return {pcall(error, 'mine')}", "0") == b"*2\r\n$-1\r\n$4\r\nmine\r\n"


@pytest.mark.usefixtures("own")
def test_whoever_unpacks_for_long_is_asked_whether_it_may_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(runner, "is_over", lambda engine, run: bool(asked.append(run)))
    session = House().session()
    keys = b"".join(b"\xcd%b\xc0" % number.to_bytes(2, "big") for number in range(256, 60_000))
    for text in (b"\xde" + (60_000 - 256).to_bytes(2, "big") + keys, b"\xdd\0\x10\0\0" + b"\x01" * (1 << 20)):
        asked.clear()
        session.do("EVAL", "cmsgpack.unpack(ARGV[1])", "0", text)
        assert asked


@pytest.mark.usefixtures("own")
def test_a_lua_goes_with_its_scripts(c: Any) -> None:
    def crossings() -> int:
        gc.collect()
        return sum(type(each) is c.Crossing for each in gc.get_objects())

    session = House().session()
    before = crossings()
    for number in range(3):
        session.do("EVAL", f"redis.call('SET', 'k', '{number}') return {{1, {{2}}}}", "0")
        session.do("FUNCTION", "LOAD", "REPLACE", "#!lua name=a\nredis.register_function('f', function() end)")
        session.do("FUNCTION", "FLUSH")
        session.do("SCRIPT", "FLUSH")
    assert crossings() - before <= 1, "the functions' Lua may stay"


def test_it_does_without_where_lupas_library_lacks_something(c: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crossing.lua51, "__file__", c.__file__)
    monkeypatch.setattr(crossing, "_crossing_library", c)
    session = House().session()
    assert session.do("EVAL", "return redis.call('ECHO', 'x')", "0") == b"$1\r\nx\r\n"
    assert isinstance(session.engine.scripts.runner.sandbox.crossing, crossing.LupasCrossing)
