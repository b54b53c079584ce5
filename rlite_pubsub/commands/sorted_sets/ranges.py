"""Sorted sets by rank, by score and by member: ZRANGE and all that came before it, ZRANGESTORE."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rlite_pubsub.engine.arguments.integers import integer
from rlite_pubsub.engine.arguments.lookup import find
from rlite_pubsub.engine.arguments.score_ranges import Range, member_range, ranks, score_range
from rlite_pubsub.engine.arguments.sorted_set_lookup import answered, find_sorted_set, sorted_set_of
from rlite_pubsub.engine.arguments.sorted_set_storing import store_sorted_set
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.protocol.errors import SYNTAX, CommandError
from rlite_pubsub.protocol.replies import Reply

if TYPE_CHECKING:
    from rlite_pubsub.keyspace.sorted_sets import Scored, SortedSet

_RANKS_HAVE_NO_LIMIT: Final = (
    b"ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX"
)
_MEMBERS_HAVE_NO_SCORES: Final = b"ERR syntax error, WITHSCORES not supported in combination with BYLEX"
_BY_RANK: Final = "rank"
_BY_SCORE: Final = "score"
_BY_MEMBER: Final = "member"


class _RangeOptions:
    """The options of a command of the family."""

    __slots__ = ("backwards", "by", "most", "offset", "with_scores")

    def __init__(self, by: str, backwards: bool, with_scores: bool, offset: int, most: int) -> None:
        self.by = by
        self.backwards = backwards
        self.with_scores = with_scores
        self.offset = offset
        self.most = most  # negative: all

    def take_from(self, found: SortedSet, wanted: Range) -> list[Scored]:
        start, stop = self._ranks_in(found, wanted)
        return list(found.slice(start, stop, backwards=self.backwards)) if start < stop else []

    def members_from(self, found: SortedSet, wanted: Range) -> list[bytes]:
        start, stop = self._ranks_in(found, wanted)
        return found.members(start, stop, backwards=self.backwards) if start < stop else []

    def _ranks_in(self, found: SortedSet, wanted: Range) -> tuple[int, int]:
        """Return the first and the last rank, from the end if it goes backwards."""
        start, stop = wanted.bounds(found)
        if self.by == _BY_RANK:
            return start, stop
        if self.offset < 0:
            return 0, 0
        if self.backwards:
            start, stop = len(found) - stop, len(found) - start
        start += self.offset
        return start, min(stop, start + self.most) if self.most >= 0 else stop


def _read(
    rest: list[bytes], by: str | None, backwards: bool | None, *, stores: bool, first: bytes, last: bytes
) -> tuple[_RangeOptions, Range]:
    """Return the options behind the bounds, and the bounds; None: an option says it. Raises CommandError."""
    offset, most, with_scores = 0, -1, False
    may_say_by, may_say_rev = by is None, backwards is None
    at = 0
    while at < len(rest):
        option, left = rest[at].lower(), len(rest) - at - 1
        if option == b"withscores" and not stores:
            with_scores = True
        elif option == b"limit" and left >= 2:
            offset, most = integer(rest[at + 1]), integer(rest[at + 2])
            at += 2
        elif option == b"rev" and may_say_rev and backwards is None:
            backwards = True
        elif option == b"bylex" and may_say_by and by is None:
            by = _BY_MEMBER
        elif option == b"byscore" and may_say_by and by is None:
            by = _BY_SCORE
        else:
            raise CommandError(SYNTAX)
        at += 1
    wanted = _RangeOptions(by or _BY_RANK, bool(backwards), with_scores, offset, most)
    if most != -1 and wanted.by == _BY_RANK:
        raise CommandError(_RANKS_HAVE_NO_LIMIT)
    if with_scores and wanted.by == _BY_MEMBER:
        raise CommandError(_MEMBERS_HAVE_NO_SCORES)
    if wanted.backwards and wanted.by != _BY_RANK:
        first, last = last, first
    if wanted.by == _BY_RANK:
        return wanted, ranks(first, last)
    return wanted, score_range(first, last) if wanted.by == _BY_SCORE else member_range(first, last)


def _range(session: CommandSession, args: list[bytes], by: str | None, backwards: bool | None) -> Reply:
    wanted, bounds = _read(args[4:], by, backwards, stores=False, first=args[2], last=args[3])
    found = find_sorted_set(session, args[1])
    if found is None:
        return []
    if not wanted.with_scores:
        return wanted.members_from(found, bounds)
    return answered(session, wanted.take_from(found, bounds), with_scores=True)


@command(
    "zrange",
    arity=-4,
    flags="readonly",
    group="sorted-set",
    since="1.2.0",
    categories="sortedset",
    summary="Return a range of members in a sorted set",
    complexity="O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements "
    "returned.",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("start"),
        Arg("stop"),
        Arg(
            "sortby",
            "oneof",
            optional=True,
            since="6.2.0",
            arguments=(
                Arg("byscore", "pure-token", token="BYSCORE"),
                Arg("bylex", "pure-token", token="BYLEX"),
            ),
        ),
        Arg("rev", "pure-token", token="REV", optional=True, since="6.2.0"),
        Arg(
            "offset_count",
            "block",
            token="LIMIT",
            optional=True,
            since="6.2.0",
            arguments=(
                Arg("offset", "integer"),
                Arg("count", "integer"),
            ),
        ),
        Arg("withscores", "pure-token", token="WITHSCORES", optional=True),
    ),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
    history=(("6.2.0", "Added the `REV`, `BYSCORE`, `BYLEX` and `LIMIT` options."),),
)
def zrange(session: CommandSession, args: list[bytes]) -> Reply:
    if len(args) == 4:  # as most are
        wanted = ranks(args[2], args[3])
        found = find_sorted_set(session, args[1])
        if found is None:
            return []
        start, stop = wanted.bounds(found)
        return found.members(start, stop)
    return _range(session, args, None, None)


@command(
    "zrevrange",
    arity=-4,
    flags="readonly",
    group="sorted-set",
    since="1.2.0",
    categories="sortedset",
    summary="Return a range of members in a sorted set, by index, with scores ordered from high to low",
    complexity="O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements "
    "returned.",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("start", "integer"),
        Arg("stop", "integer"),
        Arg("withscores", "pure-token", token="WITHSCORES", optional=True),
    ),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
    doc_flags=("deprecated",),
    deprecated_since="6.2.0",
    replaced_by="`ZRANGE` with the `REV` argument",
)
def zrevrange(session: CommandSession, args: list[bytes]) -> Reply:
    return _range(session, args, _BY_RANK, True)


@command(
    "zrangebyscore",
    arity=-4,
    flags="readonly",
    group="sorted-set",
    since="1.0.5",
    categories="sortedset",
    summary="Return a range of members in a sorted set, by score",
    complexity="O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements being "
    "returned. If M is constant (e.g. always asking for the first 10 elements with LIMIT), you can consider it "
    "O(log(N)).",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("min", "double"),
        Arg("max", "double"),
        Arg("withscores", "pure-token", token="WITHSCORES", optional=True, since="2.0.0"),
        Arg(
            "offset_count",
            "block",
            token="LIMIT",
            optional=True,
            arguments=(
                Arg("offset", "integer"),
                Arg("count", "integer"),
            ),
        ),
    ),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
    history=(("2.0.0", "Added the `WITHSCORES` modifier."),),
    doc_flags=("deprecated",),
    deprecated_since="6.2.0",
    replaced_by="`ZRANGE` with the `BYSCORE` argument",
)
def zrangebyscore(session: CommandSession, args: list[bytes]) -> Reply:
    return _range(session, args, _BY_SCORE, False)


@command(
    "zrevrangebyscore",
    arity=-4,
    flags="readonly",
    group="sorted-set",
    since="2.2.0",
    categories="sortedset",
    summary="Return a range of members in a sorted set, by score, with scores ordered from high to low",
    complexity="O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements being "
    "returned. If M is constant (e.g. always asking for the first 10 elements with LIMIT), you can consider it "
    "O(log(N)).",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("max", "double"),
        Arg("min", "double"),
        Arg("withscores", "pure-token", token="WITHSCORES", optional=True),
        Arg(
            "offset_count",
            "block",
            token="LIMIT",
            optional=True,
            arguments=(
                Arg("offset", "integer"),
                Arg("count", "integer"),
            ),
        ),
    ),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
    history=(("2.1.6", "`min` and `max` can be exclusive."),),
    doc_flags=("deprecated",),
    deprecated_since="6.2.0",
    replaced_by="`ZRANGE` with the `REV` and `BYSCORE` arguments",
)
def zrevrangebyscore(session: CommandSession, args: list[bytes]) -> Reply:
    return _range(session, args, _BY_SCORE, True)


@command(
    "zrangebylex",
    arity=-4,
    flags="readonly",
    group="sorted-set",
    since="2.8.9",
    categories="sortedset",
    summary="Return a range of members in a sorted set, by lexicographical range",
    complexity="O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements being "
    "returned. If M is constant (e.g. always asking for the first 10 elements with LIMIT), you can consider it "
    "O(log(N)).",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("min"),
        Arg("max"),
        Arg(
            "offset_count",
            "block",
            token="LIMIT",
            optional=True,
            arguments=(
                Arg("offset", "integer"),
                Arg("count", "integer"),
            ),
        ),
    ),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
    doc_flags=("deprecated",),
    deprecated_since="6.2.0",
    replaced_by="`ZRANGE` with the `BYLEX` argument",
)
def zrangebylex(session: CommandSession, args: list[bytes]) -> Reply:
    return _range(session, args, _BY_MEMBER, False)


@command(
    "zrevrangebylex",
    arity=-4,
    flags="readonly",
    group="sorted-set",
    since="2.8.9",
    categories="sortedset",
    summary="Return a range of members in a sorted set, by lexicographical range, ordered from higher to lower "
    "strings.",
    complexity="O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements being "
    "returned. If M is constant (e.g. always asking for the first 10 elements with LIMIT), you can consider it "
    "O(log(N)).",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("max"),
        Arg("min"),
        Arg(
            "offset_count",
            "block",
            token="LIMIT",
            optional=True,
            arguments=(
                Arg("offset", "integer"),
                Arg("count", "integer"),
            ),
        ),
    ),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
    doc_flags=("deprecated",),
    deprecated_since="6.2.0",
    replaced_by="`ZRANGE` with the `REV` and `BYLEX` arguments",
)
def zrevrangebylex(session: CommandSession, args: list[bytes]) -> Reply:
    return _range(session, args, _BY_MEMBER, True)


@command(
    "zrangestore",
    arity=-5,
    flags="write denyoom",
    group="sorted-set",
    since="6.2.0",
    categories="sortedset",
    summary="Store a range of members from sorted set into another key",
    complexity="O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements stored "
    "into the destination key.",
    arguments=(
        Arg("dst", "key", key_spec=0),
        Arg("src", "key", key_spec=1),
        Arg("min"),
        Arg("max"),
        Arg(
            "sortby",
            "oneof",
            optional=True,
            arguments=(
                Arg("byscore", "pure-token", token="BYSCORE"),
                Arg("bylex", "pure-token", token="BYLEX"),
            ),
        ),
        Arg("rev", "pure-token", token="REV", optional=True),
        Arg(
            "offset_count",
            "block",
            token="LIMIT",
            optional=True,
            arguments=(
                Arg("offset", "integer"),
                Arg("count", "integer"),
            ),
        ),
    ),
    key_specs=(
        KeySpec(("OW", "UPDATE"), ("index", 1), ("range", 0, 1, 0)),
        KeySpec(("RO", "ACCESS"), ("index", 2), ("range", 0, 1, 0)),
    ),
)
def zrangestore(session: CommandSession, args: list[bytes]) -> Reply:
    wanted, bounds = _read(args[5:], None, None, stores=True, first=args[3], last=args[4])
    session.engine.keyspace.writing()  # what is read is the latest
    found = sorted_set_of(find(session, args[2]))
    taken = [] if found is None else wanted.take_from(found, bounds)
    return store_sorted_set(session, args[1], taken, b"zrangestore")
