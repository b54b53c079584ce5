"""TOPIC.DEFER, DEFERRED, REDEFER, UNDEFER: entries that are appended at a later time. An extension."""

from __future__ import annotations

import re

from rlite_pubsub.commands.topics.group import SINCE
from rlite_pubsub.engine.arguments.integers import LONG_MAX, integer
from rlite_pubsub.engine.arguments.lookup import find_topic, keyspace_of, topic_for_change
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.groups.release import MAX_MS
from rlite_pubsub.keyspace.topic import deferral
from rlite_pubsub.keyspace.topic.append_rules import check_size
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.protocol.encoder import bulk_array
from rlite_pubsub.protocol.errors import NO_SUCH_KEY, SYNTAX, CommandError, wrong_arity
from rlite_pubsub.protocol.replies import Encoded, Reply
from rlite_pubsub.storage.topics.deferred import FIRST, HIGHEST, Ticket

_NO_TIME = b"ERR the time must be an integer, milliseconds since 1970, or DELAY and milliseconds from now"
_BAD_DELAY = b"ERR the delay must be an integer: milliseconds from now"
_TOO_LATE = b"ERR the time is beyond 2^48 milliseconds since 1970"
_TOO_LARGE = b"ERR Elements are too large to be stored"
_BAD_COUNT = b"ERR COUNT must be >= 0"
_BAD_TICKET = b"ERR a ticket is what TOPIC.DEFER answers: a time in milliseconds, a dash and a number"
_MAX_ENTRY_BYTES = 1 << 30
_USUAL_COUNT = 10
_TIME = re.compile(rb"0|[1-9][0-9]*")
_LONGEST_TIME = 20
_TICKET = re.compile(rb"([0-9]{1,15})-([0-9]{1,10})")
_NAME = Arg("name", "key", key_spec=0)
_WHEN = Arg(
    "when",
    "oneof",
    arguments=(
        Arg("unix-time-milliseconds", "unix-time"),
        Arg("milliseconds", "integer", token="DELAY"),
    ),
)
NEW_SINCE = "1.0.0"


@command(
    "topic.defer",
    arity=-5,
    flags="write denyoom fast",
    group="stream",
    since=SINCE,
    summary="Append an entry to a topic at a later time",
    complexity="O(1)",
    arguments=(
        _NAME,
        _WHEN,
        Arg("field_value", "block", multiple=True, arguments=(Arg("field"), Arg("value"))),
    ),
    key_specs=(KeySpec(("RW", "INSERT"), ("index", 1), ("range", 0, 1, 0)),),
    ours=True,
)
def topic_defer(session: CommandSession, args: list[bytes]) -> Reply:
    """A ticket: TOPIC.DEFERRED shows the entry under it. The topic is made if necessary. The entry's id is of the time
    when it is appended: at once, if the time has come already."""
    now_ms = keyspace_of(session).clock_ms()
    due_ms, words = _when(args, 2, now_ms)
    if not words or len(words) % 2:
        raise wrong_arity(b"topic.defer")
    packed = bulk_array(tuple(words))
    if len(packed) > _MAX_ENTRY_BYTES:
        raise CommandError(_TOO_LARGE)
    topic = topic_for_change(session, args[1])
    if topic is None:
        topic = keyspace_of(session).create_topic(session.db, args[1])
    check_size(topic, sum(map(len, words)))
    return _deferred(topic, due_ms, packed, now_ms)


def _deferred(topic: Topic, due_ms: int, packed: bytes, now_ms: int) -> bytes:
    """Defer it, and append what is due; its ticket."""
    ticket = b"%d-%d" % (due_ms, deferral.defer(topic, due_ms, packed))
    if due_ms <= now_ms:
        deferral.append_due(topic, now_ms)
    return ticket


def _when(args: list[bytes], at: int, now_ms: int) -> tuple[int, list[bytes]]:
    """Return the time that stands here, and the words behind it. Raises CommandError."""
    if args[at].upper() == b"DELAY" and len(args) > at + 1:
        return min(now_ms + _ms(args[at + 1], _BAD_DELAY), MAX_MS), args[at + 2 :]
    return _ms(args[at], _NO_TIME), args[at + 1 :]


