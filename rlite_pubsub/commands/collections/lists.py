"""Lists: pushed and popped at both ends, read and trimmed by place."""

from __future__ import annotations

from typing import Final

from rlite_pubsub.engine.arguments.integers import LONG_MAX, integer
from rlite_pubsub.engine.arguments.lookup import find, for_change, keyspace_of
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.engine.waits.giving_back import note_popped
from rlite_pubsub.keyspace.lists import List
from rlite_pubsub.keyspace.records import Record
from rlite_pubsub.protocol.errors import WRONG_TYPE, CommandError, wrong_arity
from rlite_pubsub.protocol.replies import NULL_ARRAY, OK, Reply

_NOT_POSITIVE: Final = b"ERR value is out of range, must be positive"


def list_of(record: Record | None) -> List | None:
    """Return the list that was found, if anything was. Raises CommandError if it is something else."""
    if record is None or isinstance(record, List):
        return record
    raise CommandError(WRONG_TYPE)


def tell_list(session: CommandSession, event: bytes, key: bytes) -> None:
    """Notify that something happened to a list."""
    session.engine.notifications.tell("l", event, session.db, key)


def _push(session: CommandSession, args: list[bytes], *, left: bool, makes: bool = True) -> Reply:
    found = for_change(session, args[1])
    if found is None:
        if not makes:
            return 0
        found = keyspace_of(session).create(List, session.db, args[1])
    elif found.__class__ is not List:
        raise CommandError(WRONG_TYPE)
    length = found.push(args[2:], left=left)
    notifications = session.engine.notifications
    if notifications.classes:
        notifications.hold()
        notifications.tell("l", b"lpush" if left else b"rpush", session.db, args[1])
    return length


def pop(session: CommandSession, key: bytes, count: int, *, left: bool) -> list[bytes] | None:
    """Pop from an existing list, removing it if it becomes empty."""
    found = list_of(for_change(session, key))
    if found is None:
        return None
    popped = found.pop(count, left=left)
    if popped:
        notifications = session.engine.notifications
        if notifications.classes:
            notifications.hold()
            notifications.tell("l", b"lpop" if left else b"rpop", session.db, key)
        if session.gives_back:
            note_popped(session, found, [b"LPUSH" if left else b"RPUSH", key, *reversed(popped)])
        if not len(found):
            drop_if_empty(session, found)
    return popped


def move_element(session: CommandSession, source: bytes, target: bytes, from_left: bool, to_left: bool) -> Reply:
    """An element of one list becomes one of another, or of the same one; None: there is nothing to move."""
    giving = list_of(for_change(session, source))
    if giving is None:
        return None
    taking = list_of(for_change(session, target))
    element = giving.pop(1, left=from_left)[0]
    if taking is None:
        taking = keyspace_of(session).create(List, session.db, target)
    taking.push([element], left=to_left)
    tell_list(session, b"lpush" if to_left else b"rpush", target)
    session.engine.notifications.hold()
    tell_list(session, b"lpop" if from_left else b"rpop", source)
    drop_if_empty(session, giving)
    return element


def drop_if_empty(session: CommandSession, found: List) -> None:
    """A list without elements goes."""
    if not len(found):
        keyspace_of(session).remove(found)
        session.engine.notifications.tell("g", b"del", session.db, found.name)


def _place(number: int, length: int) -> int:
    """Return a place counted from the end, counted from the beginning."""
    return number + length if number < 0 else number


@command(
    "lpush",
    arity=-3,
    flags="write denyoom fast",
    group="list",
    categories="list",
    since="1.0.0",
    summary="Prepend one or multiple elements to a list",
    complexity="O(1) for each element added, so O(N) to add N elements when the command is called with multiple "
    "arguments.",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("element", multiple=True),
    ),
    key_specs=(KeySpec(("RW", "INSERT"), ("index", 1), ("range", 0, 1, 0)),),
    history=(("2.4.0", "Accepts multiple `element` arguments."),),
)
def lpush(session: CommandSession, args: list[bytes]) -> Reply:
    return _push(session, args, left=True)


@command(
    "rpush",
    arity=-3,
    flags="write denyoom fast",
    group="list",
    categories="list",
    since="1.0.0",
    summary="Append one or multiple elements to a list",
    complexity="O(1) for each element added, so O(N) to add N elements when the command is called with multiple "
    "arguments.",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("element", multiple=True),
    ),
    key_specs=(KeySpec(("RW", "INSERT"), ("index", 1), ("range", 0, 1, 0)),),
    history=(("2.4.0", "Accepts multiple `element` arguments."),),
)
def rpush(session: CommandSession, args: list[bytes]) -> Reply:
    return _push(session, args, left=False)


@command(
    "lpushx",
    arity=-3,
    flags="write denyoom fast",
    group="list",
    categories="list",
    since="2.2.0",
    summary="Prepend an element to a list, only if the list exists",
    complexity="O(1) for each element added, so O(N) to add N elements when the command is called with multiple "
    "arguments.",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("element", multiple=True),
    ),
    key_specs=(KeySpec(("RW", "INSERT"), ("index", 1), ("range", 0, 1, 0)),),
    history=(("4.0.0", "Accepts multiple `element` arguments."),),
)
def lpushx(session: CommandSession, args: list[bytes]) -> Reply:
    return _push(session, args, left=True, makes=False)


