"""Sorted sets, and sets, together: unions, intersections, differences, with weights; answered, counted or stored."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from rlite_pubsub.engine.arguments.floats import floating
from rlite_pubsub.engine.arguments.integers import integer
from rlite_pubsub.engine.arguments.lookup import find
from rlite_pubsub.engine.arguments.sorted_set_lookup import answered
from rlite_pubsub.engine.arguments.sorted_set_storing import store_sorted_set
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.keyspace.sets import Set
from rlite_pubsub.keyspace.sorted_sets import Scored, SortedSet
from rlite_pubsub.protocol.errors import SYNTAX, WRONG_TYPE, CommandError
from rlite_pubsub.protocol.replies import Reply

_NO_FLOAT = b"ERR weight value is not a float"
_NEGATIVE_LIMIT = b"ERR LIMIT can't be negative"
_AGGREGATES = (b"sum", b"min", b"max")

Source = SortedSet | Set | None


class _Operands(NamedTuple):
    """The operands of a command of the family."""

    sources: list[Source]
    weights: list[float]
    aggregate: bytes
    with_scores: bool
    limit: int
    """Of a count; 0: none."""


def _read(
    session: CommandSession,
    name: str,
    words: list[bytes],
    *,
    takes_weights: bool,
    takes_scores: bool,
    takes_limit: bool = False,
) -> _Operands:
    """Return the number of keys, the keys and what stands behind them. Raises CommandError."""
    count = integer(words[0])
    if count < 1:
        raise CommandError(f"ERR at least 1 input key is needed for '{name}' command".encode())
    if count > len(words) - 1:
        raise CommandError(SYNTAX)
    sources: list[Source] = []
    for key in words[1 : count + 1]:
        record = find(session, key)
        if record is not None and not isinstance(record, SortedSet | Set):
            raise CommandError(WRONG_TYPE)
        sources.append(record)
    weights, aggregate, with_scores, limit = [1.0] * count, b"sum", False, 0
    rest = words[count + 1 :]
    at = 0
    while at < len(rest):
        option, left = rest[at].lower(), len(rest) - at
        if takes_weights and option == b"weights" and left >= count + 1:
            weights = [floating(word, _NO_FLOAT) for word in rest[at + 1 : at + 1 + count]]
            at += count + 1
        elif takes_weights and option == b"aggregate" and left >= 2:
            aggregate = rest[at + 1].lower()
            if aggregate not in _AGGREGATES:
                raise CommandError(SYNTAX)
            at += 2
        elif takes_scores and option == b"withscores":
            with_scores = True
            at += 1
        elif takes_limit and option == b"limit" and left >= 2:
            limit = integer(rest[at + 1], 0, refusal=_NEGATIVE_LIMIT)
            at += 2
        else:
            raise CommandError(SYNTAX)
    return _Operands(sources, weights, aggregate, with_scores, limit)


def _members(source: Source) -> Iterable[Scored]:
    if source is None:
        return ()
    if isinstance(source, SortedSet):
        return source.walk()
    return ((member, 1.0) for member in source.members())


def _score(source: Source, member: bytes) -> float | None:
    if isinstance(source, SortedSet):
        return source.score(member)
    return 1.0 if source is not None and source.has(member) else None


def _aggregated(before: float, score: float, aggregate: bytes) -> float:
    if aggregate == b"sum":
        total = before + score
        return 0.0 if math.isnan(total) else total  # infinities of both signs
    return min(before, score) if aggregate == b"min" else max(before, score)


def _weighted(score: float, weight: float) -> float:
    product = score * weight
    return 0.0 if math.isnan(product) else product


def _by_size(operands: _Operands) -> list[tuple[Source, float]]:
    """Smallest first: the result does not tell, the time does."""
    pairs = list(zip(operands.sources, operands.weights, strict=True))
    return sorted(pairs, key=lambda pair: 0 if pair[0] is None else len(pair[0]))


def _union(operands: _Operands) -> list[Scored]:
    found: dict[bytes, float] = {}
    for source, weight in _by_size(operands):
        for member, score in _members(source):
            weighted = _weighted(score, weight)
            before = found.get(member)
            found[member] = weighted if before is None else _aggregated(before, weighted, operands.aggregate)
    return _in_order(found)


def _intersection(operands: _Operands) -> list[Scored]:
    (first, first_weight), *others = _by_size(operands)
    found: dict[bytes, float] = {}
    for member, score in _members(first):
        total: float | None = _weighted(score, first_weight)
        for source, weight in others:
            other = _score(source, member)
            if other is None:
                total = None
                break
            assert total is not None
            total = _aggregated(total, other * weight, operands.aggregate)
        if total is not None:
            found[member] = total
            if operands.limit and len(found) >= operands.limit:
                break
    return _in_order(found)


def _difference(operands: _Operands) -> list[Scored]:
    first, *others = operands.sources
    if any(other is first for other in others):
        return []
    found = {member: score for member, score in _members(first) if all(_score(o, member) is None for o in others)}
    return _in_order(found)


def _in_order(found: dict[bytes, float]) -> list[Scored]:
    return sorted(found.items(), key=lambda scored: (scored[1], scored[0]))


def _store(session: CommandSession, key: bytes, members: list[Scored], event: bytes) -> int:
    longest = max((len(member) for member, _ in members), default=0)
    return store_sorted_set(session, key, members, event, longest)


@command(
    "zunion",
    arity=-3,
    flags="readonly movablekeys",
    group="sorted-set",
    since="6.2.0",
    categories="sortedset",
    summary="Add multiple sorted sets",
    complexity="O(N)+O(M*log(M)) with N being the sum of the sizes of the input sorted sets, and M being the number "
    "of elements in the resulting sorted set.",
    arguments=(
        Arg("numkeys", "integer"),
        Arg("key", "key", multiple=True, key_spec=0),
        Arg("weight", "integer", token="WEIGHTS", optional=True, multiple=True),
        Arg(
            "aggregate",
            "oneof",
            token="AGGREGATE",
            optional=True,
            arguments=(
                Arg("sum", "pure-token", token="SUM"),
                Arg("min", "pure-token", token="MIN"),
                Arg("max", "pure-token", token="MAX"),
            ),
        ),
        Arg("withscores", "pure-token", token="WITHSCORES", optional=True),
    ),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("keynum", 0, 1, 1)),),
)
def zunion(session: CommandSession, args: list[bytes]) -> Reply:
    operands = _read(session, "zunion", args[1:], takes_weights=True, takes_scores=True)
    return answered(session, _union(operands), with_scores=operands.with_scores)


@command(
    "zinter",
    arity=-3,
    flags="readonly movablekeys",
    group="sorted-set",
    since="6.2.0",
    categories="sortedset",
    summary="Intersect multiple sorted sets",
    complexity="O(N*K)+O(M*log(M)) worst case with N being the smallest input sorted set, K being the number of input "
    "sorted sets and M being the number of elements in the resulting sorted set.",
    arguments=(
        Arg("numkeys", "integer"),
        Arg("key", "key", multiple=True, key_spec=0),
        Arg("weight", "integer", token="WEIGHTS", optional=True, multiple=True),
        Arg(
            "aggregate",
            "oneof",
            token="AGGREGATE",
            optional=True,
            arguments=(
                Arg("sum", "pure-token", token="SUM"),
                Arg("min", "pure-token", token="MIN"),
                Arg("max", "pure-token", token="MAX"),
            ),
        ),
        Arg("withscores", "pure-token", token="WITHSCORES", optional=True),
    ),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("keynum", 0, 1, 1)),),
)
def zinter(session: CommandSession, args: list[bytes]) -> Reply:
    operands = _read(session, "zinter", args[1:], takes_weights=True, takes_scores=True)
    return answered(session, _intersection(operands), with_scores=operands.with_scores)


@command(
    "zdiff",
    arity=-3,
    flags="readonly movablekeys",
    group="sorted-set",
    since="6.2.0",
    categories="sortedset",
    summary="Subtract multiple sorted sets",
    complexity="O(L + (N-K)log(N)) worst case where L is the total number of elements in all the sets, N is the size "
    "of the first set, and K is the size of the result set.",
    arguments=(
        Arg("numkeys", "integer"),
        Arg("key", "key", multiple=True, key_spec=0),
        Arg("withscores", "pure-token", token="WITHSCORES", optional=True),
    ),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("keynum", 0, 1, 1)),),
)
def zdiff(session: CommandSession, args: list[bytes]) -> Reply:
    operands = _read(session, "zdiff", args[1:], takes_weights=False, takes_scores=True)
    return answered(session, _difference(operands), with_scores=operands.with_scores)


@command(
    "zintercard",
    arity=-3,
    flags="readonly movablekeys",
    group="sorted-set",
    since="7.0.0",
    categories="sortedset",
    summary="Intersect multiple sorted sets and return the cardinality of the result",
    complexity="O(N*K) worst case with N being the smallest input sorted set, K being the number of input sorted sets.",
    arguments=(
        Arg("numkeys", "integer"),
        Arg("key", "key", multiple=True, key_spec=0),
        Arg("limit", "integer", token="LIMIT", optional=True),
    ),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("keynum", 0, 1, 1)),),
)
def zintercard(session: CommandSession, args: list[bytes]) -> Reply:
    operands = _read(
        session, "zintercard", args[1:], takes_weights=False, takes_scores=False, takes_limit=True
    )
    return len(_intersection(operands))


@command(
    "zunionstore",
    arity=-4,
    flags="write denyoom movablekeys",
    group="sorted-set",
    since="2.0.0",
    categories="sortedset",
    summary="Add multiple sorted sets and store the resulting sorted set in a new key",
    complexity="O(N)+O(M log(M)) with N being the sum of the sizes of the input sorted sets, and M being the number "
    "of elements in the resulting sorted set.",
    arguments=(
        Arg("destination", "key", key_spec=0),
        Arg("numkeys", "integer"),
        Arg("key", "key", multiple=True, key_spec=1),
        Arg("weight", "integer", token="WEIGHTS", optional=True, multiple=True),
        Arg(
            "aggregate",
            "oneof",
            token="AGGREGATE",
            optional=True,
            arguments=(
                Arg("sum", "pure-token", token="SUM"),
                Arg("min", "pure-token", token="MIN"),
                Arg("max", "pure-token", token="MAX"),
            ),
        ),
    ),
    key_specs=(
        KeySpec(("OW", "UPDATE"), ("index", 1), ("range", 0, 1, 0)),
        KeySpec(("RO", "ACCESS"), ("index", 2), ("keynum", 0, 1, 1)),
    ),
)
def zunionstore(session: CommandSession, args: list[bytes]) -> Reply:
    session.engine.keyspace.writing()  # what is read is the latest
    operands = _read(session, "zunionstore", args[2:], takes_weights=True, takes_scores=False)
    return _store(session, args[1], _union(operands), b"zunionstore")


@command(
    "zinterstore",
    arity=-4,
    flags="write denyoom movablekeys",
    group="sorted-set",
    since="2.0.0",
    categories="sortedset",
    summary="Intersect multiple sorted sets and store the resulting sorted set in a new key",
    complexity="O(N*K)+O(M*log(M)) worst case with N being the smallest input sorted set, K being the number of input "
    "sorted sets and M being the number of elements in the resulting sorted set.",
    arguments=(
        Arg("destination", "key", key_spec=0),
        Arg("numkeys", "integer"),
        Arg("key", "key", multiple=True, key_spec=1),
        Arg("weight", "integer", token="WEIGHTS", optional=True, multiple=True),
        Arg(
            "aggregate",
            "oneof",
            token="AGGREGATE",
            optional=True,
            arguments=(
                Arg("sum", "pure-token", token="SUM"),
                Arg("min", "pure-token", token="MIN"),
                Arg("max", "pure-token", token="MAX"),
            ),
        ),
    ),
    key_specs=(
        KeySpec(("OW", "UPDATE"), ("index", 1), ("range", 0, 1, 0)),
        KeySpec(("RO", "ACCESS"), ("index", 2), ("keynum", 0, 1, 1)),
    ),
)
def zinterstore(session: CommandSession, args: list[bytes]) -> Reply:
    session.engine.keyspace.writing()
    operands = _read(session, "zinterstore", args[2:], takes_weights=True, takes_scores=False)
    return _store(session, args[1], _intersection(operands), b"zinterstore")


@command(
    "zdiffstore",
    arity=-4,
    flags="write denyoom movablekeys",
    group="sorted-set",
    since="6.2.0",
    categories="sortedset",
    summary="Subtract multiple sorted sets and store the resulting sorted set in a new key",
    complexity="O(L + (N-K)log(N)) worst case where L is the total number of elements in all the sets, N is the size "
    "of the first set, and K is the size of the result set.",
    arguments=(
        Arg("destination", "key", key_spec=0),
        Arg("numkeys", "integer"),
        Arg("key", "key", multiple=True, key_spec=1),
    ),
    key_specs=(
        KeySpec(("OW", "UPDATE"), ("index", 1), ("range", 0, 1, 0)),
        KeySpec(("RO", "ACCESS"), ("index", 2), ("keynum", 0, 1, 1)),
    ),
)
def zdiffstore(session: CommandSession, args: list[bytes]) -> Reply:
    session.engine.keyspace.writing()
    operands = _read(session, "zdiffstore", args[2:], takes_weights=False, takes_scores=False)
    return _store(session, args[1], _difference(operands), b"zdiffstore")
