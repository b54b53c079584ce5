"""`XADD key * field value` the short way: a run of them, which differ in their last argument, at once.

If anything could tell the run from single commands (a client waits for the key, or is notified of changes) or anything
must be decided (no such topic yet, no ids left), the run is not taken, and each command goes the ordinary way. Code
that could change that meanwhile looks up a key, or comes through `Connection`'s ordinary way: either ends the stretch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rlite_pubsub.engine.refusal import answers
from rlite_pubsub.keyspace.topic.append import next_id
from rlite_pubsub.keyspace.topic.stretch import MAX_SEQUENCE, Stretch
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.storage.agenda import STRETCHES

if TYPE_CHECKING:
    from rlite_pubsub.engine.session import CommandSession
    from rlite_pubsub.keyspace.keyspace import Keyspace

_FEWEST_WORDS: Final = 4
"""`XADD key * field`"""


def append_run(session: CommandSession, head: list[bytes], tails: list[bytes]) -> bytes | None:
    """Append a run, and return the replies; None if nothing was done. `head` is all of a request but its last argument;
    each tail is `<length>\\r\\n<value>`."""
    engine = session.engine
    keyspace = engine.keyspace
    if len(head) < _FEWEST_WORDS:
        return None
    stretch = keyspace.stretches.open.get(head[1])
    if stretch is None or stretch.head != head or stretch.database != session.db:
        stretch = _begun(session, keyspace, head)
        if stretch is None:
            return None
    if stretch.next + len(tails) > MAX_SEQUENCE:
        return None
    replies = stretch.add(tails)
    if len(tails) > 1:
        replies = answers(replies, len(tails))
    engine.unacknowledged.append((session, replies))
    return replies


def _begun(session: CommandSession, keyspace: Keyspace, head: list[bytes]) -> Stretch | None:
    """Return a new stretch, or None if something forbids it."""
    engine = session.engine
    key = head[1]
    if (
        head[2] != b"*"
        or len(head) % 2
        or not engine.plain
        or ((session.db, key) in engine.waiting.keys and engine.waiting.is_awaited(session.db, key))
    ):
        return None
    if key in keyspace.stretches.open:
        keyspace.stretches.take_in()
    try:
        topic = keyspace.for_change(session.db, key)
    except Exception:  # the ordinary way meets it again, and answers it
        return None
    if topic.__class__ is not Topic:
        return None
    assert isinstance(topic, Topic)
    if topic.node_limits != engine.node_limits or topic.has_append_rules:
        return None
    if not session.no_touch:
        topic.used_at = keyspace.times.coarse_now
    first = next_id(topic.last_id, keyspace.clock_ms())
    if first is None or first[1] >= MAX_SEQUENCE:
        return None
    stretch = keyspace.stretches.open[key] = Stretch(topic, first, head)
    keyspace.agenda.due |= STRETCHES
    return stretch
