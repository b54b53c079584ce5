"""Puts cjson, cmsgpack, struct and bit into an interpreter of Lua 5.1.

They are written in Lua: their values count against the interpreter's memory, and hooks end them as they end any script.
They call nothing in Python, whose frames a Lua error would jump over. They keep references to what they use of Lua's
own libraries, so a script cannot change them. A script that calls them sees what it sees of C functions in Redis: their
chunks are called as C functions are, and an error names the line of the script.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from lupa.lua51 import LuaRuntime

CHUNK: Final = b"=[C]"
"""How Lua names where these functions are, and where those are that it has itself."""
NAMES: Final = ("cjson", "cmsgpack", "struct", "bit")


def libraries(lua: LuaRuntime, unpacked: Any = None) -> dict[str, Any]:
    """Return their tables, by name. `lua` has no encoding, and all of its own libraries, `debug` too. `unpacked`: C's
    version of the common cases of cmsgpack.unpack."""
    arguments = _loaded(lua, "arguments")
    floats = _loaded(lua, "floats")
    return {name: _loaded(lua, name, arguments, floats, unpacked) for name in NAMES}


def _loaded(lua: LuaRuntime, name: str, *arguments: object) -> Any:
    return lua.execute(_source(name), *arguments, name=CHUNK, mode=b"t")


@cache
def _source(name: str) -> bytes:
    return files(__package__).joinpath(f"{name}.lua").read_bytes()
