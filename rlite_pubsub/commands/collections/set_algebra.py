"""Several sets at once: SINTER, SUNION, SDIFF, what stores what they find, and SINTERCARD."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rlite_pubsub.commands.collections.sets import set_of
from rlite_pubsub.engine.arguments.integers import integer
from rlite_pubsub.engine.arguments.lookup import find, for_change, keyspace_of
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.keyspace.sets import Set, is_integer
from rlite_pubsub.protocol.errors import SYNTAX, CommandError
from rlite_pubsub.protocol.replies import Reply, SetReply

_NO_KEYS = b"ERR numkeys should be greater than 0"
_TOO_MANY_KEYS = b"ERR Number of keys can't be greater than number of args"
_NEGATIVE_LIMIT = b"ERR LIMIT can't be negative"


@command(
    "sinter",
    arity=-2,
    flags="readonly",
    group="set",
    since="1.0.0",
    categories="set",
    summary="Intersect multiple sets",
    complexity="O(N*M) worst case where N is the cardinality of the smallest set and M is the number of sets.",
    arguments=(Arg("key", "key", multiple=True, key_spec=0),),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", -1, 1, 0)),),
    tips=("nondeterministic_output_order",),
)
def sinter(session: CommandSession, args: list[bytes]) -> Reply:
    return SetReply(_common(_sets(session, args[1:])))


@command(
    "sinterstore",
    arity=-3,
    flags="write denyoom",
    group="set",
    since="1.0.0",
    categories="set",
    summary="Intersect multiple sets and store the resulting set in a key",
    complexity="O(N*M) worst case where N is the cardinality of the smallest set and M is the number of sets.",
    arguments=(
        Arg("destination", "key", key_spec=0),
        Arg("key", "key", multiple=True, key_spec=1),
    ),
    key_specs=(
        KeySpec(("RW", "UPDATE"), ("index", 1), ("range", 0, 1, 0)),
        KeySpec(("RO", "ACCESS"), ("index", 2), ("range", -1, 1, 0)),
    ),
)
def sinterstore(session: CommandSession, args: list[bytes]) -> Reply:
    keyspace_of(session).writing()  # what is read is the latest
    return _store(session, args[1], b"sinterstore", set(_common(_sets(session, args[2:]))))


@command(
    "sintercard",
    arity=-3,
    flags="readonly movablekeys",
    group="set",
    since="7.0.0",
    categories="set",
    summary="Intersect multiple sets and return the cardinality of the result",
    complexity="O(N*M) worst case where N is the cardinality of the smallest set and M is the number of sets.",
    arguments=(
        Arg("numkeys", "integer"),
        Arg("key", "key", multiple=True, key_spec=0),
        Arg("limit", "integer", token="LIMIT", optional=True),
    ),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("keynum", 0, 1, 1)),),
)
def sintercard(session: CommandSession, args: list[bytes]) -> Reply:
    count = integer(args[1], 1, refusal=_NO_KEYS)
    if count > len(args) - 2:
        raise CommandError(_TOO_MANY_KEYS)
    limit = 0
    rest = iter(args[2 + count :])
    for word in rest:
        value = next(rest, None)
        if word.lower() != b"limit" or value is None:
            raise CommandError(SYNTAX)
        limit = integer(value, 0, refusal=_NEGATIVE_LIMIT)
    found = 0
    for _ in _common(_sets(session, args[2 : 2 + count])):
        found += 1
        if found == limit:
            break
    return found


def _sets(session: CommandSession, keys: list[bytes]) -> list[Set | None]:
    """Return the sets, None for each missing one. Raises CommandError."""
    return [set_of(find(session, key)) for key in keys]


def _common(sets: list[Set | None]) -> Iterator[bytes]:
    """Yield the members of all of them, in the order of the smallest."""
    there = [one for one in sets if one is not None]
    if len(there) < len(sets):
        return iter(())
    smallest, *others = sorted(there, key=len)
    return (member for member in smallest.members() if all(other.has(member) for other in others))


def _any(sets: list[Set | None]) -> set[bytes]:
    """Return the members of any of them."""
    return {member for one in sets if one is not None for member in one.members()}


def _rest(sets: list[Set | None]) -> set[bytes]:
    """Return the members that only the first has."""
    first, *others = sets
    there = [other for other in others if other is not None]
    if first is None or first in there:
        return set()
    if len(first) * len(there) <= sum(map(len, there)) * 2:
        return {member for member in first.members() if not any(other.has(member) for other in there)}
    kept = set(first.members())
    for other in there:
        kept.difference_update(other.members())
    return kept


def _in_order(session: CommandSession, members: set[bytes]) -> Iterable[bytes]:
    """Return the members in Redis's order: those of a set of integers are sorted."""
    is_small = len(members) <= keyspace_of(session).stored.packing.intset_entries
    return sorted(members, key=int) if is_small and all(map(is_integer, members)) else members


