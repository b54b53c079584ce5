"""XDELEX and XACKDEL (Redis 8.2): entries are removed with, without, or only for lack of, references of groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlite_pubsub.engine.arguments.lookup import find_topic, topic_for_change
from rlite_pubsub.engine.arguments.references import ACKED, DELREF, removal
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.engine.waits.cold_wait import Places, reads_ahead, rehearse
from rlite_pubsub.groups import pending, release
from rlite_pubsub.groups.group import group_of
from rlite_pubsub.groups.references import References
from rlite_pubsub.protocol.replies import Reply
from rlite_pubsub.storage.topics import entry_ids

if TYPE_CHECKING:
    from rlite_pubsub.keyspace.topic.topic import Topic

_NOT_THERE, _REMOVED, _REFERRED_TO = -1, 1, 2
_POLICY = Arg(
    "condition",
    "oneof",
    optional=True,
    arguments=(
        Arg("keepref", "pure-token", token="KEEPREF"),
        Arg("delref", "pure-token", token="DELREF"),
        Arg("acked", "pure-token", token="ACKED"),
    ),
)
_IDS = Arg("ids", "block", token="IDS", arguments=(Arg("numids", "integer"), Arg("id", multiple=True)))


@command(
    "xdelex",
    arity=-5,
    flags="write fast",
    group="stream",
    since="8.2.0",
    categories="stream",
    summary="Deletes one or multiple entries from the stream.",
    complexity="O(1) for each single item to delete in the stream, regardless of the stream size.",
    arguments=(Arg("key", "key", key_spec=0), _POLICY, _IDS),
    key_specs=(KeySpec(("RW", "DELETE"), ("index", 1), ("range", 0, 1, 0)),),
)
def xdelex(session: CommandSession, args: list[bytes]) -> Reply:
    wanted = removal(args, 2)
    topic = topic_for_change(session, args[1])
    if topic is None:
        return [_NOT_THERE] * len(wanted.ids)
    there = _there(session, topic, wanted.ids)
    references = References(topic)
    if wanted.policy == DELREF:
        references.forget(b"".join(sorted(set(wanted.ids))))
    answers = []
    for packed in wanted.ids:
        if packed not in there:
            answers.append(_NOT_THERE)
        elif wanted.policy == ACKED and references.hold(packed):
            answers.append(_REFERRED_TO)
        else:
            there.remove(packed)
            answers.append(_REMOVED)
    _delete(session, topic, [packed for packed, answer in zip(wanted.ids, answers, strict=True) if answer == _REMOVED])
    return answers


@command(
    "xackdel",
    arity=-6,
    flags="write fast",
    group="stream",
    since="8.2.0",
    categories="stream",
    summary="Acknowledges and deletes one or multiple messages for a stream consumer group.",
    complexity="O(1) for each message ID processed.",
    arguments=(Arg("key", "key", key_spec=0), Arg("group"), _POLICY, _IDS),
    key_specs=(KeySpec(("RW", "UPDATE", "DELETE"), ("index", 1), ("range", 0, 1, 0)),),
)
def xackdel(session: CommandSession, args: list[bytes]) -> Reply:
    wanted = removal(args, 3)
    topic = topic_for_change(session, args[1])
    group = group_of(topic, args[2]) if topic is not None else None
    if topic is None or group is None:
        return [_NOT_THERE] * len(wanted.ids)
    _there(session, topic, wanted.ids)
    references = References(topic)
    answers = []
    going = []
    for packed in wanted.ids:
        if not pending.acknowledge(group, packed) and not release.forget(group, packed):
            answers.append(_NOT_THERE)
            continue
        if wanted.policy == DELREF:
            references.forget(packed)
        if wanted.policy == ACKED and references.hold(packed):
            answers.append(_REFERRED_TO)
        else:
            going.append(packed)
            answers.append(_REMOVED)
    _delete(session, topic, going)
    return answers


@reads_ahead(b"xdelex")
def _read_ahead_of_xdelex(session: CommandSession, args: list[bytes], places: Places) -> None:
    _read_ahead(session, args, 2)


@reads_ahead(b"xackdel")
def _read_ahead_of_xackdel(session: CommandSession, args: list[bytes], places: Places) -> None:
    _read_ahead(session, args, 3)


def _read_ahead(session: CommandSession, args: list[bytes], place: int) -> None:
    topic = find_topic(session, args[1])
    if topic is not None and topic.has_cold:
        topic.entries(sorted(set(removal(args, place).ids)))


def _there(session: CommandSession, topic: Topic, packed_ids: list[bytes]) -> set[bytes]:
    """Return which of these the topic has. A session that has to wait for them has changed nothing yet."""
    ids = sorted(set(packed_ids))
    rehearse(session, topic, lambda: topic.entries(ids))
    return {packed for packed, entry in zip(ids, topic.entries(ids), strict=True) if entry is not None}


def _delete(session: CommandSession, topic: Topic, packed_ids: list[bytes]) -> None:
    if topic.delete(map(entry_ids.unpack, packed_ids)):
        session.engine.notifications.tell("t", b"xdel", topic.database, topic.name)
