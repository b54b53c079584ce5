"""XREAD: what stands behind an id in each of several topics, or, with BLOCK, what comes first to any of them.

Readers that wait for the same (topic, id, count) are given the same bytes. As many readers of one topic say the same,
word for word, what the last one was understood to mean is kept: the others wait without being read again.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, NamedTuple

from rlite_pubsub.commands.streams.range import array
from rlite_pubsub.engine.arguments.lookup import find_topic, keyspace_of
from rlite_pubsub.engine.arguments.stream_arguments import Reading, of_keys, reading
from rlite_pubsub.engine.arguments.stream_ids import strict_id
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.engine.waits.waiter import Attempt
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.protocol.errors import CommandError
from rlite_pubsub.protocol.replies import NULL_ARRAY, Encoded, Map, Reply
from rlite_pubsub.storage.topics import entry_ids
from rlite_pubsub.storage.topics.entry_ids import Id

_ONLY_OF_GROUPS: Final = (
    b"ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option."
)
_BLOCKED_COUNT: Final = 1000
"""The most entries for a client that has waited without a COUNT."""


class Wait(NamedTuple):
    """The meaning of a read that waits."""

    args: list[bytes]
    database: int
    protocol: int
    starts: dict[bytes, Id]
    block_ms: int
    queues: list[Hashable]
    attempt: Attempt


@command(
    "xread",
    arity=-4,
    flags="blocking readonly",
    group="stream",
    since="5.0.0",
    categories="stream",
    summary="Return never seen elements in multiple streams, with IDs greater than the ones reported by the caller for "
    "each stream. Can block.",
    complexity="For each stream mentioned: O(N) with N being the number of elements being returned, it means that "
    "XREAD-ing with a fixed COUNT is O(1). Note that when the BLOCK option is used, XADD will pay O(M) time in order "
    "to serve the M clients blocked on the stream getting new data.",
    arguments=(
        Arg("count", "integer", token="COUNT", optional=True),
        Arg("milliseconds", "integer", token="BLOCK", optional=True),
        Arg(
            "streams",
            "block",
            token="STREAMS",
            arguments=(
                Arg("key", "key", multiple=True, key_spec=0),
                Arg("ID", multiple=True),
            ),
        ),
    ),
    key_specs=(
        KeySpec(
            (
                "RO",
                "ACCESS",
            ),
            ("keyword", "STREAMS", 1),
            ("range", -1, 1, 2),
        ),
    ),
)
def xread(session: CommandSession, args: list[bytes]) -> Reply:
    known = session.engine.waiting.known
    if isinstance(known, Wait) and known.args == args and _waits_as(session, known):
        return _block(session, known)
    wanted = reading(args, by_group=False, in_script=session.in_script)
    topics: list[Topic | None] = []
    starts: list[Id] = []
    said, meant = b"", entry_ids.MIN  # the last id that means the same for each topic
    for key, text in zip(wanted.keys, wanted.ids, strict=True):
        topic = find_topic(session, key)
        topics.append(topic)
        if text != said or not said:
            meant = _start(topic, text)
            said = text if text[0:1].isdigit() else b""
        starts.append(meant)
    limit = wanted.count or None
    found: list[tuple[bytes, Reply]] = []
    stats = session.engine.stats
    for key, topic, start in zip(wanted.keys, topics, starts, strict=True):
        if topic is None:
            find_topic(session, key)  # as Redis does: it is missed twice
            continue
        stats.keyspace_hits += 1
        entries = _behind(topic, start, limit)
        if entries is not None:
            found.append((key, entries))
    if found:
        return of_keys(session, found)
    return NULL_ARRAY if wanted.block_ms is None else _wait(session, args, wanted, starts)


def _waits_as(session: CommandSession, known: Wait) -> bool:
    """Return whether the same words mean the same to this session, and there still is nothing."""
    if session.db != known.database or session.protocol != known.protocol:
        return False
    ((key, start),) = known.starts.items()
    topic = keyspace_of(session).find(session.db, key)
    if not isinstance(topic, Topic) or topic.last_id > start:
        return False
    find_topic(session, key)  # so that it is counted
    session.engine.stats.keyspace_hits += 1
    return True


def _start(topic: Topic | None, text: bytes) -> Id:
    """The id behind which is read. `$`: behind all there is now; `+`: the last entry and what comes (Redis 7.4). Raises
    CommandError."""
    if text == b"$":
        return entry_ids.MIN if topic is None else topic.last_id
    if text == b">":
        raise CommandError(_ONLY_OF_GROUPS)
    if text == b"+":
        if topic is None:
            return entry_ids.MIN
        top = next(topic.backward(limit=1), None)
        return topic.last_id if top is None else entry_ids.before(entry_ids.unpack(top.ids)) or entry_ids.MIN
    return strict_id(text)


def _behind(topic: Topic, start: Id, limit: int | None) -> Encoded | None:
    """Return the entries after an id; None if there are none."""
    first = entry_ids.after(start)
    if not topic.length or first is None or first > topic.last_id:
        return None
    entries = array(topic.between(first, limit=limit))
    return None if entries == b"*0\r\n" else entries


def _wait(session: CommandSession, args: list[bytes], wanted: Reading, starts: list[Id]) -> Reply:
    assert wanted.block_ms is not None
    keyspace, database, protocol = keyspace_of(session), session.db, session.protocol
    waiting = session.engine.waiting
    count = wanted.count or _BLOCKED_COUNT
    start_of: dict[bytes, Id] = {}
    for key, start in zip(wanted.keys, starts, strict=True):
        start_of.setdefault(key, start)

    def attempt(key: bytes) -> Reply:
        """As in Redis, an entry that the same EXEC has removed again ends the wait too; XSETID does not."""
        topic = keyspace.find(database, key)
        if not isinstance(topic, Topic) or topic.last_id <= start_of[key]:
            return None
        entries = _behind(topic, start_of[key], count)
        if entries is None and not waiting.is_certain:
            return None
        found = [(key, entries or Encoded(b"*0\r\n"))]
        return Map(found) if protocol == 3 else found

    queues: list[Hashable] = [("xread", start, count) for start in start_of.values()]
    wait = Wait(args, database, protocol, start_of, wanted.block_ms, queues, attempt)
    if len(starts) == 1 and wanted.ids[0][:1].isdigit():  # and not `$`, which means another id each time
        waiting.known = wait
    return _block(session, wait)


def _block(session: CommandSession, wait: Wait) -> Reply:
    waiting = session.engine.waiting
    return waiting.block(session, list(wait.starts), wait.block_ms, wait.attempt, queues=wait.queues, shared=True)
