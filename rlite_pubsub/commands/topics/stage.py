"""TOPIC.STAGE, TOPIC.COMMIT, TOPIC.UNSTAGE, TOPIC.SYNC: many writers, and one commit that appends what they have. An
extension.

Writers of a batch stage their rows, each under a name of its own; nobody sees them. One TOPIC.COMMIT appends all of a
batch, in the order that it says, and notes (application, batch) in the same transaction. So a commit that is repeated
does nothing, and one that did not come to its end has done nothing. What it cannot find is an error, never silence.
TOPIC.SYNC answers once all that was committed before it is on the disk, whatever appendfsync says.

An application belongs to the user who stages under its name: what another user stages, commits or removes under the
same name is another application. TOPIC.COMMIT names no topics, so it looks at what was staged: its user needs the right
to write to each of those topics at that moment, too.

A commit of many rows is made beside a server's loop (engine/waits/write_beside.py): a thread writes, what else writes
waits in line for it, and all else goes on. In a transaction or a script, and in a program, it is made at once.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise

from rlite_pubsub.engine.access.permission import check_found
from rlite_pubsub.engine.access.users import DEFAULT
from rlite_pubsub.engine.arguments.integers import INT_MAX, LONG_MAX, integer
from rlite_pubsub.engine.arguments.lookup import keyspace_of
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.engine.waits.disk_wait import DiskWait
from rlite_pubsub.engine.waits.write_beside import write_beside
from rlite_pubsub.keyspace.topic import staged
from rlite_pubsub.keyspace.topic.append_rules import check_size
from rlite_pubsub.keyspace.topic.staged import Batch
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.protocol.batch import BatchReader, Run
from rlite_pubsub.protocol.encoder import bulk_array
from rlite_pubsub.protocol.errors import SYNTAX, CommandError, ProtocolError
from rlite_pubsub.protocol.frames import elements
from rlite_pubsub.protocol.parser import Parser
from rlite_pubsub.protocol.replies import NO_REPLY, Reply
from rlite_pubsub.storage.topics import entry_ids, stages
from rlite_pubsub.storage.topics.stages import KEPT_MS, StagedRows, Writer

SINCE = "0.2.0"
REMOVED_AT_ONCE = 5000
ROWS_AT_ONCE = 5000
"""How many rows are appended by the loop itself, in less time than a thread is worth."""
_PARSED_AT_ONCE = 256 * 1024
_ATTEMPT_MAX = 2**64 - 1
_OF = b"\0"
"""Stands in no user's name."""
_BATCH = (Arg("application"), Arg("batch", "integer"))
_WRITER = (Arg("partition", "integer"), Arg("attempt", "integer"))


@command(
    "topic.stage",
    arity=-9,
    flags="write denyoom",
    group="stream",
    since=SINCE,
    summary="Stage rows for a topic until TOPIC.COMMIT",
    complexity="O(N) where N is the number of rows",
    arguments=(
        *_BATCH,
        *_WRITER,
        Arg("piece", "integer"),
        Arg("name", "key", key_spec=0),
        Arg("count", "integer"),
        Arg("rows"),
        Arg("ids", token="IDS", optional=True),
    ),
    key_specs=(KeySpec(("RW", "INSERT"), ("index", 6), ("range", 0, 1, 0)),),
    ours=True,
)
def topic_stage(session: CommandSession, args: list[bytes]) -> Reply:
    """Stage rows; answer how many. `rows`: the arrays of their fields and values, in wire format, one after the other;
    `ids`: their ids, 16 bytes each as the store packs them. The same piece again replaces the one before."""
    writer = Writer(_application(session, args[1]), _number(args[2]), _number(args[3], INT_MAX), _attempt(args[4]))
    number, name, count = _number(args[5], INT_MAX), args[6], _number(args[7])
    bodies = _bodies(args[8])
    if len(bodies) != count:
        raise CommandError(b"ERR these are %d rows, not %d" % (len(bodies), count))
    ids = _ids(args[9:], count)
    keyspace = keyspace_of(session)
    topic = keyspace.find(session.db, name)
    if isinstance(topic, Topic) and topic.has_append_rules:
        for body in bodies:
            check_size(topic, sum(map(len, elements(body, INT_MAX))))
    txn = keyspace.writing()
    now_ms = keyspace.clock_ms()
    edges = (ids[0], ids[-1]) if ids else (b"", b"")
    stages.put(txn, writer, number, StagedRows(now_ms, count, session.db, bool(ids), *edges, name), bodies, ids)
    if not number:
        stages.sweep(txn, now_ms - KEPT_MS, now_ms, REMOVED_AT_ONCE)
    return count


def _number(text: bytes, high: int = LONG_MAX) -> int:
    return integer(text, 0, high)


def _attempt(text: bytes) -> int:
    """Any number of 64 bits."""
    if not text.isdigit() or len(text) > 20 or int(text) > _ATTEMPT_MAX:
        raise CommandError(b"ERR an attempt must be a 64-bit number")
    return int(text)


