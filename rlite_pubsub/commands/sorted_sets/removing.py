"""Members that leave sorted sets: by rank, score or member, the lowest or the highest; and how these are waited for."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from rlite_pubsub.engine.arguments.integers import integer
from rlite_pubsub.engine.arguments.lookup import for_change
from rlite_pubsub.engine.arguments.score_ranges import Range, member_range, ranks, score_range
from rlite_pubsub.engine.arguments.sorted_set_lookup import (
    answered,
    drop_if_empty,
    sorted_set_for_change,
    sorted_set_of,
    tell_sorted_set,
)
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.engine.waits.timeouts import seconds_as_ms
from rlite_pubsub.keyspace.sorted_sets import Scored, SortedSet
from rlite_pubsub.protocol.errors import SYNTAX, CommandError
from rlite_pubsub.protocol.replies import NULL_ARRAY, Reply

_NOT_POSITIVE: Final = b"ERR value is out of range, must be positive"
_NO_KEYS: Final = b"ERR numkeys should be greater than 0"
_NO_COUNT: Final = b"ERR count should be greater than 0"


def _remove(session: CommandSession, key: bytes, wanted: Range, event: bytes) -> int:
    found = sorted_set_for_change(session, key)
    if found is None:
        return 0
    start, stop = wanted.bounds(found)
    if start >= stop:
        return 0
    removed = found.remove([member for member, _ in list(found.slice(start, stop))])
    tell_sorted_set(session, event, key)
    drop_if_empty(session, found)
    return removed


@command(
    "zremrangebyrank",
    arity=4,
    flags="write",
    group="sorted-set",
    since="2.0.0",
    categories="sortedset",
    summary="Remove all members in a sorted set within the given indexes",
    complexity="O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements "
    "removed by the operation.",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("start", "integer"),
        Arg("stop", "integer"),
    ),
    key_specs=(KeySpec(("RW", "DELETE"), ("index", 1), ("range", 0, 1, 0)),),
)
def zremrangebyrank(session: CommandSession, args: list[bytes]) -> Reply:
    return _remove(session, args[1], ranks(args[2], args[3]), b"zremrangebyrank")


@command(
    "zremrangebyscore",
    arity=4,
    flags="write",
    group="sorted-set",
    since="1.2.0",
    categories="sortedset",
    summary="Remove all members in a sorted set within the given scores",
    complexity="O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements "
    "removed by the operation.",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("min", "double"),
        Arg("max", "double"),
    ),
    key_specs=(KeySpec(("RW", "DELETE"), ("index", 1), ("range", 0, 1, 0)),),
)
def zremrangebyscore(session: CommandSession, args: list[bytes]) -> Reply:
    return _remove(session, args[1], score_range(args[2], args[3]), b"zremrangebyscore")


@command(
    "zremrangebylex",
    arity=4,
    flags="write",
    group="sorted-set",
    since="2.8.9",
    categories="sortedset",
    summary="Remove all members in a sorted set between the given lexicographical range",
    complexity="O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements "
    "removed by the operation.",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("min"),
        Arg("max"),
    ),
    key_specs=(KeySpec(("RW", "DELETE"), ("index", 1), ("range", 0, 1, 0)),),
)
def zremrangebylex(session: CommandSession, args: list[bytes]) -> Reply:
    return _remove(session, args[1], member_range(args[2], args[3]), b"zremrangebylex")


def _pop(session: CommandSession, found: SortedSet, count: int, *, highest: bool) -> list[Scored]:
    """From a sorted set that is there; one that becomes empty goes."""
    popped = list(found.slice(0, count, backwards=highest))
    if popped:
        found.remove([member for member, _ in popped])
        tell_sorted_set(session, b"zpopmax" if highest else b"zpopmin", found.name)
        drop_if_empty(session, found)
    return popped


def _popped(session: CommandSession, args: list[bytes], *, highest: bool) -> Reply:
    if len(args) > 3:
        raise CommandError(SYNTAX)
    has_count = len(args) == 3
    count = integer(args[2], 0, refusal=_NOT_POSITIVE) if has_count else 1
    found = sorted_set_for_change(session, args[1])
    if found is None or not count:
        return []
    popped = _pop(session, found, count, highest=highest)
    return answered(session, popped, with_scores=True) if has_count else list(popped[0])


@command(
    "zpopmin",
    arity=-2,
    flags="write fast",
    group="sorted-set",
    since="5.0.0",
    categories="sortedset",
    summary="Remove and return members with the lowest scores in a sorted set",
    complexity="O(log(N)*M) with N being the number of elements in the sorted set, and M being the number of elements "
    "popped.",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("count", "integer", optional=True),
    ),
    key_specs=(KeySpec(("RW", "ACCESS", "DELETE"), ("index", 1), ("range", 0, 1, 0)),),
)
def zpopmin(session: CommandSession, args: list[bytes]) -> Reply:
    return _popped(session, args, highest=False)


@command(
    "zpopmax",
    arity=-2,
    flags="write fast",
    group="sorted-set",
    since="5.0.0",
    categories="sortedset",
    summary="Remove and return members with the highest scores in a sorted set",
    complexity="O(log(N)*M) with N being the number of elements in the sorted set, and M being the number of elements "
    "popped.",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("count", "integer", optional=True),
    ),
    key_specs=(KeySpec(("RW", "ACCESS", "DELETE"), ("index", 1), ("range", 0, 1, 0)),),
)
def zpopmax(session: CommandSession, args: list[bytes]) -> Reply:
    return _popped(session, args, highest=True)


class _Popping(NamedTuple):
    """What ZMPOP and BZMPOP are told."""

    keys: list[bytes]
    highest: bool
    most: int


def _popping(words: list[bytes]) -> _Popping:
    """Read what stands behind ZMPOP, or behind BZMPOP's timeout. Raises CommandError."""
    count = integer(words[0], 1, refusal=_NO_KEYS)
    if count + 1 >= len(words):
        raise CommandError(SYNTAX)
    where = words[count + 1].lower()
    if where not in (b"min", b"max"):
        raise CommandError(SYNTAX)
    rest = words[count + 2 :]
    most = 1
    if rest:
        if rest[0].lower() != b"count" or len(rest) < 2:
            raise CommandError(SYNTAX)
        most = integer(rest[1], 1, refusal=_NO_COUNT)
        if len(rest) > 2:
            raise CommandError(SYNTAX)
    return _Popping(words[1 : count + 1], where == b"max", most)


