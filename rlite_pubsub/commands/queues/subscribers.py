"""QUEUE.SUBSCRIBER, SLEEP, WAKEUP: the readers of a queue, each with a position of its own. An extension."""

from __future__ import annotations

from functools import partial

from rlite_pubsub import measures
from rlite_pubsub.engine.arguments.lookup import find_topic, keyspace_of
from rlite_pubsub.engine.arguments.queue_lookup import queue_for_change, subscriber_of
from rlite_pubsub.engine.arguments.stream_ids import strict_id
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.engine.waits.cold_wait import Places, reads_ahead, rehearse
from rlite_pubsub.groups import queue_reading
from rlite_pubsub.groups.group import Group, group_of
from rlite_pubsub.groups.progress import count_of
from rlite_pubsub.protocol.errors import SYNTAX, CommandError
from rlite_pubsub.protocol.replies import Reply
from rlite_pubsub.storage.topics import entry_ids
from rlite_pubsub.storage.topics.entry_ids import PART_MAX, Id

_BAD_START = b"ERR a start must be beginning, end, an id, a time (milliseconds, 2026-11-18T10:00Z) or an age (24h)"
_UPDATE = (KeySpec(("RW", "UPDATE"), ("index", 1), ("range", 0, 1, 0)),)
_OF_ONE = (Arg("name", "key", key_spec=0), Arg("subscriber"))
SINCE = "0.2.0"


@command(
    "queue.subscriber",
    arity=-3,
    flags="write denyoom fast",
    group="stream",
    since=SINCE,
    summary="Create a subscriber of a queue; its position is kept until it is deleted",
    complexity="O(1)",
    arguments=(
        *_OF_ONE,
        Arg(
            "start",
            "oneof",
            optional=True,
            arguments=(
                Arg("beginning", "pure-token", token="beginning"),
                Arg("end", "pure-token", token="end"),
                Arg("id"),
                Arg("time", "unix-time"),
            ),
        ),
    ),
    key_specs=_UPDATE,
    ours=True,
)
def queue_subscriber(session: CommandSession, args: list[bytes]) -> Reply:
    """A start is `beginning` (if it is not said), `end`, the id of the last value that was seen, or a time or an
    age (all since). 1, or 0 if there is such a subscriber: then its place stays what it is."""
    if len(args) > 4:
        raise CommandError(SYNTAX)
    start, now_ms = args[3] if len(args) == 4 else b"beginning", keyspace_of(session).clock_ms()
    _after(start, entry_ids.MIN, now_ms)  # refused before anything is looked at
    queue = queue_for_change(session, args[1])
    if group_of(queue, args[2]) is not None:
        return 0
    after = _after(start, queue.last_id, now_ms)
    rehearse(session, queue, partial(queue_reading.read_before, queue, after))
    queue_reading.create(queue, args[2], after)
    session.engine.notifications.tell("t", b"xgroup-create", session.db, args[1])
    return 1


@reads_ahead(b"queue.subscriber")
def _read_ahead_of_subscriber(session: CommandSession, args: list[bytes], places: Places) -> None:
    queue = find_topic(session, args[1])
    if queue is not None and queue.has_cold and group_of(queue, args[2]) is None:
        start = args[3] if len(args) == 4 else b"beginning"
        after = _after(start, queue.last_id, keyspace_of(session).clock_ms())
        places[session.db, args[1], args[2]] = after
        count_of(queue, after)


def _after(start: bytes, last_id: Id, now_ms: int) -> Id:
    """Behind which id it begins. Raises CommandError."""
    named = measures.start_of(start.decode("latin-1"), now_ms)
    if named is None or named == measures.LAST:
        raise CommandError(_BAD_START)
    if named == measures.BEGINNING:
        return entry_ids.MIN
    if named == measures.END:
        return last_id
    if "-" in named:
        return strict_id(named.encode())
    if int(named) > PART_MAX:
        raise CommandError(_BAD_START)
    return entry_ids.before((int(named), 0)) or entry_ids.MIN


@command(
    "queue.sleep",
    arity=3,
    flags="write fast",
    group="stream",
    since=SINCE,
    summary="Put a subscriber to sleep: it keeps its position and receives nothing",
    complexity="O(1)",
    arguments=_OF_ONE,
    key_specs=_UPDATE,
    ours=True,
)
def queue_sleep(session: CommandSession, args: list[bytes]) -> Reply:
    """Answer 1, or 0 if it is asleep already. Clients that wait for values in its name are notified."""
    return int(queue_reading.set_asleep(_to_change(session, args), True))


@command(
    "queue.wakeup",
    arity=3,
    flags="write fast",
    group="stream",
    since=SINCE,
    summary="Wake a subscriber: it continues where it was",
    complexity="O(1)",
    arguments=_OF_ONE,
    key_specs=_UPDATE,
    ours=True,
)
def queue_wakeup(session: CommandSession, args: list[bytes]) -> Reply:
    """Answer 1, or 0 if it is awake."""
    return int(queue_reading.set_asleep(_to_change(session, args), False))


def _to_change(session: CommandSession, args: list[bytes]) -> Group:
    return subscriber_of(queue_for_change(session, args[1]), args[1], args[2])
