"""How Python runs Lua code, and how Lua has commands executed.

In a compiled package this is _crossing.c, which finds Lua's own functions in lupa's library: that takes a script of two
calls a third of the time. Otherwise lupa's objects stand in between.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from lupa import lua51

from rlite_pubsub.engine.scripts.conversions import Refusal
from rlite_pubsub.protocol.replies import Reply, Status

if TYPE_CHECKING:
    from rlite_pubsub.engine.scripts import _crossing

Outcome: TypeAlias = Any
"""What a script's run returns: a tuple, of which run.py makes a reply, or what is a reply."""
Called: TypeAlias = Any
"""A function of Lua's, as a `Run` takes it."""
Run: TypeAlias = Callable[[Called, int, list[bytes], int], Outcome]
"""(what is called, protocol of the reply, the request, how many words behind the third are keys)"""


class Crossing(Protocol):
    """Connects one Lua with the commands, both ways."""

    run_script: Run
    """With KEYS and ARGV as globals."""
    run_function: Run
    """The same for a function that takes keys and arguments as two tables."""

    used_bytes: Callable[[], int]
    """What this Lua holds, and has not swept away."""

    def callable(self, function: Any) -> Called:
        """Return a Lua function in the form that can be run."""

    def set_protocol(self, protocol: int) -> None:
        """Reply in RESP2 or RESP3 from now on."""

    def take(self) -> Reply:
        """Return a reply to the script that could not be handed over directly."""


class LupasCrossing:
    """Crosses through lupa's objects, which `run_script` and `run_function` of sandbox.lua are."""

    def __init__(
        self, lua: lua51.LuaRuntime, run_script: Callable[..., Outcome], run_function: Callable[..., Outcome]
    ) -> None:
        self.used_bytes: Callable[[], int] = lua.get_memory_used
        self.run_script = _run_by(run_script)
        self.run_function = _run_by(run_function)

    def callable(self, function: Any) -> Called:
        return function

    def set_protocol(self, protocol: int) -> None:
        pass  # who executes knows it

    def take(self) -> Reply:
        raise NotImplementedError  # nothing is left to take


def _run_by(function: Callable[..., Outcome]) -> Run:
    def run(called: Called, protocol: int, args: list[bytes], keys: int) -> Outcome:
        return function(called, protocol, keys, *args[3:])

    return run


class OwnCrossing:
    """Crosses through C."""

    def __init__(self, crossing: _crossing.Crossing, keep: Callable[[Any], int]) -> None:
        """`keep` gives a Lua function a number."""
        self._crossing = crossing
        self._keep = keep
        self.run_script: Run = crossing.run_script
        self.run_function: Run = crossing.run_function
        self.used_bytes = crossing.used_bytes
        self.take = crossing.take

    def callable(self, function: Any) -> Called:
        return self._crossing.callable(self._keep(function))

    def set_protocol(self, protocol: int) -> None:
        self._crossing.protocol = protocol


_OPEN: Final = b"""
local library, address = ...
local open = package.loadlib(library, "rlite_crossing")
if open then
  return open(address)
end
return nil, nil
"""


def begin(
    lua: lua51.LuaRuntime,
    execute: Callable[[list[bytes]], Reply | Refusal],
    has_room: Callable[[], bool],
    max_bytes: int,
) -> tuple[_crossing.Crossing, Any, Any] | None:
    """Return a crossing in C, what sandbox.lua begins it with, and what unpacks for cmsgpack.lua; None if C is not
    available. Once Lua uses this many bytes, nothing is executed unless `has_room` agrees."""
    if _crossing_library is None or not _crossing_library.find_lua(lua51.__file__, Status, Refusal):
        return None
    crossing = _crossing_library.Crossing(lua, execute, has_room, max_bytes)
    opened, unpacked = lua.execute(_OPEN, _crossing_library.__file__.encode(), crossing.address)
    return (crossing, opened, unpacked) if opened else None


_crossing_library: Any
try:
    from rlite_pubsub.engine.scripts import _crossing as _crossing_library
except ImportError:
    _crossing_library = None