def _bodies(blob: bytes) -> list[bytes]:
    """Return the arrays that these bytes hold, each encoded as it is sent. Raises CommandError."""
    parser = Parser(BatchReader(), max(len(blob), 1))
    bodies: list[bytes] = []
    for at in range(0, len(blob), _PARSED_AT_ONCE):
        try:
            items = parser.take(blob[at : at + _PARSED_AT_ONCE])
        except ProtocolError as failure:
            raise CommandError(b"ERR these are not rows: " + failure.text) from failure
        for item in items:
            if isinstance(item, Run):
                _check_fields(len(item.head) + 1)
                head = bulk_array((*item.head, b""))[: -len(b"0\r\n\r\n")]
                bodies += [b"%b%b\r\n" % (head, tail) for tail in item.tails]
            else:
                _check_fields(len(item))
                bodies.append(bulk_array(tuple(item)))
    if parser.buffered_bytes or parser.failure is not None:
        raise CommandError(b"ERR invalid rows: the last one is incomplete")
    return bodies


def _check_fields(words: int) -> None:
    if words % 2:
        raise CommandError(b"ERR a row must have as many values as names")


def _ids(option: list[bytes], count: int) -> list[bytes]:
    if not option:
        return []
    if len(option) != 2 or option[0].upper() != b"IDS":
        raise CommandError(SYNTAX)
    packed, width = option[1], entry_ids.BYTES
    if len(packed) != count * width:
        raise CommandError(b"ERR these are not %d ids" % count)
    ids = [packed[at : at + width] for at in range(0, len(packed), width)]
    if not all(one < other for one, other in pairwise([bytes(width), *ids])):
        raise CommandError(staged.NOT_ABOVE)
    return ids


@command(
    "topic.commit",
    arity=-3,
    flags="write denyoom",
    group="stream",
    since=SINCE,
    summary="Append all staged rows of a batch, once",
    complexity="O(N) where N is the number of rows",
    is_plain=False,
    arguments=(
        *_BATCH,
        Arg("forget-ms", "integer", token="FORGET", optional=True),
        Arg("writer", "block", optional=True, multiple=True, arguments=(*_WRITER, Arg("rows", "integer"))),
    ),
    ours=True,
)
def topic_commit(session: CommandSession, args: list[bytes]) -> Reply:
    """Answer 1, or 0 if this batch, or a later one, of the application was committed before. In the order of the
    writers, each of whom must have staged as many rows as are said here. FORGET: nobody asks for this application after
    so long."""
    application, batch = _application(session, args[1]), _number(args[2])
    rest, forget_ms = args[3:], 0
    if rest and rest[0].upper() == b"FORGET" and len(rest) > 1:
        forget_ms, rest = _number(rest[1]), rest[2:]
    if len(rest) % 3:
        raise CommandError(SYNTAX)
    writers = [
        (Writer(application, batch, _number(partition, INT_MAX), _attempt(attempt)), _number(rows))
        for partition, attempt, rows in zip(rest[::3], rest[1::3], rest[2::3], strict=True)
    ]
    engine = session.engine
    order = Batch(application, batch, forget_ms, session.db, writers)
    if session.limits is not None:
        check_found(session, session.limits, args, staged.topics(engine.keyspace, order))
    append = partial(staged.append, batch=order, limits=engine.node_limits)
    rows = sum([rows for _, rows in writers])
    if rows > ROWS_AT_ONCE and not session.deny_blocking and not staged.is_ephemeral(engine.keyspace, order):
        wait = write_beside(session, append)
        if wait is not None:
            return wait
    return append(engine.keyspace)


@command(
    "topic.unstage",
    arity=3,
    flags="write",
    group="stream",
    since=SINCE,
    summary="Remove what an application has staged, up to and including a batch",
    complexity="O(N) where N is the number of records that are removed, a few thousand at most",
    arguments=_BATCH,
    ours=True,
)
def topic_unstage(session: CommandSession, args: list[bytes]) -> Reply:
    """Remove staged records; answer how many were removed: 0 once nothing is left."""
    application, batch = _application(session, args[1]), _number(args[2])
    return stages.drop(keyspace_of(session).writing(), application, batch, REMOVED_AT_ONCE)


def _application(session: CommandSession, name: bytes) -> bytes:
    """Return the name under which the store knows this user's application. The default user's has its own name, as long
    as no other user's could be the same."""
    if session.user == DEFAULT and _OF not in name:
        return name
    return session.user + _OF + name


@command(
    "topic.sync",
    arity=1,
    flags="no_multi noscript blocking",
    group="stream",
    since=SINCE,
    summary="Wait until everything committed so far is on disk",
    complexity="O(1)",
    ours=True,
)
def topic_sync(session: CommandSession, args: list[bytes]) -> Reply:
    """OK, or why it is not."""
    session.wait_for(DiskWait(session))
    return NO_REPLY
