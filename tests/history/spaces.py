"""What is asked of three keys: they are deleted, renamed, copied, given a time to live, and changed two at once by
scripts (tests/history/checks/spaces.py tells what that means)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.history.checks.spaces import NAMES
from tests.history.words import Request, Words, bare

if TYPE_CHECKING:
    from tests.history.requests import Author

_BOTH = """
local a, b = redis.call('GET', KEYS[1]), redis.call('GET', KEYS[2])
redis.call('SET', KEYS[1], ARGV[1])
redis.call('SET', KEYS[2], ARGV[1])
return {a or '-', b or '-'}
"""
_SWAP = """
local a, b = redis.call('GET', KEYS[1]), redis.call('GET', KEYS[2])
redis.call('DEL', KEYS[1], KEYS[2])
if b then redis.call('SET', KEYS[1], b) end
if a then redis.call('SET', KEYS[2], a) end
return {a or '-', b or '-'}
"""
_KINDS = (
    "set", "set", "get", "get", "all", "all", "take", "delete", "rename", "copy", "expire", "persist", "both", "swap",
)  # fmt: skip
_TIMES_TO_LIVE: tuple[Words, ...] = (("PX", "5"), ("PX", "50"), ("PX", "1000"), ("EX", "3600"))
"""The last of them end where the clock jumps."""


def request(author: Author, space: str, number: int) -> Request:
    """One operation."""
    dice = author.dice
    first, second = dice.sample(NAMES, 2)
    one, two = f"{space}:{first}", f"{space}:{second}"
    kind = dice.choice(_KINDS)
    value = author.value(number)
    end = dice.choice([(), (), *_TIMES_TO_LIVE])
    match kind:
        case "set":
            return _request(kind, space, [[first], bare(value), bool(end)], ("SET", one, value, *end), _nothing)
        case "get":
            return _request(kind, space, [[first]], ("GET", one), bare)
        case "all":
            return read_all(space)
        case "take":
            return _request(kind, space, [[first]], ("GETDEL", one), bare)
        case "delete":
            return _request(kind, space, [[first, second]], (dice.choice(["DEL", "UNLINK"]), one, two), int)
        case "rename":
            return _request(kind, space, [[first, second]], ("RENAME", one, two), _nothing)
        case "copy":
            return _request(kind, space, [[first, second]], ("COPY", one, two, "REPLACE"), int)
        case "expire":
            return _request(kind, space, [[first]], ("PEXPIRE", one, dice.choice(["5", "50", "3600000"])), int)
        case "persist":
            return _request(kind, space, [[first]], ("PERSIST", one), int)
        case "both":
            return _request(kind, space, [[first, second], bare(value)], ("EVAL", _BOTH, "2", one, two, value), _pair)
        case _:
            return _request(kind, space, [[first, second]], ("EVAL", _SWAP, "2", one, two), _pair)


def read_all(space: str) -> Request:
    """What the three of them are at one moment."""
    names = [f"{space}:{name}" for name in NAMES]
    return _request("all", space, [list(NAMES)], ("MGET", *names), lambda reply: [bare(one) for one in reply])


def _request(kind: str, space: str, value: Any, command: Words, understand: Any) -> Request:
    return Request(kind, space, value, [command], lambda replies: understand(replies[0]))


def _nothing(reply: Any) -> None:
    return None


def _pair(reply: list[bytes]) -> list[str | None]:
    return [None if one == b"-" else bare(one) for one in reply]
