"""Sets: members that are added, removed and asked for."""

from __future__ import annotations

from typing import Final

from rlite_pubsub.engine.arguments.integers import LONG_MAX, integer
from rlite_pubsub.engine.arguments.lookup import find, for_change, keyspace_of
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.engine.waits.giving_back import note_popped
from rlite_pubsub.keyspace.records import Record
from rlite_pubsub.keyspace.sets import Set
from rlite_pubsub.protocol.errors import SYNTAX, WRONG_TYPE, CommandError
from rlite_pubsub.protocol.replies import Reply, SetReply

_NOT_POSITIVE: Final = b"ERR value is out of range, must be positive"


def set_of(record: Record | None) -> Set | None:
    """Return the set that was found, if anything was. Raises CommandError if it is something else."""
    if record is None or isinstance(record, Set):
        return record
    raise CommandError(WRONG_TYPE)


def tell_set(session: CommandSession, event: bytes, key: bytes) -> None:
    """Notify that something happened to a set."""
    session.engine.notifications.tell("s", event, session.db, key)


def _removed(session: CommandSession, found: Set, event: bytes) -> None:
    """Tell of members that have gone; a set that has become empty goes, too."""
    tell_set(session, event, found.name)
    drop_if_empty(session, found)


def drop_if_empty(session: CommandSession, found: Set) -> None:
    """A set without members goes."""
    if not len(found):
        keyspace_of(session).remove(found)
        session.engine.notifications.tell("g", b"del", session.db, found.name)


@command(
    "sadd",
    arity=-3,
    flags="write denyoom fast",
    group="set",
    categories="set",
    since="1.0.0",
    summary="Add one or more members to a set",
    complexity="O(1) for each element added, so O(N) to add N elements when the command is called with multiple "
    "arguments.",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("member", multiple=True),
    ),
    key_specs=(KeySpec(("RW", "INSERT"), ("index", 1), ("range", 0, 1, 0)),),
    history=(("2.4.0", "Accepts multiple `member` arguments."),),
)
def sadd(session: CommandSession, args: list[bytes]) -> Reply:
    found = set_of(for_change(session, args[1])) or keyspace_of(session).create(Set, session.db, args[1])
    added = found.add(args[2:])
    if added:
        tell_set(session, b"sadd", args[1])
    return added


@command(
    "srem",
    arity=-3,
    flags="write fast",
    group="set",
    categories="set",
    since="1.0.0",
    summary="Remove one or more members from a set",
    complexity="O(N) where N is the number of members to be removed.",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("member", multiple=True),
    ),
    key_specs=(KeySpec(("RW", "DELETE"), ("index", 1), ("range", 0, 1, 0)),),
    history=(("2.4.0", "Accepts multiple `member` arguments."),),
)
def srem(session: CommandSession, args: list[bytes]) -> Reply:
    found = set_of(for_change(session, args[1]))
    if found is None:
        return 0
    removed = found.remove(args[2:])
    if removed:
        _removed(session, found, b"srem")
    return removed


@command(
    "scard",
    arity=2,
    flags="readonly fast",
    group="set",
    categories="set",
    since="1.0.0",
    summary="Get the number of members in a set",
    complexity="O(1)",
    arguments=(Arg("key", "key", key_spec=0),),
    key_specs=(KeySpec(("RO",), ("index", 1), ("range", 0, 1, 0)),),
)
def scard(session: CommandSession, args: list[bytes]) -> Reply:
    found = set_of(find(session, args[1]))
    return 0 if found is None else len(found)


@command(
    "sismember",
    arity=3,
    flags="readonly fast",
    group="set",
    categories="set",
    since="1.0.0",
    summary="Determine if a given value is a member of a set",
    complexity="O(1)",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("member"),
    ),
    key_specs=(KeySpec(("RO",), ("index", 1), ("range", 0, 1, 0)),),
)
def sismember(session: CommandSession, args: list[bytes]) -> Reply:
    found = set_of(find(session, args[1]))
    return int(found is not None and found.has(args[2]))


@command(
    "smismember",
    arity=-3,
    flags="readonly fast",
    group="set",
    categories="set",
    since="6.2.0",
    summary="Returns the membership associated with the given elements for a set",
    complexity="O(N) where N is the number of elements being checked for membership",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("member", multiple=True),
    ),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
)
def smismember(session: CommandSession, args: list[bytes]) -> Reply:
    found = set_of(find(session, args[1]))
    return [int(found is not None and found.has(member)) for member in args[2:]]


@command(
    "smembers",
    arity=2,
    flags="readonly",
    group="set",
    categories="set",
    since="1.0.0",
    summary="Get all the members in a set",
    complexity="O(N) where N is the set cardinality.",
    arguments=(Arg("key", "key", key_spec=0),),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
    tips=("nondeterministic_output_order",),
)
def smembers(session: CommandSession, args: list[bytes]) -> Reply:
    found = set_of(find(session, args[1]))
    return SetReply([] if found is None else found.members())


@command(
    "spop",
    arity=-2,
    flags="write fast",
    group="set",
    categories="set",
    since="1.0.0",
    summary="Remove and return one or multiple random members from a set",
    complexity="Without the count argument O(1), otherwise O(N) where N is the value of the passed count.",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("count", "integer", optional=True, since="3.2.0"),
    ),
    key_specs=(KeySpec(("RW", "ACCESS", "DELETE"), ("index", 1), ("range", 0, 1, 0)),),
    tips=("nondeterministic_output",),
    history=(("3.2.0", "Added the `count` argument."),),
)
def spop(session: CommandSession, args: list[bytes]) -> Reply:
    if len(args) > 3:
        raise CommandError(SYNTAX)
    count = None if len(args) == 2 else integer(args[2], 0, LONG_MAX, _NOT_POSITIVE)
    found = set_of(for_change(session, args[1]))
    if found is None or count == 0:
        return None if count is None else SetReply()
    popped = [found.any()] if count is None else found.sample(count)
    found.remove(popped)
    if session.gives_back:
        note_popped(session, found, [b"SADD", found.name, *popped])
    _removed(session, found, b"spop")
    return popped[0] if count is None else SetReply(popped)
