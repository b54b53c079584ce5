"""Puts cjson, cmsgpack, struct and bit into an interpreter of Lua 5.1.

They are Lua: what they make counts against the memory of the interpreter, and hooks end them as they end any script.
Python is asked only for the bytes of floats. They keep what they use of Lua's own libraries: nothing that a script does
to those changes them. A script that calls them sees what it sees of C functions in Redis: their chunks are called as C
functions are, and an error names the line of the script.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from lupa.lua51 import LuaRuntime

CHUNK: Final = b"=[C]"
"""How Lua names where these functions are, and where those are that it has itself."""
NAMES: Final = ("cjson", "cmsgpack", "struct", "bit")

_FLOAT: Final = struct.Struct(">f")
_DOUBLE: Final = struct.Struct(">d")


def libraries(lua: LuaRuntime) -> dict[str, Any]:
    """Their tables, by name. `lua` has no encoding, and all of its own libraries, `debug` as well."""
    arguments = _loaded(lua, "arguments")
    floats = lua.table_from(
        {
            b"float_packed": _float_packed,
            b"float_unpacked": _unpacked(_FLOAT),
            b"double_packed": _DOUBLE.pack,
            b"double_unpacked": _unpacked(_DOUBLE),
        }
    )
    return {name: _loaded(lua, name, arguments, floats) for name in NAMES}


def _loaded(lua: LuaRuntime, name: str, *arguments: object) -> Any:
    return lua.execute(_source(name), *arguments, name=CHUNK, mode=b"t")


@cache
def _source(name: str) -> bytes:
    return files(__package__).joinpath(f"{name}.lua").read_bytes()


def _float_packed(number: float) -> bytes | None:
    """None where it is too large to be one."""
    try:
        return _FLOAT.pack(number)
    except OverflowError:
        return None


def _unpacked(layout: struct.Struct) -> Callable[[bytes], float]:
    def unpack(data: bytes) -> float:
        number: float = layout.unpack(data)[0]
        return number

    return unpack
