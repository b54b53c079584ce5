"""XRANGE and XREVRANGE: what is stored is what is sent."""

from __future__ import annotations

from collections.abc import Iterator

from rlite_pubsub.engine.arguments.integers import integer
from rlite_pubsub.engine.arguments.lookup import find_topic
from rlite_pubsub.engine.arguments.stream_ids import range_end, range_start
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.protocol.errors import SYNTAX, CommandError
from rlite_pubsub.protocol.replies import NULL_ARRAY, Encoded, Reply
from rlite_pubsub.storage.topics.chunks import ChunkSlice


@command(
    "xrange",
    arity=-4,
    flags="readonly",
    group="stream",
    since="5.0.0",
    categories="stream",
    summary="Return a range of elements in a stream, with IDs matching the specified IDs interval",
    complexity="O(N) with N being the number of elements being returned. If N is constant (e.g. always asking for "
    "the first 10 elements with COUNT), you can consider it O(1).",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("start"),
        Arg("end"),
        Arg("count", "integer", token="COUNT", optional=True),
    ),
    key_specs=(
        KeySpec(
            (
                "RO",
                "ACCESS",
            ),
            ("index", 1),
            ("range", 0, 1, 0),
        ),
    ),
    history=(("6.2.0", "Added exclusive ranges."),),
)
def xrange(session: CommandSession, args: list[bytes]) -> Reply:
    start, end = range_start(args[2]), range_end(args[3])
    count = _count(args)
    topic = find_topic(session, args[1])
    if topic is None:
        return []
    return NULL_ARRAY if count == 0 else array(topic.between(start, end, count))


@command(
    "xrevrange",
    arity=-4,
    flags="readonly",
    group="stream",
    since="5.0.0",
    categories="stream",
    summary="Return a range of elements in a stream, with IDs matching the specified IDs interval, in reverse order "
    "(from greater to smaller IDs) compared to XRANGE",
    complexity="O(N) with N being the number of elements returned. If N is constant (e.g. always asking for the "
    "first 10 elements with COUNT), you can consider it O(1).",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("end"),
        Arg("start"),
        Arg("count", "integer", token="COUNT", optional=True),
    ),
    key_specs=(
        KeySpec(
            (
                "RO",
                "ACCESS",
            ),
            ("index", 1),
            ("range", 0, 1, 0),
        ),
    ),
    history=(("6.2.0", "Added exclusive ranges."),),
)
def xrevrange(session: CommandSession, args: list[bytes]) -> Reply:
    start, end = range_start(args[3]), range_end(args[2])
    count = _count(args)
    topic = find_topic(session, args[1])
    if topic is None:
        return []
    return NULL_ARRAY if count == 0 else _backward(topic.backward(start, end, count))


def _count(args: list[bytes]) -> int | None:
    """COUNT, if it is given; what is negative is 0. Raises CommandError."""
    count: int | None = None
    for place in range(4, len(args), 2):
        if args[place].upper() != b"COUNT" or place + 1 == len(args):
            raise CommandError(SYNTAX)
        count = max(integer(args[place + 1]), 0)
    return count


def array(parts: Iterator[ChunkSlice]) -> Encoded:
    """Return the entries of these parts, in one array."""
    count, pieces = 0, [b""]
    for part in parts:
        count += part.count
        pieces.append(part.wire)
    pieces[0] = b"*%d\r\n" % count
    return Encoded(b"".join(pieces))


def _backward(parts: Iterator[ChunkSlice]) -> Encoded:
    """Return the same, the last one first."""
    count, pieces = 0, [b""]
    for part in parts:
        count += part.count
        pieces += reversed(part.chunk.entries(part.start, part.stop))
    pieces[0] = b"*%d\r\n" % count
    return Encoded(b"".join(pieces))
