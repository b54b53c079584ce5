"""TOPIC.APPEND: many entries at once, in the bytes in which XRANGE sends them. An extension.

A link between two stores copies entries so (links/carrier.py): neither of them takes an entry apart.
"""

from __future__ import annotations

from typing import Final

from rlite_pubsub.engine.arguments.lookup import topic_for_change
from rlite_pubsub.engine.arguments.stream_ids import strict_id
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.keyspace.topic.append import next_id
from rlite_pubsub.keyspace.topic.append_rules import check_size
from rlite_pubsub.protocol.entries import CutEntry, cut_entries
from rlite_pubsub.protocol.errors import CommandError
from rlite_pubsub.protocol.replies import Reply
from rlite_pubsub.storage.topics import entry_ids
from rlite_pubsub.storage.topics.entry_ids import Id

_NOT_ENTRIES: Final = b"ERR these are not entries as XRANGE sends them"
_NOT_ABOVE: Final = b"ERR The ID specified in XADD is equal or smaller than the target stream top item"
_EXHAUSTED: Final = b"ERR The stream has exhausted the last possible ID, unable to add more items"


@command(
    "topic.append",
    arity=3,
    flags="write denyoom",
    group="stream",
    since="1.0.0",
    summary="Append entries in the form in which XRANGE sends them",
    complexity="O(N) where N is the number of entries",
    arguments=(Arg("name", "key", key_spec=0), Arg("entries")),
    key_specs=(KeySpec(("RW", "INSERT"), ("index", 1), ("range", 0, 1, 0)),),
    ours=True,
)
def topic_append(session: CommandSession, args: list[bytes]) -> Reply:
    """Append all of these entries, one after the other, or none; answer how many. An id * is a new one, as in XADD. The
    outer array is left away: the entries alone."""
    name = args[1]
    found = cut_entries(args[2])
    if found is None:
        raise CommandError(_NOT_ENTRIES)
    topic = topic_for_change(session, name)
    if topic is not None and topic.has_append_rules and not session.obeys_master:
        for each in found:
            check_size(topic, each.size_bytes)
    engine = session.engine
    keyspace = engine.keyspace
    ids = _ids(found, entry_ids.MIN if topic is None else topic.last_id, keyspace.clock_ms())
    if not ids:
        return 0
    entries: list[bytes] = []
    for entry_id, each in zip(ids, found, strict=True):
        text = b"%d-%d" % entry_id
        entries.append(b"*2\r\n$%d\r\n%b\r\n%b" % (len(text), text, each.body))
    if topic is None:
        topic = keyspace.create_topic(session.db, name)
    limits = engine.node_limits
    if limits is not topic.node_limits and limits != topic.node_limits:
        topic.limit_nodes(limits)
    topic.append_these(ids, entries)
    if engine.notifications.classes:
        for _ in entries:
            engine.notifications.tell("t", b"xadd", session.db, name)
    return len(entries)


def _ids(found: list[CutEntry], last: Id, now_ms: int) -> list[Id]:
    """Return their ids, each above the one before. Raises CommandError."""
    ids: list[Id] = []
    for each in found:
        if each.id == b"*":
            following = next_id(last, now_ms)
            if following is None:
                raise CommandError(_EXHAUSTED)
        else:
            following = each.parts if each.parts is not None else strict_id(each.id)
            if following <= last:
                raise CommandError(_NOT_ABOVE)
        ids.append(following)
        last = following
    return ids
