"""Trimming a topic for XTRIM and XADD: how far, and what happens to the groups' references."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from rlite_pubsub.engine.arguments.references import ACKED, DELREF, KEEPREF
from rlite_pubsub.engine.arguments.stream_arguments import Trimming
from rlite_pubsub.engine.waits.cold_wait import rehearse
from rlite_pubsub.groups.references import References
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.keyspace.topic.trimming import about_from_id, about_to_length, from_id, in_silence, to_length
from rlite_pubsub.storage.topics import entry_ids
from rlite_pubsub.storage.topics.entry_ids import Id

if TYPE_CHECKING:
    from rlite_pubsub.engine.session import CommandSession


def rehearse_trim(session: CommandSession, topic: Topic, wanted: Trimming, more: int) -> None:
    """Read in advance what an exact trim needs of the cold part, when this many entries are about to be added."""
    rehearse(session, topic, lambda: read_for_trim(topic, wanted, more))


def read_for_trim(topic: Topic, wanted: Trimming, more: int) -> None:
    """Read it now. Raises ColdMiss."""
    if not topic.has_cold:
        return
    if wanted.references != KEEPREF:
        _read_ids(topic, wanted, more)
        return
    if wanted.is_approximate:
        return
    if wanted.min_id is None:
        excess = topic.length + more - wanted.max_length
    else:
        end = entry_ids.before(wanted.min_id)
        excess = sum([part.count for part in topic.between(end=end)]) if end is not None else 0
    topic.cold.read_for_trim(excess)


def trim(session: CommandSession, topic: Topic, wanted: Trimming) -> int:
    """Trim a topic that `topic_for_change` has found, and publish the event; return how many entries were removed."""
    if wanted.min_id is None and topic.length <= wanted.max_length:
        return 0
    if wanted.references == KEEPREF:
        removed = _trimmed(session, topic, wanted)
    elif wanted.references == DELREF:
        removed = _trimmed(session, topic, wanted, partial(_forget, References(topic), topic))
    else:
        removed = _trim_unreferenced(session, topic, wanted)
    if removed:
        session.engine.notifications.tell("t", b"xtrim", topic.database, topic.name)
    return removed


def _trimmed(
    session: CommandSession, topic: Topic, wanted: Trimming, going: Callable[[int], None] = in_silence
) -> int:
    if not wanted.is_approximate:
        if wanted.min_id is None:
            return to_length(topic, wanted.max_length, going)
        return from_id(topic, wanted.min_id, going)
    limit = _limit(session, wanted)
    if wanted.min_id is None:
        return about_to_length(topic, wanted.max_length, limit, going)
    return about_from_id(topic, wanted.min_id, limit, going)


def _limit(session: CommandSession, wanted: Trimming) -> int:
    return session.engine.node_limits.most_trimmed if wanted.limit is None else wanted.limit


# -- with the groups' references


_AT_ONCE: Final = 1000


def _forget(references: References, topic: Topic, count: int) -> None:
    """Forget all references to the oldest entries, this many of which are about to be removed."""
    start = entry_ids.MIN
    while count > 0:
        ids = b"".join([part.ids for part in topic.between(start, limit=min(count, _AT_ONCE))])
        references.forget(ids)
        count -= len(ids) // entry_ids.BYTES
        behind = entry_ids.after(entry_ids.unpack(ids, len(ids) - entry_ids.BYTES))
        if behind is None:
            return
        start = behind


def _trim_unreferenced(session: CommandSession, topic: Topic, wanted: Trimming) -> int:
    """Remove those entries that nobody refers to; if there are still too many, remove later ones in their place. This
    is exact even with `~`: entries between those that stay are deleted one by one."""
    references = References(topic)
    most = topic.length if wanted.min_id is not None else topic.length - wanted.max_length
    if wanted.is_approximate and (limit := _limit(session, wanted)):
        most = min(most, limit)
    end = _end(wanted)
    going: list[Id] = []
    for part in topic.between(end=min(end, references.read_to)) if end is not None else ():
        for entry_id in entry_ids.unpack_all(part.ids):
            if len(going) == most:
                break
            if not references.hold(entry_ids.pack(entry_id)):
                going.append(entry_id)
    return topic.delete(going)


def _end(wanted: Trimming) -> Id | None:
    """Return the last id that may be removed; None if there is none."""
    return entry_ids.MAX if wanted.min_id is None else entry_ids.before(wanted.min_id)


def _read_ids(topic: Topic, wanted: Trimming, more: int) -> None:
    """Read in advance all that a trim with references needs of the cold part."""
    end, limit = _end(wanted), None
    if wanted.min_id is None:
        limit = topic.length + more - wanted.max_length
        if limit <= 0:
            return
    if wanted.references == ACKED and end is not None:  # it goes on after those that are referred to
        end, limit = min(end, References(topic).read_to), None
    for part in topic.between(end=end, limit=limit) if end is not None else ():
        if not part.ids:
            break
