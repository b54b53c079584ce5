"""TOPIC.DEFER, TOPIC.DEFERRED: entries that are appended at a later time. Ours."""

from __future__ import annotations

import re

from rlite_pubsub.commands.topics.group import SINCE
from rlite_pubsub.engine.arguments.integers import LONG_MAX, integer
from rlite_pubsub.engine.arguments.lookup import find_topic, keyspace_of, topic_for_change
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.groups.release import MAX_MS
from rlite_pubsub.keyspace.topic import deferral
from rlite_pubsub.protocol.encoder import bulk_array
from rlite_pubsub.protocol.errors import NO_SUCH_KEY, SYNTAX, CommandError, wrong_arity
from rlite_pubsub.protocol.replies import Encoded, Reply

_NO_TIME = b"ERR the time must be an integer: milliseconds since 1970"
_PAST = b"ERR the time is in the past"
_TOO_LATE = b"ERR the time is beyond 2^48 milliseconds since 1970"
_TOO_LARGE = b"ERR Elements are too large to be stored"
_BAD_COUNT = b"ERR COUNT must be >= 0"
_MAX_ENTRY_BYTES = 1 << 30
_USUAL_COUNT = 10
_TIME = re.compile(rb"0|-?[1-9][0-9]*")
_LONGEST_TIME = 20
_NAME = Arg("name", "key", key_spec=0)


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
        Arg("unix-time-milliseconds", "unix-time"),
        Arg("field_value", "block", multiple=True, arguments=(Arg("field"), Arg("value"))),
    ),
    key_specs=(KeySpec(("RW", "INSERT"), ("index", 1), ("range", 0, 1, 0)),),
    ours=True,
)
def topic_defer(session: CommandSession, args: list[bytes]) -> Reply:
    """A ticket: TOPIC.DEFERRED shows the entry under it. The topic is made if need be. The entry's id is of the time
    when it is appended."""
    words = tuple(args[3:])
    if len(words) % 2:
        raise wrong_arity(b"topic.defer")
    due_ms = _time(args[2], keyspace_of(session).clock_ms())
    packed = bulk_array(words)
    if len(packed) > _MAX_ENTRY_BYTES:
        raise CommandError(_TOO_LARGE)
    topic = topic_for_change(session, args[1])
    if topic is None:
        topic = keyspace_of(session).create_topic(session.db, args[1])
    return b"%d-%d" % (due_ms, deferral.defer(topic, due_ms, packed))


def _time(text: bytes, now_ms: int) -> int:
    if _TIME.fullmatch(text) is None:
        raise CommandError(_NO_TIME)
    if text.startswith(b"-"):
        raise CommandError(_PAST)
    if len(text) > _LONGEST_TIME or int(text) > MAX_MS:
        raise CommandError(_TOO_LATE)
    if int(text) < now_ms:
        raise CommandError(_PAST)
    return int(text)


@command(
    "topic.deferred",
    arity=-2,
    flags="readonly",
    group="stream",
    since=SINCE,
    summary="The entries of a topic that will be appended later: how many, and the next ones",
    complexity="O(N) where N is the number of entries that are shown",
    arguments=(_NAME, Arg("count", "integer", token="COUNT", optional=True)),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
    ours=True,
)
def topic_deferred(session: CommandSession, args: list[bytes]) -> Reply:
    """A ticket begins with the time in ms. COUNT is 10 if it is not said."""
    count = _USUAL_COUNT
    if len(args) > 2:
        if len(args) != 4 or args[2].upper() != b"COUNT":
            raise CommandError(SYNTAX)
        count = integer(args[3], 0, LONG_MAX, _BAD_COUNT)
    topic = find_topic(session, args[1])
    if topic is None:
        raise CommandError(NO_SUCH_KEY)
    topic.settle()
    return {
        b"count": deferral.count(topic),
        b"entries": [
            [b"%d-%d" % (one.due_ms, one.number), Encoded(one.words)] for one in deferral.waiting(topic, count)
        ],
    }
