"""Entries that were delivered as often as their group allows, and that nobody has acknowledged.

They leave the group and are appended to its topic for dead letters, in the same transaction, with what they had and
five fields that say where they come from. Law 8: where there is no such topic, they are counted, and the log says so.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

from rlite_pubsub.keyspace.topic.append import next_id
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.protocol.encoder import bulk
from rlite_pubsub.storage.topics import entry_ids

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlite_pubsub.groups.group import Group
    from rlite_pubsub.storage.topics.entry_ids import Id

log = logging.getLogger("rlite_pubsub")

FIELDS = (
    b"dead-letter-topic",
    b"dead-letter-group",
    b"dead-letter-id",
    b"dead-letter-deliveries",
    b"dead-letter-delivered-ms",
)
"""The last is the time of the last delivery, in ms since 1970; 0 if an earlier version has not noted it."""


class Spent(NamedTuple):
    """An entry that is not to be delivered again."""

    id: bytes
    """Packed."""
    deliveries: int
    delivered_ms: int


def is_spent(group: Group, deliveries: int) -> bool:
    """Return whether an entry delivered this often must not be delivered again."""
    return 0 < group.settings.max_deliveries <= deliveries


def look_at(group: Group, delivered: list[tuple[bytes, int]]) -> None:
    """Read what `bury` will read of these (packed id, deliveries), in order. Raises ColdMiss and ColdUnreadable."""
    spent = [packed for packed, deliveries in delivered if is_spent(group, deliveries)]
    if spent:
        group.topic.entries(spent)


def entries_of(
    group: Group, ids: list[bytes], entry_of: Callable[[bytes], bytes | None] | None
) -> dict[bytes, bytes | None]:
    """Return the entries of packed ids, in order: the topic's own, or what `entry_of` finds."""
    found = dict(zip(ids, group.topic.entries(ids), strict=True))
    if entry_of is not None:
        found.update({packed: entry_of(packed) for packed, entry in found.items() if entry is None})
    return found


def bury(group: Group, spent: list[Spent], entry_of: Callable[[bytes], bytes | None] | None = None) -> None:
    """Move these out of the group."""
    if not spent:
        return
    spent.sort()
    topic = group.topic
    found = entries_of(group, [one.id for one in spent], entry_of)
    letters = [(one, entry) for one in spent if (entry := found[one.id]) is not None]
    grave = _grave(group)
    buried = 0
    for one, entry in letters:
        entry_id = None if grave is None else next_id(grave.last_id, topic.keyspace.clock_ms())
        if grave is None or entry_id is None:
            break
        where = topic.name, group.name, entry_ids.text(entry_ids.unpack(one.id))
        origin = *where, b"%d" % one.deliveries, b"%d" % one.delivered_ms
        grave.append(entry_id, entry_with(entry_id, entry, origin))
        buried += 1
    if grave is not None and buried:
        topic.keyspace.news.listener.appended(grave.database, grave.name)
    dropped = len(letters) - buried
    if dropped:
        what = "%d entries of topic %r, delivered to group %r too often, are dropped: no topic takes its dead letters"
        log.warning(what, dropped, topic.name, group.name)
    if letters:
        topic.keyspace.news.on_dead_letters(topic.name, group.name, len(letters))
    settings = group.settings
    group.change(dead_lettered=settings.dead_lettered + buried, dropped=settings.dropped + dropped)


def entry_with(entry_id: Id, entry: bytes, origin: tuple[bytes, ...]) -> bytes:
    """Return the same entry under another id, and with fields that say where it comes from."""
    id_at = entry.index(b"\r\n", len(b"*2\r\n$")) + 2
    words_at = entry.index(b"\r\n", id_at) + 2
    values_at = entry.index(b"\r\n", words_at) + 2
    count = int(entry[words_at + 1 : values_at - 2]) + 2 * len(FIELDS)
    text = entry_ids.text(entry_id)
    more = [bulk(word) for pair in zip(FIELDS, origin, strict=True) for word in pair]
    return b"*2\r\n$%d\r\n%b\r\n*%d\r\n%b%b" % (len(text), text, count, entry[values_at:], b"".join(more))


def _grave(group: Group) -> Topic | None:
    """Return the topic for dead letters, made if necessary; None if none is named, or its name is another key's."""
    name = group.settings.dead_letter
    topic = group.topic
    if not name:
        return None
    found = topic.keyspace.names.for_change(topic.database, name)
    if found is None:
        return topic.keyspace.names.create_topic(topic.database, name)
    return found if isinstance(found, Topic) and found is not topic else None
