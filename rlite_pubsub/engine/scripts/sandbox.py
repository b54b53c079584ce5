"""The Lua in which scripts run: sandbox.lua, beside this file, makes what they see.

Promises:
 - A script has at most `max_bytes` of memory; a request for more fails in it ("not enough memory").
 - It is asked now and then whether it may go on (`ScriptHost.interrupt`): after each TICKS of Lua's instructions.
 - It reaches nothing of Python, of the system, or of other scripts.

Lua raises errors by long jumps, which must not pass through Python: so Lua must never run out of memory while Python
hands it something. While Python works there is no limit; code that hands over much asks first (`has_room`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias

from lupa.lua51 import LuaError, LuaRuntime, LuaSyntaxError

from rlite_pubsub.engine.scripts.cache import FLAGS, Flags
from rlite_pubsub.engine.scripts.conversions import Refusal
from rlite_pubsub.engine.scripts.crossing import Called, Crossing, LupasCrossing, OwnCrossing, begin
from rlite_pubsub.engine.scripts.libraries.loading import CHUNK, libraries
from rlite_pubsub.engine.scripts.tail_calls import without_tail_calls
from rlite_pubsub.protocol.replies import Reply

Function: TypeAlias = Any
"""A compiled Lua function; it belongs to one sandbox."""
Value: TypeAlias = Any
"""What can be handed to Lua: bytes, int, float, bool, None, a table of a sandbox."""
Registered: TypeAlias = tuple[bytes, bytes | None, Flags, Called]
"""What redis.register_function was told: name, description, flags, callback."""

TICKS: Final = 100_000
"""As in Redis: about a millisecond of work."""
MARGIN_BYTES: Final = 4 << 20
"""The part of a script's memory that is kept for what Python hands over."""
SMALL_BYTES: Final = 2 << 20
"""So little is looked through in no time (a tenth of a millisecond for an empty state)."""
LEFT_BYTES: Final = 16 << 20
"""How much garbage scripts may leave for Lua to collect at its leisure."""
_REFERENCES: Final = 8192
"""To values of Lua's that Python may hold without Lua's asking for memory: more than a function can have arguments."""
_SOURCE: Final = Path(__file__).with_name("sandbox.lua")


class ScriptHost(Protocol):
    """The services that scripts ask for. None of these raises, or calls into Lua."""

    def execute(self, *args: Value) -> Value:
        """Return a command's reply; (text, None, True) for a status, (None, None, False, *elements) for an array; or
        (is_counted, text) for an error, (None, text) if the script must end."""

    def execute_words(self, words: list[bytes]) -> Reply | Refusal:
        """Like `execute`, called from C, with the reply as the command gives it."""

    def has_room(self) -> bool:
        """Return whether Lua has room for a reply. C asks before `execute_words`, when there is little."""

    def fetch(self) -> Value:
        """Like `execute`: return a reply of `execute_words` that C did not hand over."""

    def execute_packed(self, packed: bytes) -> Value:
        """Like `execute`, for more arguments than a function can have: each after its length and a newline."""

    def interrupt(self) -> bool:
        """Return whether the script must end now."""

    def log(self, level: int, text: bytes) -> None:
        """Write a line to the server's log."""

    def set_protocol(self, protocol: int) -> None:
        """Reply in RESP2 or RESP3 from now on."""

    def check_permission(self, *args: Value) -> bool | None:
        """Return whether the user may execute this; None if there is no such command."""


class SyntaxFailure(Exception):
    """The source is not valid Lua."""

    def __init__(self, text: bytes) -> None:
        super().__init__(text.decode("latin-1"))
        self.text = text


class LoadFailure(Exception):
    """A library's code could not be run to its end."""

    def __init__(self, text: bytes) -> None:
        super().__init__(text.decode("latin-1"))
        self.text = text


