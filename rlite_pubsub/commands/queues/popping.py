"""QUEUE.POP, PEEK, RETURN: the next values of a queue's subscriber. An extension.

What is popped is done with. With ACK it is leased: it stays pending with the subscriber, as with a consumer of its own
name, until XACK, and is popped again once the subscriber's TIMEOUT (TOPIC.GROUP) has passed. What comes again, from a
lease that is over or by QUEUE.RETURN, comes before newer values.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from rlite_pubsub.engine.arguments.group_lookup import consumer_of
from rlite_pubsub.engine.arguments.integers import LONG_MAX, integer
from rlite_pubsub.engine.arguments.lookup import find_topic, keyspace_of
from rlite_pubsub.engine.arguments.queue_lookup import awake, find_subscriber, queue_for_change, subscriber_of
from rlite_pubsub.engine.arguments.stream_ids import strict_id
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.shards.segment_pieces import SegmentMiss
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.engine.waits.cold_wait import Places, reads_ahead, rehearse
from rlite_pubsub.engine.waits.giving_back import note_popped
from rlite_pubsub.engine.waits.timeouts import timeout_ms
from rlite_pubsub.groups import chain, dead_letters, landing, queue_reading, release
from rlite_pubsub.groups.group import Group, group_of
from rlite_pubsub.groups.progress import look_behind
from rlite_pubsub.groups.release import MAX_MS, Again
from rlite_pubsub.keyspace.topic.cold_shelf import ColdMiss
from rlite_pubsub.protocol.errors import SYNTAX, CommandError
from rlite_pubsub.protocol.replies import Encoded, Reply
from rlite_pubsub.storage.topics import entry_ids

if TYPE_CHECKING:
    from rlite_pubsub.storage.topics.chunks import ChunkSlice

SINCE = "0.2.0"
NEW_SINCE = "1.0.0"
_BAD_COUNT = b"ERR COUNT must be > 0"
_BAD_DELAY = b"ERR DELAY must be a number of milliseconds up to 2^48"
_AGAIN = b"TRYAGAIN The next values are to be fetched from another member first"
_READ = (KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),)
_UPDATE = (KeySpec(("RW", "UPDATE"), ("index", 1), ("range", 0, 1, 0)),)
_OF_ONE = (Arg("name", "key", key_spec=0), Arg("subscriber"))
_COUNT = Arg("count", "integer", token="COUNT", optional=True)
_FIRST = b":1\r\n"


class _PopOptions(NamedTuple):
    """The options of a pop."""

    how_many: int | None
    """None: one, by itself, not in an array."""
    block_ms: int | None
    leases: bool

    @property
    def most(self) -> int:
        return self.how_many or 1


@command(
    "queue.pop",
    arity=-3,
    flags="blocking write",
    group="stream",
    since=SINCE,
    summary="Take the next values of a subscriber, or wait for one",
    complexity="O(log N), plus O(M) where M is the number of values taken",
    arguments=(
        *_OF_ONE,
        _COUNT,
        Arg("milliseconds", "integer", token="BLOCK", optional=True),
        Arg("ack", "pure-token", token="ACK", optional=True),
    ),
    key_specs=_UPDATE,
    ours=True,
)
def queue_pop(session: CommandSession, args: list[bytes]) -> Reply:
    """An entry as XRANGE gives it, or null; with COUNT an array of them. BLOCK waits for one; 0 is forever. With ACK
    each entry ends with the number of its deliveries, and comes again unless XACK says, in the subscriber's TIMEOUT,
    that it is done. A subscriber without a TIMEOUT gets one of 30 seconds."""
    wanted = _wanted(args[3:], may_block=True)
    subscriber = awake(find_subscriber(session, args[1], args[2]))
    if _has_more(subscriber):
        reply = _pop(session, args, subscriber, wanted)
        if reply is not None:
            return reply
    if wanted.block_ms is None:
        return None if wanted.how_many is None else []
    return _wait(session, args[1], args[2], wanted, wanted.block_ms)


def _pop(session: CommandSession, args: list[bytes], subscriber: Group, wanted: _PopOptions) -> Reply:
    """Pop what there is; None if there is nothing. Raises what fetching it raises, before anything has changed."""
    keyspace = keyspace_of(session)

    def latest() -> Group:
        if not keyspace.turn.writes:
            keyspace.writing()
        return awake(find_subscriber(session, args[1], args[2]))

    if _comes_again(subscriber):
        subscriber = latest()
        _land(session, subscriber)
        entries = _look_at_again(session, subscriber, wanted)
        again = release.take(subscriber, wanted.most, keyspace.clock_ms(), entries.get)
        if again:
            return _given_again(session, subscriber, again, wanted)
    if not _has_new(subscriber):
        return None
    if not (subscriber.topic.has_segments and chain.is_behind(subscriber)):
        rehearse(session, subscriber.topic, partial(queue_reading.look_at, subscriber, wanted.most))
        subscriber = latest()
        return _given(session, subscriber, queue_reading.pop(subscriber, wanted.most), wanted)
    gather, place = session.engine.chains.gather, subscriber.last_id
    parts = gather(session, subscriber.topic, place, wanted.most)
    if not parts:
        return None
    subscriber = latest()
    if subscriber.last_id != place:
        parts = gather(session, subscriber.topic, subscriber.last_id, wanted.most)
    if parts:
        chain.advance(subscriber, parts)
    return _given(session, subscriber, parts, wanted)


@reads_ahead(b"queue.pop")
def _read_ahead_of_pop(session: CommandSession, args: list[bytes], places: Places) -> None:
    queue = find_topic(session, args[1])
    if queue is None or not queue.has_cold:
        return
    place, subscriber = (session.db, args[1], args[2]), group_of(queue, args[2])
    if place in places or (subscriber is not None and not subscriber.is_stopped):
        after = places[place] if subscriber is None else places.get(place, subscriber.last_id)
        places[place] = look_behind(queue, after, None, _wanted(args[3:], may_block=True).most)


def _wait(session: CommandSession, name: bytes, who: bytes, wanted: _PopOptions, block_ms: int) -> Reply:
    keyspace = keyspace_of(session)

    def attempt(key: bytes) -> Reply:
        if not _has_more(awake(subscriber_of(keyspace.find(session.db, key), key, who))):
            return None
        subscriber = awake(subscriber_of(keyspace.for_change(session.db, key), key, who))
        is_apart = subscriber.topic.has_segments or _comes_again(subscriber)
        if is_apart:
            return _attempt_apart(session, [b"", key, who], subscriber, wanted)
        reads = partial(queue_reading.look_at, subscriber, wanted.most)
        if subscriber.topic.has_cold and not session.engine.cold_waits.try_ahead(session, subscriber.topic, reads):
            return None
        return _given(session, subscriber, queue_reading.pop(subscriber, wanted.most), wanted)

    return session.engine.waiting.block(session, [name], block_ms, attempt, queues=[(b"queue", who)], on_timeout=None)


def _attempt_apart(session: CommandSession, args: list[bytes], subscriber: Group, wanted: _PopOptions) -> Reply:
    """Pop for a session that waits. What is not here it is to ask for again: it would be fetched then."""
    try:
        with session.engine.chains.waiting():
            return _pop(session, args, subscriber, wanted)
    except (SegmentMiss, ColdMiss):
        raise CommandError(_AGAIN) from None


# -- what comes again


def _land(session: CommandSession, subscriber: Group) -> None:
    """Have what is over its time released."""
    topic, now_ms = subscriber.topic, subscriber.topic.keyspace.clock_ms()
    if not subscriber.settings.timeout_ms or subscriber.due_ms() > now_ms:
        return
    if topic.has_cold:
        rehearse(session, topic, partial(landing.land, subscriber, now_ms))
    else:
        landing.land(subscriber, now_ms)


def _look_at_again(session: CommandSession, subscriber: Group, wanted: _PopOptions) -> dict[bytes, bytes | None]:
    """Return what comes again, by id. Raises what fetching it raises."""
    if not subscriber.settings.released:
        return {}
    ids = release.next_ids(subscriber, wanted.most)
    topic = subscriber.topic
    if topic.has_segments:
        return dict(zip(ids, session.engine.chains.entries(session, topic, ids), strict=True))
    rehearse(session, topic, partial(topic.entries, ids))
    return dict(zip(ids, topic.entries(ids), strict=True))


def _given_again(session: CommandSession, subscriber: Group, again: list[Again], wanted: _PopOptions) -> Reply:
    now_ms = subscriber.topic.keyspace.clock_ms()
    ids = [one.id for one in again]
    if wanted.leases:
        consumer = consumer_of(session, subscriber, subscriber.name)
        queue_reading.lease_again(subscriber, consumer, again, now_ms)
    _note_popped(session, subscriber, b"".join(ids))
    entries = [one.entry for one in again]
    if wanted.leases:
        entries = [b"*3%b:%d\r\n" % (one.entry[2:], one.deliveries + 1) for one in again]
    return _reply(b"".join(entries), len(entries), wanted)


def _given(session: CommandSession, subscriber: Group, parts: list[ChunkSlice], wanted: _PopOptions) -> Reply:
    """Answer with new values, from which the subscriber's place has moved on; None if there are none."""
    if not parts:
        return None
    count = sum([part.count for part in parts])
    if wanted.leases or session.gives_back:
        ids = b"".join([part.ids for part in parts])
        if wanted.leases:
            consumer = consumer_of(session, subscriber, subscriber.name)
            queue_reading.lease(subscriber, consumer, ids, subscriber.topic.keyspace.clock_ms())
        _note_popped(session, subscriber, ids)
    if not wanted.leases:
        return _reply(b"".join([part.wire for part in parts]), count, wanted)
    entries = [entry for part in parts for entry in part.chunk.entries(part.start, part.stop)]
    return _reply(b"".join([b"*3%b%b" % (entry[2:], _FIRST) for entry in entries]), count, wanted)