@command(
    "rpushx",
    arity=-3,
    flags="write denyoom fast",
    group="list",
    categories="list",
    since="2.2.0",
    summary="Append an element to a list, only if the list exists",
    complexity="O(1) for each element added, so O(N) to add N elements when the command is called with multiple "
    "arguments.",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("element", multiple=True),
    ),
    key_specs=(KeySpec(("RW", "INSERT"), ("index", 1), ("range", 0, 1, 0)),),
    history=(("4.0.0", "Accepts multiple `element` arguments."),),
)
def rpushx(session: CommandSession, args: list[bytes]) -> Reply:
    return _push(session, args, left=False, makes=False)


@command(
    "lpop",
    arity=-2,
    flags="write fast",
    group="list",
    categories="list",
    since="1.0.0",
    summary="Remove and get the first elements in a list",
    complexity="O(N) where N is the number of elements returned",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("count", "integer", optional=True, since="6.2.0"),
    ),
    key_specs=(KeySpec(("RW", "ACCESS", "DELETE"), ("index", 1), ("range", 0, 1, 0)),),
    history=(("6.2.0", "Added the `count` argument."),),
)
def lpop(session: CommandSession, args: list[bytes]) -> Reply:
    return _popped(session, args, left=True)


@command(
    "rpop",
    arity=-2,
    flags="write fast",
    group="list",
    categories="list",
    since="1.0.0",
    summary="Remove and get the last elements in a list",
    complexity="O(N) where N is the number of elements returned",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("count", "integer", optional=True, since="6.2.0"),
    ),
    key_specs=(KeySpec(("RW", "ACCESS", "DELETE"), ("index", 1), ("range", 0, 1, 0)),),
    history=(("6.2.0", "Added the `count` argument."),),
)
def rpop(session: CommandSession, args: list[bytes]) -> Reply:
    return _popped(session, args, left=False)


def _popped(session: CommandSession, args: list[bytes], *, left: bool) -> Reply:
    if len(args) > 3:
        raise wrong_arity(args[0].lower())
    if len(args) == 2:
        popped = pop(session, args[1], 1, left=left)
        return popped[0] if popped else None
    count = integer(args[2], 0, LONG_MAX, _NOT_POSITIVE)
    popped = pop(session, args[1], count, left=left)
    return NULL_ARRAY if popped is None else popped


@command(
    "llen",
    arity=2,
    flags="readonly fast",
    group="list",
    categories="list",
    since="1.0.0",
    summary="Get the length of a list",
    complexity="O(1)",
    arguments=(Arg("key", "key", key_spec=0),),
    key_specs=(KeySpec(("RO",), ("index", 1), ("range", 0, 1, 0)),),
)
def llen(session: CommandSession, args: list[bytes]) -> Reply:
    found = list_of(find(session, args[1]))
    return 0 if found is None else len(found)


@command(
    "lrange",
    arity=4,
    flags="readonly",
    group="list",
    categories="list",
    since="1.0.0",
    summary="Get a range of elements from a list",
    complexity="O(S+N) where S is the distance of start offset from HEAD for small lists, from nearest end (HEAD or "
    "TAIL) for large lists; and N is the number of elements in the specified range.",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("start", "integer"),
        Arg("stop", "integer"),
    ),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
)
def lrange(session: CommandSession, args: list[bytes]) -> Reply:
    first, last = integer(args[2]), integer(args[3])
    found = list_of(find(session, args[1]))
    if found is None:
        return []
    start, stop = _bounds(first, last, len(found))
    return found.slice(start, stop) if start < stop else []


@command(
    "lindex",
    arity=3,
    flags="readonly",
    group="list",
    categories="list",
    since="1.0.0",
    summary="Get an element from a list by its index",
    complexity="O(N) where N is the number of elements to traverse to get to the element at index. This makes asking "
    "for the first or the last element of the list O(1).",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("index", "integer"),
    ),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
)
def lindex(session: CommandSession, args: list[bytes]) -> Reply:
    found = list_of(find(session, args[1]))
    if found is None:
        return None
    place = _place(integer(args[2]), len(found))
    return found.at(place) if 0 <= place < len(found) else None


def _bounds(first: int, last: int, length: int) -> tuple[int, int]:
    """Turn a first and a last place, either counted from an end, into a start and a stop."""
    return max(_place(first, length), 0), min(_place(last, length), length - 1) + 1


@command(
    "ltrim",
    arity=4,
    flags="write",
    group="list",
    categories="list",
    since="1.0.0",
    summary="Trim a list to the specified range",
    complexity="O(N) where N is the number of elements to be removed by the operation.",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("start", "integer"),
        Arg("stop", "integer"),
    ),
    key_specs=(KeySpec(("RW", "DELETE"), ("index", 1), ("range", 0, 1, 0)),),
)
def ltrim(session: CommandSession, args: list[bytes]) -> Reply:
    first, last = integer(args[2]), integer(args[3])
    found = list_of(for_change(session, args[1]))
    if found is None:
        return OK
    start, stop = _bounds(first, last, len(found))
    found.keep(*((start, stop) if start < stop else (0, 0)))
    tell_list(session, b"ltrim", args[1])
    drop_if_empty(session, found)
    return OK


@command(
    "lrem",
    arity=4,
    flags="write",
    group="list",
    categories="list",
    since="1.0.0",
    summary="Remove elements from a list",
    complexity="O(N+M) where N is the length of the list and M is the number of elements removed.",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("count", "integer"),
        Arg("element"),
    ),
    key_specs=(KeySpec(("RW", "DELETE"), ("index", 1), ("range", 0, 1, 0)),),
)
def lrem(session: CommandSession, args: list[bytes]) -> Reply:
    count = integer(args[2])
    found = list_of(for_change(session, args[1]))
    if found is None:
        return 0
    removed = found.remove(args[3], count)
    if removed:
        tell_list(session, b"lrem", args[1])
        drop_if_empty(session, found)
    return removed