def _ms(text: bytes, refusal: bytes) -> int:
    if _TIME.fullmatch(text) is None:
        raise CommandError(refusal)
    if len(text) > _LONGEST_TIME or int(text) > MAX_MS:
        raise CommandError(_TOO_LATE)
    return int(text)


@command(
    "topic.deferred",
    arity=-2,
    flags="readonly",
    group="stream",
    since=SINCE,
    summary="Show how many entries of a topic are deferred, and the next ones",
    complexity="O(N) where N is the number of entries that are shown",
    arguments=(
        _NAME,
        Arg("count", "integer", token="COUNT", optional=True),
        Arg("ticket", token="FROM", optional=True),
    ),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
    ours=True,
)
def topic_deferred(session: CommandSession, args: list[bytes]) -> Reply:
    """A ticket begins with the time in ms. COUNT is 10 if it is not given; FROM begins at a ticket."""
    count, first = _USUAL_COUNT, FIRST
    if len(args) % 2:
        raise CommandError(SYNTAX)
    for word, value in zip(args[2::2], args[3::2], strict=True):
        match word.upper():
            case b"COUNT":
                count = integer(value, 0, LONG_MAX, _BAD_COUNT)
            case b"FROM":
                first = _ticket(value)
            case _:
                raise CommandError(SYNTAX)
    topic = find_topic(session, args[1])
    if topic is None:
        raise CommandError(NO_SUCH_KEY)
    topic.settle()
    return {
        b"count": deferral.count(topic),
        b"entries": [
            [b"%d-%d" % (one.due_ms, one.number), Encoded(one.words)] for one in deferral.waiting(topic, count, first)
        ],
    }


@command(
    "topic.redefer",
    arity=-4,
    flags="write denyoom fast",
    group="stream",
    since=NEW_SINCE,
    summary="Move a deferred entry to another time",
    complexity="O(log N) where N is the number of deferred entries",
    arguments=(_NAME, Arg("ticket"), _WHEN),
    key_specs=(KeySpec(("RW", "UPDATE"), ("index", 1), ("range", 0, 1, 0)),),
    ours=True,
)
def topic_redefer(session: CommandSession, args: list[bytes]) -> Reply:
    """Answer its new ticket, or null if there is no such entry: it was appended meanwhile, or cancelled."""
    ticket = _ticket(args[2])
    now_ms = keyspace_of(session).clock_ms()
    due_ms, rest = _when(args, 3, now_ms)
    if rest:
        raise wrong_arity(b"topic.redefer")
    topic = topic_for_change(session, args[1])
    words = None if topic is None else deferral.cancel(topic, ticket)
    if topic is None or words is None:
        return None
    return _deferred(topic, due_ms, words, now_ms)


@command(
    "topic.undefer",
    arity=-3,
    flags="write fast",
    group="stream",
    since=NEW_SINCE,
    summary="Cancel deferred entries of a topic",
    complexity="O(M*log(N)) where M is the number of tickets and N the number of deferred entries",
    arguments=(_NAME, Arg("ticket", multiple=True)),
    key_specs=(KeySpec(("RW", "DELETE"), ("index", 1), ("range", 0, 1, 0)),),
    ours=True,
)
def topic_undefer(session: CommandSession, args: list[bytes]) -> Reply:
    """Cancel deferred entries; answer how many were cancelled: not those appended meanwhile."""
    tickets = [_ticket(text) for text in args[2:]]
    topic = topic_for_change(session, args[1])
    return 0 if topic is None else sum([deferral.cancel(topic, ticket) is not None for ticket in tickets])


def _ticket(text: bytes) -> Ticket:
    match = _TICKET.fullmatch(text)
    if match is None or int(match[2]) > HIGHEST:
        raise CommandError(_BAD_TICKET)
    return Ticket(int(match[1]), int(match[2]))
