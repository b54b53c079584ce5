"""The types of a queue's values: bytes, text, JSON or MessagePack; in the store they are bytes.

Promise: a value that a codec cannot have written is an error where it is read (Undecodable), with its id; its place is
taken, as that of any other, so that a worker can go on behind it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from rlite_pubsub.extras import missing


class Undecodable(ValueError):
    """The bytes of a value are not what the queue's codec writes."""


@dataclass(frozen=True, slots=True)
class Codec:
    """Two functions, each the other's inverse. `decode` may raise ValueError."""

    name: str
    encode: Callable[[Any], bytes]
    decode: Callable[[bytes], Any]


CodecName: TypeAlias = "str | Codec"
"""`bytes`, `text`, `json`, `msgpack`, or your own codec."""


def codec_of(name: CodecName) -> Codec:
    """Return the codec of a name. Raises ValueError for an unknown one, and ImportError if msgpack is not installed."""
    if isinstance(name, Codec):
        return name
    if name == "msgpack":
        return _msgpack()
    try:
        return _BY_NAME[name]
    except KeyError:
        raise ValueError(f"{name!r} is not a codec: use bytes, text, json, msgpack or a Codec") from None


def _of_bytes(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise TypeError(f"a value is bytes or str, not {type(value).__name__}: codec= says how to write others")


def _of_text(value: Any) -> bytes:
    if not isinstance(value, str):
        raise TypeError(f"a value of a text queue is a str, not {type(value).__name__}")
    return value.encode()


def _of_json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def _msgpack() -> Codec:
    try:
        import msgpack
    except ImportError as failure:
        raise ImportError(missing("codec='msgpack'", "msgpack")) from failure

    def unpack(packed: bytes) -> Any:
        try:
            return msgpack.unpackb(packed)
        except (msgpack.UnpackException, ValueError) as failure:
            raise ValueError(str(failure) or type(failure).__name__) from failure

    return Codec("msgpack", msgpack.packb, unpack)


BYTES = Codec("bytes", _of_bytes, bytes)
_BY_NAME = {
    "bytes": BYTES,
    "text": Codec("text", _of_text, bytes.decode),
    "json": Codec("json", _of_json, json.loads),
}
