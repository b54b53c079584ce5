"""TOPIC.EXPORT, TOPIC.MARKS: a topic in bulk, for readers of all of it. An extension.

What is stored is what is sent: chunks as the store has them (storage/FORMAT.md), so that the server does nothing for
the single entry. The reader goes on behind the last id that came, until there is nothing, or the end has come: a
reply may hold less than was asked for.

COMPLETE is the promise that nothing is missing without being said: where entries of the range were trimmed away, or
there is no such topic, it is an error, found in the same moment as the entries.
"""

from __future__ import annotations

from rlite_pubsub.engine.arguments.integers import LONG_MAX, integer
from rlite_pubsub.engine.arguments.lookup import find_topic
from rlite_pubsub.engine.arguments.stream_ids import range_end, range_start
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.keyspace.topic.cold_shelf import ColdMiss
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.protocol.errors import NO_SUCH_KEY, SYNTAX, CommandError
from rlite_pubsub.protocol.replies import Reply
from rlite_pubsub.storage.topics import chunks, entry_ids
from rlite_pubsub.storage.topics.chunks import ChunkSlice
from rlite_pubsub.storage.topics.entry_ids import Id

SINCE = "0.2.0"
MAX_BYTES = 4 << 20
"""Of one reply, as far as nothing else is said: but one chunk is always sent."""
_READ = (KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),)
_RANGE = (Arg("name", "key", key_spec=0), Arg("start"), Arg("end"))


@command(
    "topic.export",
    arity=-4,
    flags="readonly",
    group="stream",
    since=SINCE,
    summary="Return entries of a topic in the store's own format, in chunks",
    complexity="O(N) where N is the number of chunks that are sent",
    arguments=(
        *_RANGE,
        Arg("count", "integer", token="COUNT", optional=True),
        Arg("bytes", "integer", token="BYTES", optional=True),
        Arg("complete", "pure-token", token="COMPLETE", optional=True),
    ),
    key_specs=_READ,
    ours=True,
)
def topic_export(session: CommandSession, args: list[bytes]) -> Reply:
    """An array of chunks, of as many entries (`count`) and bytes (`bytes`) as are wanted at most."""
    start, end = range_start(args[2]), range_end(args[3])
    count: int | None = None
    limit_bytes, is_complete, place = MAX_BYTES, False, 4
    while place < len(args):
        word = args[place].upper()
        if word == b"COMPLETE":
            is_complete = True
        elif word in (b"COUNT", b"BYTES") and place + 1 < len(args):
            place += 1
            number = integer(args[place], 1, LONG_MAX)
            if word == b"COUNT":
                count = number
            else:
                limit_bytes = number
        else:
            raise CommandError(SYNTAX)
        place += 1
    topic = find_topic(session, args[1])
    if is_complete:
        _check_complete(topic, args[1], start)
    if topic is None:
        return []
    values: list[bytes] = []
    try:
        for part in topic.between(start, end, count):
            value = value_of(part)
            values.append(value)
            limit_bytes -= len(value)
            if limit_bytes <= 0:
                break
    except ColdMiss:
        if not values:
            raise
    return values  # where the rest is to be fetched first, it is for the next request


def _check_complete(topic: Topic | None, name: bytes, start: Id) -> None:
    if topic is None:
        raise CommandError(NO_SUCH_KEY)
    if topic.trimmed_id >= start:
        raise CommandError(
            b"DATALOSS entries of %b from %b on are gone: it was trimmed up to %b"
            % (_shown(name), entry_ids.text(start), entry_ids.text(topic.trimmed_id))
        )


def _shown(name: bytes) -> bytes:
    return name.replace(b"\r", b" ").replace(b"\n", b" ")


def value_of(part: ChunkSlice) -> bytes:
    """Return a chunk's value that holds these entries alone."""
    chunk = part.chunk
    if part.count == chunk.count:
        return chunk.value
    ids = [chunk.id(place) for place in range(part.start, part.stop)]
    return chunks.pack(ids, chunk.entries(part.start, part.stop))


@command(
    "topic.marks",
    arity=-5,
    flags="readonly",
    group="stream",
    since=SINCE,
    summary="Return the id of every n-th entry of a range, to split it into equal parts",
    complexity="O(N) where N is the number of chunks in the range",
    arguments=(*_RANGE, Arg("every", "integer"), Arg("count", "integer", token="COUNT", optional=True)),
    key_specs=_READ,
    ours=True,
)
def topic_marks(session: CommandSession, args: list[bytes]) -> Reply:
    """`entries`: how many were looked at, `count` at most; `last`: the id of the last of them, or null; `marks`: the
    ids of the n-th, the 2 n-th and so on."""
    start, end, every = range_start(args[2]), range_end(args[3]), integer(args[4], 1, LONG_MAX)
    count: int | None = None
    if len(args) > 5:
        if len(args) != 7 or args[5].upper() != b"COUNT":
            raise CommandError(SYNTAX)
        count = integer(args[6], 1, LONG_MAX)
    topic = find_topic(session, args[1])
    marks: list[bytes] = []
    seen, wanted, last = 0, every, b""
    for part in topic.between(start, end, count) if topic is not None else ():
        before = seen
        seen += part.count
        while wanted <= seen:
            marks.append(part.chunk.id(part.start + wanted - before - 1))
            wanted += every
        last = part.chunk.id(part.stop - 1)
    return {
        b"entries": seen,
        b"last": entry_ids.text(entry_ids.unpack(last)) if last else None,
        b"marks": [entry_ids.text(entry_ids.unpack(mark)) for mark in marks],
    }