class Sandbox:
    """One Lua state with what all scripts share."""

    def __init__(self, host: ScriptHost, version: str, max_bytes: int) -> None:
        """`version`: the Redis version that scripts see."""
        self._lua = LuaRuntime(
            encoding=None,
            unpack_returned_tuples=True,
            register_eval=False,
            register_builtins=False,
            max_memory=max_bytes + MARGIN_BYTES,
        )
        self.max_bytes = max_bytes
        lua = self._lua
        self.used_bytes: Callable[[], int] = lua.get_memory_used
        self.table: Callable[..., Any] = lua.table_from
        """A Lua table of a list or a dict. Call it only between `unlimited` and `limited`, where scripts run."""
        references = [lua.table() for _ in range(_REFERENCES)]
        del references
        major, minor, patch = (int(part) for part in version.split("."))
        begun = begin(lua, host.execute_words, host.has_room, max_bytes)
        found = libraries(lua, begun and begun[2])
        given = lua.table_from(
            {
                b"crossing": begun is not None and begun[1],
                b"fetch": host.fetch,
                b"execute": host.execute,
                b"execute_packed": host.execute_packed,
                b"interrupt": host.interrupt,
                b"sha1hex": _sha1hex,
                b"log": host.log,
                b"set_protocol": host.set_protocol,
                b"check_permission": host.check_permission,
                b"ticks": TICKS,
                b"max_made_bytes": max_bytes,
                b"libraries": lua.table_from({name.encode(): each for name, each in found.items()}),
                b"function_flags": lua.table_from({flag: flag for flag in FLAGS}),
                b"version": version.encode(),
                b"version_number": major << 16 | minor << 8 | patch,
            }
        )
        made = lua.execute(_SOURCE.read_bytes(), given, name=CHUNK)
        self.crossing: Crossing = (
            LupasCrossing(lua, made[b"run_script"], made[b"run_function"])
            if begun is None
            else OwnCrossing(begun[0], made[b"keep"])
        )
        self._load_library: Callable[[Function], Any] = made[b"load_library"]
        self._own: Callable[[Function], Function] = made[b"own"]
        self._dump: Callable[[Function], bytes] = made[b"dump"]
        self.base_bytes = lua.get_memory_used()
        self.swept_at_bytes = self.base_bytes + LEFT_BYTES

    def compile(self, source: bytes, name: bytes) -> Function:
        """Compile a function from this source; `name` is Lua's name of the chunk ("@user_script"). Raises
        SyntaxFailure."""
        if source[:1] == b"\x1b":
            source = b" " + source  # compiled code could do anything: it is always read as source
        if not self.has_room(8 * len(source)):
            raise SyntaxFailure(b"not enough memory")
        try:
            function = self._lua.compile(source, name=name)
            binary = self._dump(function)
            patched = without_tail_calls(binary)
            if patched is not binary:
                function = self._lua.compile(patched, name=name)
        except LuaSyntaxError as failure:
            text = failure.args[0]
            raise SyntaxFailure(text if isinstance(text, bytes) else str(text).encode()) from None
        except LuaError as failure:
            raise SyntaxFailure(str(failure).encode()) from None
        return self._own(function)

    def load_library(self, source: bytes) -> list[Registered]:
        """Return the functions that a library's code registers. Raises SyntaxFailure, LoadFailure."""
        function = self.compile(source, b"@user_function")
        outcome = self._load_library(function)
        if outcome is None:
            raise LoadFailure(b"ERR FUNCTION LOAD timeout")
        if type(outcome) is tuple:
            raise LoadFailure(outcome[1])
        self.unlimited()
        try:
            return [
                (one[1], None if one[2] is False else one[2], frozenset(one[3].split()), self.crossing.callable(one[4]))
                for one in outcome.values()
            ]
        finally:
            self.limited()

    # -- memory

    @property
    def held_bytes(self) -> int:
        """The memory that scripts hold, without the megabyte or so that is always there. Of what they have left behind
        only a lot is counted, until it is swept up."""
        if self.used_bytes() - self.base_bytes < SMALL_BYTES:
            self.sweep()
        return int(max(self.used_bytes() - self.base_bytes, 0))

    def has_room(self, size_bytes: int) -> bool:
        """Return whether this much may be handed to Lua, collecting garbage if that is needed."""
        if self.used_bytes() + size_bytes < self.max_bytes:
            return True
        self._lua.gccollect()
        return self.used_bytes() + size_bytes < self.max_bytes

    def unlimited(self) -> None:
        """Lift the memory limit while Python works: Lua must not run out of memory then."""
        self._lua.set_max_memory(0)

    def limited(self) -> None:
        """Apply the memory limit while scripts run."""
        self._lua.set_max_memory(self.max_bytes + MARGIN_BYTES)

    def sweep(self) -> None:
        """Release what the last script has left."""
        self._lua.gccollect()


def _sha1hex(text: bytes) -> bytes:
    return hashlib.sha1(text).hexdigest().encode()
