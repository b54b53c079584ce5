"""Commands whose effect a replica gets from a request of the same kind: as they were said, or said again without what
was left to chance, to time or to waiting. All others are told by what has become of their keys (states.py).

A command may stand in `VERBATIM` if its arguments and the keys it reads decide all that it does, in redis-server 7.0 as
here, to the last byte.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from rlite_pubsub.protocol.rdb import envelope
from rlite_pubsub.protocol.replies import Encoded, Reply

if TYPE_CHECKING:
    from rlite_pubsub.keyspace.records import Record

VERBATIM: Final = frozenset(
    b"""
    append setrange setbit bitop bitfield incr decr incrby decrby mset msetnx del unlink rename renamenx copy move
    lpush rpush lpushx rpushx lpop rpop lset linsert lrem ltrim lmove rpoplpush
    sadd srem smove sinterstore sunionstore sdiffstore
    hset hsetnx hmset hdel hincrby
    zadd zincrby zrem zpopmin zpopmax zremrangebyscore zremrangebyrank zremrangebylex zrangestore
    """.split()
)
MESSAGES: Final = frozenset((b"publish", b"spublish"))
"""Told as they were said, too, though they change no keys."""
LIBRARIES: Final = frozenset((b"function|load", b"function|delete", b"function|flush", b"function|restore"))
"""Told in the commit in which libraries change (`Outgoing.write_beside`), which is not the turn's."""
EMPTYING: Final = frozenset((b"flushall", b"flushdb"))
"""Told as they were said where there was nothing to remove, too."""

Wording: TypeAlias = Callable[[list[bytes], Reply], list[bytes] | None]
"""What is told of a command, by its arguments and its reply; None: this cannot be said so."""


def told(name: bytes, args: list[bytes], reply: Reply) -> list[bytes] | None:
    """Return what a replica is to execute; None if the keys, as they are now, have to tell."""
    if name in VERBATIM:
        return args
    wording = _WORDINGS.get(name)
    return None if wording is None else wording(args, reply)


def _popped(args: list[bytes], reply: Reply) -> list[bytes] | None:
    """SPOP: SREM of the members."""
    if isinstance(reply, bytes) and not isinstance(reply, Encoded):
        return [b"SREM", args[1], reply]
    members = _words(reply)
    return [b"SREM", args[1], *members] if members else None


def _list_popped(word: bytes) -> Wording:
    def wording(args: list[bytes], reply: Reply) -> list[bytes] | None:
        said = _words(reply)
        return [word, said[0]] if said is not None and len(said) == 2 else None

    return wording


def _many_popped(args: list[bytes], reply: Reply) -> list[bytes] | None:
    """LMPOP and BLMPOP: as many from that key."""
    if not isinstance(reply, list) or len(reply) != 2 or not isinstance(reply[0], bytes):
        return None
    members = _words(reply[1])
    at = 1 if args[0].upper() == b"LMPOP" else 2
    if not members:
        return None
    is_left = args[at + 1 + int(args[at])].upper() == b"LEFT"
    return [b"LPOP" if is_left else b"RPOP", reply[0], b"%d" % len(members)]


def _moved(args: list[bytes], reply: Reply) -> list[bytes] | None:
    """BLMOVE without its timeout."""
    return [b"LMOVE", *args[1:5]]


def _moved_right(args: list[bytes], reply: Reply) -> list[bytes] | None:
    """BRPOPLPUSH without its timeout."""
    return [b"RPOPLPUSH", *args[1:3]]


def _scored_popped(args: list[bytes], reply: Reply) -> list[bytes] | None:
    """BZPOPMIN and BZPOPMAX: ZREM of the member."""
    if not isinstance(reply, list) or len(reply) != 3:
        return None
    key, member = reply[0], reply[1]
    return [b"ZREM", key, member] if isinstance(key, bytes) and isinstance(member, bytes) else None


def _kept(args: list[bytes], reply: Reply) -> list[bytes] | None:
    """SET that leaves the key's time as it was."""
    return [*args[:3], b"KEEPTTL"] if any([word.upper() == b"KEEPTTL" for word in args[3:]]) else None


def _summed(args: list[bytes], reply: Reply) -> list[bytes] | None:
    """INCRBYFLOAT: SET of the sum, which others' machines may not come to."""
    return [b"SET", args[1], reply, b"KEEPTTL"] if isinstance(reply, bytes) and not isinstance(reply, Encoded) else None


def _field_summed(args: list[bytes], reply: Reply) -> list[bytes] | None:
    """HINCRBYFLOAT: HSET of the sum."""
    return [b"HSET", *args[1:3], reply] if isinstance(reply, bytes) and not isinstance(reply, Encoded) else None


def _many_scored_popped(args: list[bytes], reply: Reply) -> list[bytes] | None:
    """ZMPOP and BZMPOP: as many from that key."""
    if not isinstance(reply, list) or len(reply) != 2 or not isinstance(reply[0], bytes):
        return None
    if not isinstance(reply[1], list) or not reply[1]:
        return None
    at = 1 if args[0].upper() == b"ZMPOP" else 2
    is_least = args[at + 1 + int(args[at])].upper() == b"MIN"
    return [b"ZPOPMIN" if is_least else b"ZPOPMAX", reply[0], b"%d" % len(reply[1])]


def _words(reply: Reply) -> list[bytes] | None:
    if not isinstance(reply, (list, tuple)):
        return None
    words = [word for word in reply if isinstance(word, bytes)]
    return words if len(words) == len(reply) else None


LATEST_TYPE: Final = 19
"""Of values that redis-server 7.0 reads, in the first byte of a dump."""


def restored(args: list[bytes], record: Record | None) -> list[bytes] | None:
    """RESTORE, with the time at which the key expires in the place of how long it has; None: it has made no key, or
    redis-server 7.0 can't read the payload."""
    payload = args[3]
    if record is None or payload[0] > LATEST_TYPE or envelope.version_of(payload) > envelope.VERSION:
        return None
    words = [*args[:2], b"%d" % record.expires_ms, *args[3:]]
    if record.expires_ms and not any([word.upper() == b"ABSTTL" for word in args[4:]]):
        words.append(b"ABSTTL")
    return words


_WORDINGS: Final[dict[bytes, Wording]] = {
    b"set": _kept,
    b"incrbyfloat": _summed,
    b"hincrbyfloat": _field_summed,
    b"spop": _popped,
    b"blpop": _list_popped(b"LPOP"),
    b"brpop": _list_popped(b"RPOP"),
    b"lmpop": _many_popped,
    b"blmpop": _many_popped,
    b"blmove": _moved,
    b"brpoplpush": _moved_right,
    b"zmpop": _many_scored_popped,
    b"bzmpop": _many_scored_popped,
    b"bzpopmin": _scored_popped,
    b"bzpopmax": _scored_popped,
}
