"""QUEUE.SUBSCRIBER, POP, PEEK, SLEEP, WAKEUP: the readers of a queue, each with a position of its own. An extension."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from rlite_pubsub.engine.arguments.integers import LONG_MAX, integer
from rlite_pubsub.engine.arguments.lookup import find_topic, keyspace_of
from rlite_pubsub.engine.arguments.queue_lookup import no_queue, no_subscriber, queue_for_change
from rlite_pubsub.engine.arguments.stream_ids import strict_id
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.shards.segment_pieces import SegmentMiss
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.engine.waits.cold_wait import Places, reads_ahead, rehearse
from rlite_pubsub.engine.waits.timeouts import timeout_ms
from rlite_pubsub.groups import chain, queue_reading
from rlite_pubsub.groups.group import Group, group_of
from rlite_pubsub.groups.progress import count_of, look_behind
from rlite_pubsub.keyspace.topic.cold_shelf import ColdMiss
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.protocol.errors import SYNTAX, CommandError, c_string
from rlite_pubsub.protocol.replies import Encoded, Reply
from rlite_pubsub.storage.topics import entry_ids
from rlite_pubsub.storage.topics.chunks import ChunkSlice
from rlite_pubsub.storage.topics.entry_ids import PART_MAX, Id

_BAD_START = b"ERR a start must be beginning, end, an id or a time in milliseconds"
_BAD_COUNT = b"ERR COUNT must be > 0"
_AGAIN = b"TRYAGAIN The next values are to be fetched from another member first"
_READ = (KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),)
_UPDATE = (KeySpec(("RW", "UPDATE"), ("index", 1), ("range", 0, 1, 0)),)
_OF_ONE = (Arg("name", "key", key_spec=0), Arg("subscriber"))
SINCE = "0.2.0"
_COUNT = Arg("count", "integer", token="COUNT", optional=True)
_LONGEST_START = 127


class _PopOptions(NamedTuple):
    """The options of a pop."""

    how_many: int | None
    """None: one, by itself, not in an array."""
    block_ms: int | None


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
    """A start is `beginning` (if it is not said), `end`, the id of the last value that was seen, or a time in ms (all
    since). 1, or 0 if there is such a subscriber: then its place stays what it is."""
    if len(args) > 4:
        raise CommandError(SYNTAX)
    start = args[3] if len(args) == 4 else b"beginning"
    _after(start, entry_ids.MIN)  # refused before anything is looked at
    queue = queue_for_change(session, args[1])
    if group_of(queue, args[2]) is not None:
        return 0
    after = _after(start, queue.last_id)
    rehearse(session, queue, partial(queue_reading.read_before, queue, after))
    queue_reading.create(queue, args[2], after)
    session.engine.notifications.tell("t", b"xgroup-create", session.db, args[1])
    return 1


@reads_ahead(b"queue.subscriber")
def _read_ahead_of_subscriber(session: CommandSession, args: list[bytes], places: Places) -> None:
    queue = find_topic(session, args[1])
    if queue is not None and queue.has_cold and group_of(queue, args[2]) is None:
        after = _after(args[3] if len(args) == 4 else b"beginning", queue.last_id)
        places[session.db, args[1], args[2]] = after
        count_of(queue, after)


def _after(start: bytes, last_id: Id) -> Id:
    """Behind which id it begins. Raises CommandError."""
    word = start.lower()
    if word in (b"beginning", b"-"):
        return entry_ids.MIN
    if word in (b"end", b"$"):
        return last_id
    if start.isdigit() and len(start) <= _LONGEST_START and int(start) <= PART_MAX:
        return entry_ids.before((int(start), 0)) or entry_ids.MIN
    if b"-" not in start[1:]:
        raise CommandError(_BAD_START)
    return strict_id(start)


@command(
    "queue.pop",
    arity=-3,
    flags="blocking write",
    group="stream",
    since=SINCE,
    summary="Return the next value for a subscriber and advance its position",
    complexity="O(log N) where N is the number of values in the queue, and O(1) for each that is given",
    arguments=(*_OF_ONE, _COUNT, Arg("milliseconds", "integer", token="BLOCK", optional=True)),
    key_specs=_UPDATE,
    ours=True,
)
def queue_pop(session: CommandSession, args: list[bytes]) -> Reply:
    """An entry as XRANGE gives it, or null; with COUNT an array of them. BLOCK waits for one; 0 is forever."""
    wanted = _wanted(args[3:], may_block=True)
    subscriber = _awake(_find(session, args[1], args[2]))
    if _has_more(subscriber):
        keyspace, queue = keyspace_of(session), subscriber.topic
        if queue.has_segments and chain.is_behind(subscriber):
            return _pop_behind(session, args, wanted)
        rehearse(session, queue, partial(queue_reading.look_at, subscriber, wanted.how_many or 1))
        if not keyspace.turn.writes:
            keyspace.writing()
            subscriber = _awake(_find(session, args[1], args[2]))  # the latest
        parts = queue_reading.pop(subscriber, wanted.how_many or 1)
        if parts:
            return _reply(parts, wanted)
    if wanted.block_ms is None:
        return _reply([], wanted)
    return _wait(session, args[1], args[2], wanted, wanted.block_ms)


def _pop_behind(session: CommandSession, args: list[bytes], wanted: _PopOptions) -> Reply:
    """Pop what is in closed segments, and behind them."""
    keyspace, gather, count = keyspace_of(session), session.engine.chains.gather, wanted.how_many or 1
    subscriber = _find(session, args[1], args[2])
    place = subscriber.last_id
    parts = gather(session, subscriber.topic, place, count)
    if parts and not keyspace.turn.writes:
        keyspace.writing()
        subscriber = _awake(_find(session, args[1], args[2]))  # the latest
        if subscriber.last_id != place:
            parts = gather(session, subscriber.topic, subscriber.last_id, count)
    if parts:
        chain.advance(subscriber, parts)
        return _reply(parts, wanted)
    if wanted.block_ms is None:
        return _reply([], wanted)
    return _wait(session, args[1], args[2], wanted, wanted.block_ms)


@reads_ahead(b"queue.pop")
def _read_ahead_of_pop(session: CommandSession, args: list[bytes], places: Places) -> None:
    queue = find_topic(session, args[1])
    if queue is None or not queue.has_cold:
        return
    place, subscriber = (session.db, args[1], args[2]), group_of(queue, args[2])
    if place in places or (subscriber is not None and not subscriber.is_stopped):
        after = places[place] if subscriber is None else places.get(place, subscriber.last_id)
        places[place] = look_behind(queue, after, None, _wanted(args[3:], may_block=True).how_many or 1)


def _wait(session: CommandSession, name: bytes, who: bytes, wanted: _PopOptions, block_ms: int) -> Reply:
    keyspace = keyspace_of(session)

    def attempt(key: bytes) -> Reply:
        if not _has_more(_awake(_subscriber_of(keyspace.find(session.db, key), key, who))):
            return None
        subscriber = _awake(_subscriber_of(keyspace.for_change(session.db, key), key, who))
        if subscriber.topic.has_segments and chain.is_behind(subscriber):
            return _attempt_behind(session, subscriber, wanted)
        reads = partial(queue_reading.look_at, subscriber, wanted.how_many or 1)
        if subscriber.topic.has_cold and not session.engine.cold_waits.try_ahead(session, subscriber.topic, reads):
            return None
        parts = queue_reading.pop(subscriber, wanted.how_many or 1)
        return _reply(parts, wanted) if parts else None

    return session.engine.waiting.block(session, [name], block_ms, attempt, queues=[(b"queue", who)], on_timeout=None)


def _attempt_behind(session: CommandSession, subscriber: Group, wanted: _PopOptions) -> Reply:
    """Pop for a session that waits. What is not here it is to ask for again: it would be fetched then."""
    try:
        with session.engine.chains.waiting():
            parts = session.engine.chains.gather(session, subscriber.topic, subscriber.last_id, wanted.how_many or 1)
    except (SegmentMiss, ColdMiss):
        raise CommandError(_AGAIN) from None
    if not parts:
        return None
    chain.advance(subscriber, parts)
    return _reply(parts, wanted)


@command(
    "queue.peek",
    arity=-3,
    flags="readonly",
    group="stream",
    since=SINCE,
    summary="Return the next value for a subscriber without advancing its position",
    complexity="O(log N) where N is the number of values in the queue, and O(1) for each that is given",
    arguments=(*_OF_ONE, _COUNT),
    key_specs=_READ,
    ours=True,
)
def queue_peek(session: CommandSession, args: list[bytes]) -> Reply:
    """Answer like QUEUE.POP. A paused subscriber may look, too."""
    wanted = _wanted(args[3:], may_block=False)
    subscriber, count = _find(session, args[1], args[2]), wanted.how_many or 1
    if subscriber.topic.has_segments:
        return _reply(session.engine.chains.gather(session, subscriber.topic, subscriber.last_id, count), wanted)
    return _reply(queue_reading.peek(subscriber, count), wanted)


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


def _find(session: CommandSession, name: bytes, who: bytes) -> Group:
    return _subscriber_of(find_topic(session, name), name, who)


def _to_change(session: CommandSession, args: list[bytes]) -> Group:
    return _subscriber_of(queue_for_change(session, args[1]), args[1], args[2])


def _subscriber_of(record: object, name: bytes, who: bytes) -> Group:
    if not isinstance(record, Topic):
        raise no_queue(name)
    subscriber = group_of(record, who)
    if subscriber is None:
        raise no_subscriber(name, who)
    return subscriber


def _awake(subscriber: Group) -> Group:
    if subscriber.settings.is_asleep:
        who, name = c_string(subscriber.name), c_string(subscriber.topic.name)
        raise CommandError(b"ASLEEP Subscriber '%b' of queue '%b' is asleep; QUEUE.WAKEUP wakes it" % (who, name))
    return subscriber


def _has_more(subscriber: Group) -> bool:
    return subscriber.topic.last_id > subscriber.last_id and not subscriber.is_stopped


def _wanted(words: list[bytes], *, may_block: bool) -> _PopOptions:
    if len(words) % 2:
        raise CommandError(SYNTAX)
    how_many = block_ms = None
    for word, value in zip(words[::2], words[1::2], strict=True):
        option = word.upper()
        if option == b"COUNT":
            how_many = integer(value, 1, LONG_MAX, _BAD_COUNT)
        elif option == b"BLOCK" and may_block:
            block_ms = timeout_ms(value)
        else:
            raise CommandError(SYNTAX)
    return _PopOptions(how_many, block_ms)


def _reply(parts: list[ChunkSlice], wanted: _PopOptions) -> Reply:
    wire = b"".join([part.wire for part in parts])
    if wanted.how_many is None:
        return Encoded(wire) if parts else None
    return Encoded(b"*%d\r\n%b" % (sum([part.count for part in parts]), wire))