def _pop_some(session: CommandSession, highest: bool, most: int, found: SortedSet) -> Reply:
    popped = _pop(session, found, most, highest=highest)
    return [found.name, [list(scored) for scored in popped]]


def _pop_one(session: CommandSession, highest: bool, found: SortedSet) -> Reply:
    popped = _pop(session, found, 1, highest=highest)
    return [found.name, *popped[0]]


@command(
    "zmpop",
    arity=-4,
    flags="write movablekeys",
    group="sorted-set",
    since="7.0.0",
    categories="sortedset",
    summary="Remove and return members with scores in a sorted set",
    complexity="O(K) + O(M*log(N)) where K is the number of provided keys, N being the number of elements in the "
    "sorted set, and M being the number of elements popped.",
    arguments=(
        Arg("numkeys", "integer"),
        Arg("key", "key", multiple=True, key_spec=0),
        Arg(
            "where",
            "oneof",
            arguments=(
                Arg("min", "pure-token", token="MIN"),
                Arg("max", "pure-token", token="MAX"),
            ),
        ),
        Arg("count", "integer", token="COUNT", optional=True),
    ),
    key_specs=(KeySpec(("RW", "ACCESS", "DELETE"), ("index", 1), ("keynum", 0, 1, 1)),),
)
def zmpop(session: CommandSession, args: list[bytes]) -> Reply:
    keys, highest, most = _popping(args[1:])
    for key in keys:
        found = sorted_set_for_change(session, key)
        if found is not None:
            return _pop_some(session, highest, most, found)
    return NULL_ARRAY


