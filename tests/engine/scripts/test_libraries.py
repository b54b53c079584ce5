"""cjson, cmsgpack, struct and bit: what redis-server 7.0.15 answers, to the byte. compat_tests/ asks both at random."""

from __future__ import annotations

import ast
import ctypes
import random
import struct
from pathlib import Path
from typing import Any

import pytest
from lupa.lua51 import LuaRuntime

from rlite_pubsub.engine.scripts.libraries.loading import libraries

CASES = Path(__file__).with_name("libraries.txt")
MEMORY = 64 << 20


def interpreter(max_memory: int | None = None) -> Any:
    lua = LuaRuntime(
        encoding=None,
        unpack_returned_tuples=True,
        register_eval=False,
        register_builtins=False,
        max_memory=max_memory,
    )
    for name, table in libraries(lua).items():
        lua.globals()[name.encode()] = table
    return lua


@pytest.fixture
def lua() -> Any:
    return interpreter()


def answer(lua: Any, expression: str) -> bytes:
    """The value of an expression, or the error that a script sees."""
    script = f"local ok, value = pcall(function() local value = {expression} return value end) return tostring(value)"
    answered: bytes = lua.execute(script.encode("latin-1"), name=b"@user_script")
    return answered




def cases() -> list[tuple[str, bytes]]:
    """The expressions of libraries.txt with what they come to."""
    lines = [line for line in CASES.read_text().splitlines() if line and not line.startswith("#")]
    return [
        (expression, ast.literal_eval(said.strip())) for expression, said in zip(lines[::2], lines[1::2], strict=True)
    ]


@pytest.mark.parametrize(("expression", "said"), cases())
def test_libraries_answer_what_redis_does(lua: Any, expression: str, said: bytes) -> None:
    assert answer(lua, expression) == said


MANY = "(function() local s, t = string.rep('x', 1e6), {} for i = 1, 200 do t[i] = s end return (%s) end)()"
BOMBS = (
    "cjson.encode_sparse_array(true, 0, 10), cjson.encode({[1e9]=1})",
    "cjson.encode({string.rep('\\1', 2e7)})",
    MANY % "cjson.encode(t)",
    MANY % "cmsgpack.pack(t)",
    MANY % "struct.pack(string.rep('s', 200), unpack(t))",
    r"cmsgpack.unpack('\221\0\255\255\255' .. string.rep('\144', 2e7))",
)


@pytest.mark.parametrize("expression", BOMBS)
def test_what_grows_without_end_meets_the_limit_of_the_interpreter(expression: str) -> None:
    lua = interpreter(MEMORY)
    assert answer(lua, expression) == b"not enough memory"
    assert lua.get_memory_used() < MEMORY
    assert answer(lua, "cjson.encode({1})") == b"[1]"


def test_what_a_script_does_to_the_libraries_of_lua_does_not_change_these(lua: Any) -> None:
    lua.execute(
        b"for _, name in ipairs{'byte', 'char', 'find', 'format', 'gsub', 'sub', 'rep', 'reverse', 'match'} do "
        b"string[name] = nil end "
        b"table.concat, math.floor, next, type, unpack = nil, nil, nil, nil, nil"
    )
    assert answer(lua, r"cjson.encode(cjson.decode('{\"a\":[1,\"x\"]}'))") == b'{"a":[1,"x"]}'
    assert answer(lua, r"cmsgpack.unpack(cmsgpack.pack('abc'))") == b"abc"
    assert answer(lua, "struct.unpack('s', struct.pack('s', 'abc'))") == b"abc"


def test_tables_with_metatables_run_no_code_of_theirs(lua: Any) -> None:
    lua.execute(
        b"trap = setmetatable({1}, {__index = function() error('read') end, "
        b"__newindex = function() error('written') end})"
    )
    assert answer(lua, "cjson.encode(trap)") == b"[1]"
    assert answer(lua, "cmsgpack.pack(trap)") == b"\x91\x01"


def test_settings_of_cjson_are_each_module_s_own(lua: Any) -> None:
    said = answer(
        lua,
        "(function() local own = cjson.new() own.encode_number_precision(3) own.encode_sparse_array(true) "
        "return own.encode({[99]=1/3}) .. cjson.encode(1/3) end)()",
    )
    assert said == b'{"99":0.333}0.33333333333333'


def test_floats_are_the_bytes_that_c_has_for_them(lua: Any) -> None:
    chance = random.Random(1)
    again = lua.eval(b"function(form, data) return struct.pack(form, (struct.unpack(form, data))) end")
    short = lua.eval(b"function(data) return struct.pack('>f', (struct.unpack('>d', data))) end")
    edges = [0, 1, 2**52 - 1, 2**52, 0x7FEFFFFFFFFFFFFF, 0x7FF0000000000000, 0x47EFFFFFEFFFFFFF, 0x47EFFFFFF0000000]
    edges += [chance.randrange(0x36A0, 0x3820) << 48 | chance.getrandbits(32) << 16 for _ in range(200)]  # small floats
    for pattern in [*edges, *(chance.getrandbits(63) for _ in range(2000))]:
        for data in (pattern.to_bytes(8, "big"), (pattern | 1 << 63).to_bytes(8, "big")):
            number = struct.unpack(">d", data)[0]
            if number == number:
                assert again(b">d", data) == data
                assert short(data) == bytes(ctypes.c_float.__ctype_be__(number))
            if (half := struct.unpack(">f", data[:4])[0]) == half:
                assert again(b">f", data[:4]) == data[:4]