def _note_popped(session: CommandSession, subscriber: Group, packed_ids: bytes) -> None:
    if session.gives_back:
        ids = [entry_ids.text(one) for one in entry_ids.unpack_all(packed_ids)]
        topic = subscriber.topic
        note_popped(session, topic, [b"QUEUE.RETURN", topic.name, subscriber.name, b"UNREAD", *ids])


@command(
    "queue.peek",
    arity=-3,
    flags="readonly",
    group="stream",
    since=SINCE,
    summary="Look at the next values of a subscriber",
    complexity="O(log N), plus O(M) where M is the number of values shown",
    arguments=(*_OF_ONE, _COUNT),
    key_specs=_READ,
    ours=True,
)
def queue_peek(session: CommandSession, args: list[bytes]) -> Reply:
    """Answer what QUEUE.POP would."""
    wanted = _wanted(args[3:], may_block=False)
    subscriber = awake(find_subscriber(session, args[1], args[2]))
    if subscriber.is_stopped:
        return None if wanted.how_many is None else []
    shown = [entry for entry in _look_at_again(session, subscriber, wanted).values() if entry is not None]
    if shown:
        return _reply(b"".join(shown), len(shown), wanted)
    if subscriber.topic.has_segments:
        parts = session.engine.chains.gather(session, subscriber.topic, subscriber.last_id, wanted.most)
    else:
        parts = queue_reading.peek(subscriber, wanted.most)
    if not parts and wanted.how_many is None:
        return None
    return _reply(b"".join([part.wire for part in parts]), sum([part.count for part in parts]), wanted)


