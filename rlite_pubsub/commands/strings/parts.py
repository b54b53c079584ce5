"""A string's parts and its length: APPEND, STRLEN, GETRANGE, SETRANGE, SUBSTR."""

from __future__ import annotations

from rlite_pubsub.engine.arguments.integers import integer
from rlite_pubsub.engine.arguments.lookup import find_text, keyspace_of, text_for_change
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.keyspace.records import RAW
from rlite_pubsub.protocol.errors import CommandError
from rlite_pubsub.protocol.replies import Reply


@command(
    "append",
    arity=3,
    flags="write denyoom fast",
    group="string",
    since="2.0.0",
    categories="string",
    summary="Append a value to a key",
    complexity="O(1). The amortized time complexity is O(1) assuming the appended value is small and the already "
    "present value is of any size, since the dynamic string library used by Redis will double the free space "
    "available on every reallocation.",
    arguments=(Arg("key", "key", key_spec=0), Arg("value")),
    key_specs=(KeySpec(("RW", "INSERT"), ("index", 1), ("range", 0, 1, 0)),),
)
def append(session: CommandSession, args: list[bytes]) -> Reply:
    text = text_for_change(session, args[1])
    if text is None:
        keyspace_of(session).put_string(session.db, args[1], args[2])
        length = len(args[2])
    else:
        length = len(text.value) + len(args[2])
        _check_length(session, length)
        keyspace_of(session).put_string(session.db, args[1], text.value + args[2], text.expires_ms, RAW)
    session.engine.notifications.tell("$", b"append", session.db, args[1])
    return length


@command(
    "strlen",
    arity=2,
    flags="readonly fast",
    group="string",
    since="2.2.0",
    categories="string",
    summary="Get the length of the value stored in a key",
    complexity="O(1)",
    arguments=(Arg("key", "key", key_spec=0),),
    key_specs=(KeySpec(("RO",), ("index", 1), ("range", 0, 1, 0)),),
)
def strlen(session: CommandSession, args: list[bytes]) -> Reply:
    text = find_text(session, args[1])
    return 0 if text is None else len(text.value)


@command(
    "getrange",
    arity=4,
    flags="readonly",
    group="string",
    since="2.4.0",
    categories="string",
    summary="Get a substring of the string stored at a key",
    complexity="O(N) where N is the length of the returned string. The complexity is ultimately determined by the "
    "returned length, but because creating a substring from an existing string is very cheap, it can be considered "
    "O(1) for small strings.",
    arguments=(Arg("key", "key", key_spec=0), Arg("start", "integer"), Arg("end", "integer")),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
)
def getrange(session: CommandSession, args: list[bytes]) -> Reply:
    start, end = integer(args[2]), integer(args[3])
    text = find_text(session, args[1])
    if text is None or (start < 0 and end < 0 and start > end):
        return b""
    length = len(text.value)
    first = max(start + length, 0) if start < 0 else start
    last = max(end + length, 0) if end < 0 else end
    return text.value[first : last + 1]


@command(
    "substr",
    arity=4,
    flags="readonly",
    group="string",
    since="1.0.0",
    categories="string",
    summary="Get a substring of the string stored at a key",
    complexity="O(N) where N is the length of the returned string. The complexity is ultimately determined by the "
    "returned length, but because creating a substring from an existing string is very cheap, it can be considered "
    "O(1) for small strings.",
    arguments=(Arg("key", "key", key_spec=0), Arg("start", "integer"), Arg("end", "integer")),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
    doc_flags=("deprecated",),
    deprecated_since="2.0.0",
    replaced_by="`GETRANGE`",
)
def substr(session: CommandSession, args: list[bytes]) -> Reply:
    return getrange(session, args)


@command(
    "setrange",
    arity=4,
    flags="write denyoom",
    group="string",
    since="2.2.0",
    categories="string",
    summary="Overwrite part of a string at key starting at the specified offset",
    complexity="O(1), not counting the time taken to copy the new string in place. Usually, this string is very small "
    "so the amortized complexity is O(1). Otherwise, complexity is O(M) with M being the length of the value "
    "argument.",
    arguments=(Arg("key", "key", key_spec=0), Arg("offset", "integer"), Arg("value")),
    key_specs=(KeySpec(("RW", "UPDATE"), ("index", 1), ("range", 0, 1, 0)),),
)
def setrange(session: CommandSession, args: list[bytes]) -> Reply:
    offset, part = integer(args[2]), args[3]
    if offset < 0:
        raise CommandError(b"ERR offset is out of range")
    text = text_for_change(session, args[1])
    value = b"" if text is None else text.value
    if not part:
        return len(value)
    _check_length(session, offset + len(part))
    value = value[:offset].ljust(offset, b"\0") + part + value[offset + len(part) :]
    expires_ms = 0 if text is None else text.expires_ms
    keyspace_of(session).put_string(session.db, args[1], value, expires_ms, RAW)
    session.engine.notifications.tell("$", b"setrange", session.db, args[1])
    return len(value)


def _check_length(session: CommandSession, length: int) -> None:
    if length > session.engine.settings["proto-max-bulk-len"]:
        raise CommandError(b"ERR string exceeds maximum allowed size (proto-max-bulk-len)")
