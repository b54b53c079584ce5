"""Sorted sets: members that are added, removed, and asked for their score or rank."""

from __future__ import annotations

from typing import Final

from rlite_pubsub.engine.arguments.floats import floating
from rlite_pubsub.engine.arguments.score_ranges import Range, member_range, score_range
from rlite_pubsub.engine.arguments.sorted_set_lookup import (
    drop_if_empty,
    find_sorted_set,
    sorted_set_for_change,
    tell_sorted_set,
)
from rlite_pubsub.engine.arguments.sorted_set_storing import put, put_one
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.protocol.errors import SYNTAX, CommandError
from rlite_pubsub.protocol.replies import Reply

_NX_AND_XX: Final = b"ERR XX and NX options at the same time are not compatible"
_TOO_MANY_CONDITIONS: Final = b"ERR GT, LT, and/or NX options at the same time are not compatible"
_ONE_INCREMENT: Final = b"ERR INCR option supports a single increment-element pair"
_OPTIONS: Final = frozenset((b"nx", b"xx", b"gt", b"lt", b"ch", b"incr"))
_NO_OPTIONS: Final[frozenset[bytes]] = frozenset()


def _options_of(args: list[bytes]) -> tuple[frozenset[bytes], int]:
    """Return the options behind the key, and where the first score stands."""
    at = 2
    while at < len(args) and args[at].lower() in _OPTIONS:
        at += 1
    return frozenset(word.lower() for word in args[2:at]), at


def _check(options: frozenset[bytes], words: int) -> None:
    """Check that the options go together, and with this many words after them. Raises CommandError."""
    if words % 2 or not words:
        raise CommandError(SYNTAX)
    if options >= {b"nx", b"xx"}:
        raise CommandError(_NX_AND_XX)
    if len(options & {b"gt", b"lt", b"nx"}) > 1:
        raise CommandError(_TOO_MANY_CONDITIONS)
    if b"incr" in options and words > 2:
        raise CommandError(_ONE_INCREMENT)


@command(
    "zadd",
    arity=-4,
    flags="write denyoom fast",
    group="sorted-set",
    since="1.2.0",
    categories="sortedset",
    summary="Add one or more members to a sorted set, or update its score if it already exists",
    complexity="O(log(N)) for each item added, where N is the number of elements in the sorted set.",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg(
            "condition",
            "oneof",
            optional=True,
            since="3.0.2",
            arguments=(
                Arg("nx", "pure-token", token="NX"),
                Arg("xx", "pure-token", token="XX"),
            ),
        ),
        Arg(
            "comparison",
            "oneof",
            optional=True,
            since="6.2.0",
            arguments=(
                Arg("gt", "pure-token", token="GT"),
                Arg("lt", "pure-token", token="LT"),
            ),
        ),
        Arg("change", "pure-token", token="CH", optional=True, since="3.0.2"),
        Arg("increment", "pure-token", token="INCR", optional=True, since="3.0.2"),
        Arg(
            "score_member",
            "block",
            multiple=True,
            arguments=(
                Arg("score", "double"),
                Arg("member"),
            ),
        ),
    ),
    key_specs=(KeySpec(("RW", "UPDATE"), ("index", 1), ("range", 0, 1, 0)),),
    history=(
        ("2.4.0", "Accepts multiple elements."),
        ("3.0.2", "Added the `XX`, `NX`, `CH` and `INCR` options."),
        ("6.2.0", "Added the `GT` and `LT` options."),
    ),
)
def zadd(session: CommandSession, args: list[bytes]) -> Reply:
    options, at = (_NO_OPTIONS, 2) if args[2].lower() not in _OPTIONS else _options_of(args)
    if at == 2 and len(args) == 4:  # as most are
        return int(put_one(session, args[1], floating(args[2]), args[3]))
    _check(options, len(args) - at)
    numbers = [floating(word) for word in args[at::2]]
    placing = put(session, args[1], options, numbers, args[at + 1 :: 2])
    return placing.score if b"incr" in options else placing.counted(options)


@command(
    "zincrby",
    arity=4,
    flags="write denyoom fast",
    group="sorted-set",
    since="1.2.0",
    categories="sortedset",
    summary="Increment the score of a member in a sorted set",
    complexity="O(log(N)) where N is the number of elements in the sorted set.",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("increment", "integer"),
        Arg("member"),
    ),
    key_specs=(KeySpec(("RW", "ACCESS", "UPDATE"), ("index", 1), ("range", 0, 1, 0)),),
)
def zincrby(session: CommandSession, args: list[bytes]) -> Reply:
    options, at = _options_of(args)
    options |= {b"incr"}
    _check(options, len(args) - at)
    numbers = [floating(word) for word in args[at::2]]
    return put(session, args[1], options, numbers, args[at + 1 :: 2]).score


