"""Members that leave sorted sets: by rank, score or member, the lowest or the highest; and how these are waited for."""

from __future__ import annotations

from functools import partial
from typing import Final

from rlite_pubsub.engine.arguments.integers import integer
from rlite_pubsub.engine.arguments.popping import MIN_MAX, popping
from rlite_pubsub.engine.arguments.score_ranges import Range, member_range, ranks, score_range
from rlite_pubsub.engine.arguments.sorted_set_lookup import (
    answered,
    drop_if_empty,
    sorted_set_for_change,
    tell_sorted_set,
)
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.engine.waits.giving_back import note_popped
from rlite_pubsub.engine.waits.taking import take_or_wait
from rlite_pubsub.engine.waits.timeouts import seconds_as_ms
from rlite_pubsub.keyspace.sorted_sets import Scored, SortedSet
from rlite_pubsub.protocol.errors import SYNTAX, CommandError
from rlite_pubsub.protocol.replies import NULL_ARRAY, Reply

_NOT_POSITIVE: Final = b"ERR value is out of range, must be positive"


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
    """Pop from an existing sorted set, removing it if it becomes empty."""
    popped = found.pop(count, highest=highest)
    if popped:
        tell_sorted_set(session, b"zpopmax" if highest else b"zpopmin", found.name)
        if session.gives_back:
            scored = [word for member, score in popped for word in (repr(score).encode(), member)]
            note_popped(session, found, [b"ZADD", found.name, b"NX", *scored])
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


def _pop_some(session: CommandSession, lowest: bool, most: int, key: bytes) -> Reply:
    found = sorted_set_for_change(session, key)
    return None if found is None else [key, [list(scored) for scored in _pop(session, found, most, highest=not lowest)]]


def _pop_one(session: CommandSession, lowest: bool, key: bytes) -> Reply:
    found = sorted_set_for_change(session, key)
    return None if found is None else [key, *_pop(session, found, 1, highest=not lowest)[0]]


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
    keys, lowest, most = popping(args[1:], MIN_MAX)
    for key in keys:
        reply = _pop_some(session, lowest, most, key)
        if reply is not None:
            return reply
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
    return take_or_wait(session, SortedSet, args[1:-1], seconds_as_ms(args[-1]), partial(_pop_one, session, True))


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
    return take_or_wait(session, SortedSet, args[1:-1], seconds_as_ms(args[-1]), partial(_pop_one, session, False))


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
    keys, lowest, most = popping(args[2:], MIN_MAX)
    return take_or_wait(session, SortedSet, keys, seconds_as_ms(args[1]), partial(_pop_some, session, lowest, most))