@command(
    "queue.return",
    arity=-4,
    flags="write denyoom",
    group="stream",
    since=NEW_SINCE,
    summary="Give popped values back to a queue's subscriber, which pops them again",
    complexity="O(M*log(N)) where M is the number of ids and N the number of values that are leased",
    arguments=(
        *_OF_ONE,
        Arg("milliseconds", "integer", token="DELAY", optional=True),
        Arg("unread", "pure-token", token="UNREAD", optional=True),
        Arg("id", multiple=True),
    ),
    key_specs=_UPDATE,
    ours=True,
)
def queue_return(session: CommandSession, args: list[bytes]) -> Reply:
    """How many were given back: values that are leased, or were popped without ACK. They come again at once or after
    DELAY, before newer ones. UNREAD: they were not read, and it does not count as a delivery."""
    words, delay_ms, was_read = args[3:], 0, True
    while words and b"-" not in words[0][1:] and not words[0].isdigit():
        match words.pop(0).upper():
            case b"DELAY" if words:
                delay_ms = integer(words.pop(0), 0, MAX_MS, _BAD_DELAY)
            case b"UNREAD":
                was_read = False
            case _:
                raise CommandError(SYNTAX)
    if not words:
        raise CommandError(SYNTAX)
    ids = sorted({entry_ids.pack(strict_id(word)) for word in words})
    subscriber = subscriber_of(queue_for_change(session, args[1]), args[1], args[2])
    spent = queue_reading.leased(subscriber, ids)
    rehearse(session, subscriber.topic, partial(dead_letters.look_at, subscriber, spent))
    return queue_reading.give_back(subscriber, ids, delay_ms, was_read=was_read)


# -- the subscriber, and the options


def _has_more(subscriber: Group) -> bool:
    return not subscriber.is_stopped and (_has_new(subscriber) or _comes_again(subscriber))


def _has_new(subscriber: Group) -> bool:
    return subscriber.topic.last_id > subscriber.last_id


def _comes_again(subscriber: Group) -> bool:
    """Return whether something that was popped is to be popped again now."""
    settings = subscriber.settings
    if not (settings.released or settings.timeout_ms):
        return False
    now_ms = subscriber.topic.keyspace.clock_ms()
    return release.is_any_due(subscriber, now_ms) or (bool(settings.timeout_ms) and subscriber.due_ms() <= now_ms)


def _wanted(words: list[bytes], *, may_block: bool) -> _PopOptions:
    how_many = block_ms = None
    leases = False
    left = iter(words)
    for word in left:
        option = word.upper()
        if option == b"ACK" and may_block:
            leases = True
            continue
        value = next(left, None)
        if value is None:
            raise CommandError(SYNTAX)
        if option == b"COUNT":
            how_many = integer(value, 1, LONG_MAX, _BAD_COUNT)
        elif option == b"BLOCK" and may_block:
            block_ms = timeout_ms(value)
        else:
            raise CommandError(SYNTAX)
    return _PopOptions(how_many, block_ms, leases)


def _reply(wire: bytes, count: int, wanted: _PopOptions) -> Reply:
    return Encoded(wire) if wanted.how_many is None else Encoded(b"*%d\r\n%b" % (count, wire))