@command(
    "zrem",
    arity=-3,
    flags="write fast",
    group="sorted-set",
    since="1.2.0",
    categories="sortedset",
    summary="Remove one or more members from a sorted set",
    complexity="O(M*log(N)) with N being the number of elements in the sorted set and M the number of elements to be "
    "removed.",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("member", multiple=True),
    ),
    key_specs=(KeySpec(("RW", "DELETE"), ("index", 1), ("range", 0, 1, 0)),),
    history=(("2.4.0", "Accepts multiple elements."),),
)
def zrem(session: CommandSession, args: list[bytes]) -> Reply:
    found = sorted_set_for_change(session, args[1])
    if found is None:
        return 0
    removed = found.remove(args[2:])
    if removed:
        tell_sorted_set(session, b"zrem", args[1])
        drop_if_empty(session, found)
    return removed


@command(
    "zcard",
    arity=2,
    flags="readonly fast",
    group="sorted-set",
    since="1.2.0",
    categories="sortedset",
    summary="Get the number of members in a sorted set",
    complexity="O(1)",
    arguments=(
        Arg("key", "key", key_spec=0),
    ),
    key_specs=(KeySpec(("RO",), ("index", 1), ("range", 0, 1, 0)),),
)
def zcard(session: CommandSession, args: list[bytes]) -> Reply:
    found = find_sorted_set(session, args[1])
    return 0 if found is None else len(found)


@command(
    "zscore",
    arity=3,
    flags="readonly fast",
    group="sorted-set",
    since="1.2.0",
    categories="sortedset",
    summary="Get the score associated with the given member in a sorted set",
    complexity="O(1)",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("member"),
    ),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
)
def zscore(session: CommandSession, args: list[bytes]) -> Reply:
    found = find_sorted_set(session, args[1])
    return None if found is None else found.score(args[2])


@command(
    "zmscore",
    arity=-3,
    flags="readonly fast",
    group="sorted-set",
    since="6.2.0",
    categories="sortedset",
    summary="Get the score associated with the given members in a sorted set",
    complexity="O(N) where N is the number of members being requested.",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("member", multiple=True),
    ),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
)
def zmscore(session: CommandSession, args: list[bytes]) -> Reply:
    found = find_sorted_set(session, args[1])
    return [None if found is None else found.score(member) for member in args[2:]]


@command(
    "zrank",
    arity=3,
    flags="readonly fast",
    group="sorted-set",
    since="2.0.0",
    categories="sortedset",
    summary="Determine the index of a member in a sorted set",
    complexity="O(log(N))",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("member"),
    ),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
)
def zrank(session: CommandSession, args: list[bytes]) -> Reply:
    found = find_sorted_set(session, args[1])
    return None if found is None else found.rank(args[2])


@command(
    "zrevrank",
    arity=3,
    flags="readonly fast",
    group="sorted-set",
    since="2.0.0",
    categories="sortedset",
    summary="Determine the index of a member in a sorted set, with scores ordered from high to low",
    complexity="O(log(N))",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("member"),
    ),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
)
def zrevrank(session: CommandSession, args: list[bytes]) -> Reply:
    found = find_sorted_set(session, args[1])
    rank = None if found is None else found.rank(args[2])
    return None if found is None or rank is None else len(found) - 1 - rank


@command(
    "zcount",
    arity=4,
    flags="readonly fast",
    group="sorted-set",
    since="2.0.0",
    categories="sortedset",
    summary="Count the members in a sorted set with scores within the given values",
    complexity="O(log(N)) with N being the number of elements in the sorted set.",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("min", "double"),
        Arg("max", "double"),
    ),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
)
def zcount(session: CommandSession, args: list[bytes]) -> Reply:
    return _count(session, args[1], score_range(args[2], args[3]))


@command(
    "zlexcount",
    arity=4,
    flags="readonly fast",
    group="sorted-set",
    since="2.8.9",
    categories="sortedset",
    summary="Count the number of members in a sorted set between a given lexicographical range",
    complexity="O(log(N)) with N being the number of elements in the sorted set.",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("min"),
        Arg("max"),
    ),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
)
def zlexcount(session: CommandSession, args: list[bytes]) -> Reply:
    return _count(session, args[1], member_range(args[2], args[3]))


def _count(session: CommandSession, key: bytes, wanted: Range) -> int:
    found = find_sorted_set(session, key)
    if found is None:
        return 0
    start, stop = wanted.bounds(found)
    return max(0, stop - start)
