"""TOPIC.SUBSCRIBE, TOPIC.UNSUBSCRIBE: a topic pushed to its readers, from wherever they left off. An extension."""

from __future__ import annotations

from rlite_pubsub import measures
from rlite_pubsub.engine.arguments.integers import integer
from rlite_pubsub.engine.arguments.lookup import find_topic, keyspace_of
from rlite_pubsub.engine.arguments.stream_ids import strict_id
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.protocol.errors import SYNTAX, CommandError
from rlite_pubsub.protocol.replies import Push, Replies, Reply
from rlite_pubsub.storage.topics import entry_ids, trim_marks
from rlite_pubsub.storage.topics.entry_ids import Id

_SINCE = "0.2.0"


@command(
    "topic.subscribe",
    arity=-3,
    flags="pubsub noscript readonly",
    group="stream",
    since=_SINCE,
    summary="Receive the entries of topics from a start on, and then new ones as they come",
    complexity="O(N) where N is the number of entries that are there already",
    arguments=(Arg("topic", "block", multiple=True, arguments=(Arg("name", "key", key_spec=0), Arg("start"))),),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", -1, 2, 0)),),
    ours=True,
)
def topic_subscribe(session: CommandSession, args: list[bytes]) -> Reply:
    """A start is the id of the last entry that was seen, a time or an age (all since: 1700000000000, 2026-11-18T10:00Z,
    24h), `-` or `beginning` (all there are), `$` or `end` (only what comes), `+` or `last` (the last there is, and what
    comes)."""
    if len(args) % 2 == 0:
        raise CommandError(SYNTAX)
    if session.feed is not None:
        raise CommandError(b"ERR a durable subscriber's connection follows no topics")
    followers, now_ms = session.engine.followers, keyspace_of(session).clock_ms()
    wanted = [
        (name, topic, after, *_earliest(topic, after))
        for name, start in zip(args[1::2], args[2::2], strict=True)
        for topic in [find_topic(session, name)]
        for after in [_after(start, topic, now_ms)]
    ]
    replies = []
    for name, topic, after, first, lost in wanted:
        followers.follow(session, (session.db, name), after, topic)
        count = len(session.follows or ())
        replies.append(Push([b"topic-subscribe", name, entry_ids.text(first), count, lost]))
    return Replies(replies)


@command(
    "topic.unsubscribe",
    arity=-1,
    flags="pubsub noscript",
    group="stream",
    since=_SINCE,
    summary="Stop receiving entries of these topics, or of all",
    complexity="O(N) where N is the number of topics",
    arguments=(Arg("name", "key", key_spec=0, optional=True, multiple=True),),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", -1, 1, 0)),),
    ours=True,
)
def topic_unsubscribe(session: CommandSession, args: list[bytes]) -> Reply:
    followers = session.engine.followers
    keys = [(session.db, name) for name in args[1:]] or list(session.follows or ())
    replies = []
    for key in keys:
        followers.leave(session, key)
        replies.append(Push([b"topic-unsubscribe", key[1], len(session.follows or ())]))
    return Replies(replies or [Push([b"topic-unsubscribe", None, 0])])


def _after(start: bytes, topic: Topic | None, now_ms: int) -> Id:
    """Return the id behind which a session wants to begin. Raises CommandError."""
    last = topic.last_id if topic is not None else entry_ids.MIN
    named = measures.start_of(start.decode("latin-1"), now_ms)
    match named:
        case measures.BEGINNING:
            return entry_ids.MIN
        case measures.END:
            return last
        case measures.LAST:
            part = next(topic.backward(limit=1), None) if topic is not None else None
            return _before(entry_ids.unpack(part.ids)) if part is not None else last
    word = start if named is None else named.encode()
    if b"-" not in word:
        return _before((integer(word, 0), 0))
    return strict_id(word)


def _before(entry_id: Id) -> Id:
    return entry_ids.before(entry_id) or entry_ids.MIN


def _earliest(topic: Topic | None, after: Id) -> tuple[Id, int]:
    """Return where it goes on, and how many entries between `after` and there are gone."""
    if topic is None or topic.trimmed_id <= after:
        return after, 0
    lost = topic.trimmed - trim_marks.count_up_to(topic.settle(), topic.number, after)
    return topic.first_id, lost
