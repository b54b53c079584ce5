"""Replies of commands as Lua values (script_lua.c), and Lua values as arguments of commands."""

from __future__ import annotations

from collections.abc import Callable
from math import copysign
from typing import Any, Final

from rlite_pubsub.protocol.decoder import BigNumber, decode
from rlite_pubsub.protocol.encoder import double, encode
from rlite_pubsub.protocol.replies import (
    NO_REPLY,
    NULL_ARRAY,
    Encoded,
    Error,
    Map,
    Push,
    Replies,
    Reply,
    SetReply,
    Status,
    Verbatim,
)

_STATUS: Final = Status
_SET: Final = SetReply
_MAP: Final = Map
_SHORTEST_POWER: Final = 10**17
"""From here on C's %.17g has an exponent."""


def argument(value: Any) -> bytes | None:
    """Return a Lua string or number as an argument; None if it is neither."""
    if type(value) is bytes:
        return value
    if type(value) is int:
        return b"%d" % value if -_SHORTEST_POWER < value < _SHORTEST_POWER else b"%.17g" % value
    if type(value) is float:
        if value != value:
            return b"-nan" if copysign(1, value) < 0 else b"nan"
        return b"%.17g" % value
    return None


class Refusal:
    """The error that a script gets for a call that was not executed or failed."""

    __slots__ = ("kind", "text")

    def __init__(self, kind: bool | None, text: bytes) -> None:
        """`kind`: True if it is the failure of a command that was counted; None: the script must end."""
        self.kind = kind
        self.text = text


def flat(reply: Reply) -> list[Reply]:
    """Return a map or a set as RESP2 has it."""
    kind = type(reply)
    if kind is _SET:
        return list(reply)
    pairs: list[tuple[Reply, Reply]] = reply if kind is _MAP else list(reply.items())
    flat: list[Reply] = []
    for pair in pairs:
        flat.append(pair[0])
        flat.append(pair[1])
    return flat


NOT_HANDED: Final = object()
_LARGE_BYTES: Final = 1 << 16
"""Lua always has room for anything smaller (MARGIN_BYTES of sandbox.py)."""
_MOST: Final = 256
"""Elements that are handed over one by one: they pass through Lua's stack."""


def handed(reply: Reply, protocol: int) -> Any:
    """Return a reply in the form that passes to Lua in one crossing: values that Lua has too as they are, (text, None,
    True) for a status, (None, None, False, *elements) for an array of such. NOT_HANDED: a `Conversion` must make it."""
    kind = type(reply)
    if kind is bytes:
        return reply if len(reply) < _LARGE_BYTES else NOT_HANDED
    if kind is int:
        return reply
    if reply is None:
        return False if protocol == 2 else None
    if kind is _STATUS:
        return bytes(reply), None, True
    if kind is list:
        elements: list[Reply] = reply
        return _handed_one_by_one(elements, protocol)
    return NOT_HANDED


def _handed_one_by_one(elements: list[Reply], protocol: int) -> Any:
    if len(elements) > _MOST:
        return NOT_HANDED
    null = False if protocol == 2 else None
    ready: list[Any] = [None, None, False]
    size_bytes = 0
    for each in elements:
        kind = type(each)
        if kind is bytes:
            size_bytes += len(each)
            ready.append(each)
        elif kind is int:
            ready.append(each)
        elif each is None:
            ready.append(null)
        else:
            return NOT_HANDED
    return tuple(ready) if size_bytes < _LARGE_BYTES else NOT_HANDED


class Conversion:
    """Converts replies to values of one sandbox, while that is unlimited."""

    def __init__(self, table: Callable[[Any], Any]) -> None:
        """`table` makes a Lua table of a list or a dict."""
        self._table = table
        self.protocol = 2
        self._makers: dict[type, Callable[[Reply], Any]] = {
            bytes: lambda reply: reply,
            int: lambda reply: reply,
            type(None): self._null,
            type(NULL_ARRAY): self._null,
            bool: lambda reply: reply if self.protocol == 3 else int(reply),
            float: lambda reply: table({b"double": reply}) if self.protocol == 3 else double(reply),
            Status: lambda reply: table({b"ok": bytes(reply)}),
            Error: lambda reply: table({b"err": bytes(reply), b"ignore_error_stats_update": True}),
            Encoded: lambda reply: self.made(decode(reply)),
            list: self._array,
            tuple: self._array,
            Push: self._array,
            SetReply: self._set,
            dict: lambda reply: self._map(list(reply.items())),
            Map: self._map,
            Verbatim: self._verbatim,
            BigNumber: lambda reply: table({b"big_number": bytes(reply)}) if self.protocol == 3 else bytes(reply),
            Replies: lambda reply: self.made(decode(encode(reply, self.protocol))),
        }

    def made(self, reply: Reply) -> Any:
        """Return a reply as a Lua value."""
        return self._makers[type(reply)](reply)

    def _null(self, reply: Reply) -> Any:
        assert reply is not NO_REPLY, "nothing inside a script waits"
        return None if self.protocol == 3 else False

    def _array(self, reply: list[Reply] | tuple[Reply, ...]) -> Any:
        made = self.made
        return self._table([each if type(each) is bytes else made(each) for each in reply])

    def _set(self, reply: list[Reply]) -> Any:
        if self.protocol == 2:
            return self._array(reply)
        return self._table({b"set": self._table({self.made(each): True for each in reply})})

    def _map(self, reply: list[tuple[Reply, Reply]]) -> Any:
        if self.protocol == 2:
            return self._array([each for pair in reply for each in pair])
        return self._table({b"map": self._table({self.made(key): self.made(value) for key, value in reply})})

    def _verbatim(self, reply: Verbatim) -> Any:
        if self.protocol == 2:
            return bytes(reply)
        return self._table({b"verbatim_string": self._table({b"string": bytes(reply), b"format": reply.format})})
