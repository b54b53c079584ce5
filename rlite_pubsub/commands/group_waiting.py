"""Sessions that wait in XREADGROUP: for new entries and, with CLAIM, for pending ones to be idle for long enough.

Who waits for new entries of one group stands in one queue: where there is nothing for the first, there is nothing for
those behind. Who claims stands alone, because what is idle enough for one is not for another.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from rlite_pubsub.commands.group_delivery import NEW, Target, ahead, delivered, land, may_have_something
from rlite_pubsub.commands.lookout import lookout_of
from rlite_pubsub.commands.lookup import keyspace_of
from rlite_pubsub.commands.stream_arguments import of_keys
from rlite_pubsub.delivery.group import Group
from rlite_pubsub.delivery.topic import Topic
from rlite_pubsub.protocol.errors import CommandError
from rlite_pubsub.protocol.replies import Reply
from rlite_pubsub.storage.entry_ids import MIN

if TYPE_CHECKING:
    from rlite_pubsub.commands.session import CommandSession
    from rlite_pubsub.commands.stream_arguments import Reading

_KEY_GONE = b"UNBLOCKED the stream key no longer exists"
_GROUP_GONE = b"NOGROUP the consumer group this client was blocked on no longer exists"
_USUAL_COUNT = 1000
"""Who has waited and names no COUNT gets no more at once."""


def wait(session: CommandSession, wanted: Reading, block_ms: int) -> Reply:
    """Wait for what `wanted` asks for: new entries, all of it."""
    if not wanted.count:
        wanted = wanted._replace(count=_USUAL_COUNT)
    keyspace = keyspace_of(session)
    topics = {key: _waited_for(keyspace.find(session.db, key), wanted.group).topic for key in wanted.keys}
    last_ids = {(key, topic.number): topic.last_id for key, topic in topics.items()}

    cold_waits = session.instance.cold_waits

    def attempt(key: bytes) -> Reply:
        """What there is by now. What has come and is gone again is an answer, too: that there is nothing."""
        group = _waited_for(keyspace.find(session.db, key), wanted.group)
        if not may_have_something(Target(key, group, NEW), wanted):
            return None
        if not keyspace.turn.writes:
            group = _waited_for(keyspace.for_change(session.db, key), wanted.group)
        target = Target(key, group, NEW)
        if group.topic.has_cold:
            land(target)
            if not cold_waits.try_ahead(session, group.topic, partial(ahead, target, wanted)):
                return None
        known = max(group.last_id, last_ids.get((key, group.topic.number), MIN))
        has_come = group.topic.last_id > known and (session.db, key) in keyspace.touched  # by what happens just now
        reply = delivered(session, target, wanted, even_nothing=has_come)
        return None if reply is None else of_keys(session, [(key, reply)])

    idle_ms = wanted.claim_idle_ms
    queues = [(b"group", wanted.group)] * len(wanted.keys) if idle_ms is None else None
    reply = session.instance.waiting.block(session, wanted.keys, block_ms, attempt, queues=queues)
    if idle_ms is not None and session.blocked is not None:
        lookout_of(session.instance).add(session, wanted.keys, wanted.group or b"", idle_ms)
    return reply


def _waited_for(record: object, name: bytes | None) -> Group:
    if not isinstance(record, Topic):
        raise CommandError(_KEY_GONE)
    assert name is not None
    group = record.group(name)
    if group is None:
        raise CommandError(_GROUP_GONE)
    return group