@command(
    "bzpopmin",
    arity=-3,
    flags="write noscript fast blocking",
    group="sorted-set",
    since="5.0.0",
    categories="sortedset",
    summary="Remove and return the member with the lowest score from one or more sorted sets, or block until one is "
    "available",
    complexity="O(log(N)) with N being the number of elements in the sorted set.",
    arguments=(
        Arg("key", "key", multiple=True, key_spec=0),
        Arg("timeout", "double"),
    ),
    key_specs=(KeySpec(("RW", "ACCESS", "DELETE"), ("index", 1), ("range", -2, 1, 0)),),
    history=(("6.0.0", "`timeout` is interpreted as a double instead of an integer."),),
)
def bzpopmin(session: CommandSession, args: list[bytes]) -> Reply:
    return _wait(session, args[1:-1], seconds_as_ms(args[-1]), partial(_pop_one, session, False))


@command(
    "bzpopmax",
    arity=-3,
    flags="write noscript fast blocking",
    group="sorted-set",
    since="5.0.0",
    categories="sortedset",
    summary="Remove and return the member with the highest score from one or more sorted sets, or block until one is "
    "available",
    complexity="O(log(N)) with N being the number of elements in the sorted set.",
    arguments=(
        Arg("key", "key", multiple=True, key_spec=0),
        Arg("timeout", "double"),
    ),
    key_specs=(KeySpec(("RW", "ACCESS", "DELETE"), ("index", 1), ("range", -2, 1, 0)),),
    history=(("6.0.0", "`timeout` is interpreted as a double instead of an integer."),),
)
def bzpopmax(session: CommandSession, args: list[bytes]) -> Reply:
    return _wait(session, args[1:-1], seconds_as_ms(args[-1]), partial(_pop_one, session, True))


@command(
    "bzmpop",
    arity=-5,
    flags="write blocking movablekeys",
    group="sorted-set",
    since="7.0.0",
    categories="sortedset",
    summary="Remove and return members with scores in a sorted set or block until one is available",
    complexity="O(K) + O(M*log(N)) where K is the number of provided keys, N being the number of elements in the "
    "sorted set, and M being the number of elements popped.",
    arguments=(
        Arg("timeout", "double"),
        Arg("numkeys", "integer"),
        Arg("key", "key", multiple=True, key_spec=0),
        Arg(
            "where",
            "oneof",
            arguments=(
                Arg("min", "pure-token", token="MIN"),
                Arg("max", "pure-token", token="MAX"),
            ),
        ),
        Arg("count", "integer", token="COUNT", optional=True),
    ),
    key_specs=(KeySpec(("RW", "ACCESS", "DELETE"), ("index", 2), ("keynum", 0, 1, 1)),),
)
def bzmpop(session: CommandSession, args: list[bytes]) -> Reply:
    keys, highest, most = _popping(args[2:])
    return _wait(session, keys, seconds_as_ms(args[1]), partial(_pop_some, session, highest, most))


def _wait(
    session: CommandSession, keys: list[bytes], timeout_ms: int, take: Callable[[SortedSet], Reply]
) -> Reply:
    """What is taken of the first sorted set that is there; else wait for one."""
    keyspace, database = session.engine.keyspace, session.db
    for key in keys:
        if sorted_set_of(keyspace.find(database, key)) is not None:
            found = sorted_set_for_change(session, key)
            if found is not None:
                return take(found)

    def take_there(key: bytes) -> Reply:
        """For one who waits a key that is no sorted set is none."""
        if not isinstance(keyspace.find(database, key), SortedSet):
            return None
        found = for_change(session, key)
        return take(found) if isinstance(found, SortedSet) else None

    return session.engine.waiting.block(session, keys, timeout_ms, take_there)