def _store(session: CommandSession, target: bytes, event: bytes, members: set[bytes]) -> Reply:
    """Store the members, replacing the key, of whatever type."""
    keyspace, notifications, database = keyspace_of(session), session.engine.notifications, session.db
    existing = for_change(session, target)
    if existing is not None:
        keyspace.remove(existing)
    notifications.hold()
    if members:
        keyspace.create(Set, database, target, replaces=existing is not None).add(members)
        notifications.tell("s", event, database, target)
    elif existing is not None:
        notifications.tell("g", b"del", database, target)
    return len(members)


@command(
    "sunion",
    arity=-2,
    flags="readonly",
    group="set",
    since="1.0.0",
    categories="set",
    summary="Add multiple sets",
    complexity="O(N) where N is the total number of elements in all given sets.",
    arguments=(Arg("key", "key", multiple=True, key_spec=0),),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", -1, 1, 0)),),
    tips=("nondeterministic_output_order",),
)
def sunion(session: CommandSession, args: list[bytes]) -> Reply:
    return SetReply(_in_order(session, _any(_sets(session, args[1:]))))


@command(
    "sunionstore",
    arity=-3,
    flags="write denyoom",
    group="set",
    since="1.0.0",
    categories="set",
    summary="Add multiple sets and store the resulting set in a key",
    complexity="O(N) where N is the total number of elements in all given sets.",
    arguments=(
        Arg("destination", "key", key_spec=0),
        Arg("key", "key", multiple=True, key_spec=1),
    ),
    key_specs=(
        KeySpec(("OW", "UPDATE"), ("index", 1), ("range", 0, 1, 0)),
        KeySpec(("RO", "ACCESS"), ("index", 2), ("range", -1, 1, 0)),
    ),
)
def sunionstore(session: CommandSession, args: list[bytes]) -> Reply:
    keyspace_of(session).writing()  # what is read is the latest
    return _store(session, args[1], b"sunionstore", _any(_sets(session, args[2:])))


@command(
    "sdiff",
    arity=-2,
    flags="readonly",
    group="set",
    since="1.0.0",
    categories="set",
    summary="Subtract multiple sets",
    complexity="O(N) where N is the total number of elements in all given sets.",
    arguments=(Arg("key", "key", multiple=True, key_spec=0),),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", -1, 1, 0)),),
    tips=("nondeterministic_output_order",),
)
def sdiff(session: CommandSession, args: list[bytes]) -> Reply:
    return SetReply(_in_order(session, _rest(_sets(session, args[1:]))))


@command(
    "sdiffstore",
    arity=-3,
    flags="write denyoom",
    group="set",
    since="1.0.0",
    categories="set",
    summary="Subtract multiple sets and store the resulting set in a key",
    complexity="O(N) where N is the total number of elements in all given sets.",
    arguments=(
        Arg("destination", "key", key_spec=0),
        Arg("key", "key", multiple=True, key_spec=1),
    ),
    key_specs=(
        KeySpec(("OW", "UPDATE"), ("index", 1), ("range", 0, 1, 0)),
        KeySpec(("RO", "ACCESS"), ("index", 2), ("range", -1, 1, 0)),
    ),
)
def sdiffstore(session: CommandSession, args: list[bytes]) -> Reply:
    keyspace_of(session).writing()  # what is read is the latest
    return _store(session, args[1], b"sdiffstore", _rest(_sets(session, args[2:])))
