"""A topic as a dumped stream has it, and the other way round.

It has what Redis knows of a stream: entries, counters, groups, consumers and what is pending with them. What only
topics have (retention, pauses, what is deferred or released, the settings of groups) is not in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter

from rlite_pubsub.groups import group as groups
from rlite_pubsub.groups import progress
from rlite_pubsub.groups.group import Group
from rlite_pubsub.keyspace.keyspace import Keyspace
from rlite_pubsub.keyspace.topic.nodes import words_of
from rlite_pubsub.keyspace.topic.topic import Topic, encode_entry
from rlite_pubsub.protocol.rdb.stream import ConsumerImage, Entry, GroupImage, StreamImage
from rlite_pubsub.storage.groups import pending
from rlite_pubsub.storage.topics import entry_ids
from rlite_pubsub.storage.topics.entry_ids import Id


def image_of(topic: Topic) -> StreamImage:
    """What a dump holds. The entries are read as they are taken: change nothing meanwhile."""
    return StreamImage(
        _entries(topic),
        topic.length,
        topic.last_id,
        topic.first_id,
        topic.max_deleted_id,
        topic.entries_added,
        [_group_image(group) for group in groups.all_groups(topic)],
    )


def _entries(topic: Topic) -> Iterator[Entry]:
    for part in topic.between():
        chunk = part.chunk
        ids = map(chunk.id, range(part.start, part.stop))
        for packed, entry in zip(ids, chunk.entries(part.start, part.stop), strict=True):
            yield entry_ids.unpack(packed), words_of(entry)


def _group_image(group: Group) -> GroupImage:
    fates: dict[Id, tuple[int, int]] = {}
    owned: dict[int, list[Id]] = {}
    for run in pending.walk(group.topic.keyspace.reading(), group.of_group):
        owner, delivered_ms, deliveries = run.fate
        ids = entry_ids.unpack_all(run.ids)
        fates.update(dict.fromkeys(ids, (delivered_ms, deliveries)))
        owned.setdefault(owner, []).extend(ids)
    consumers = [
        ConsumerImage(consumer.name, consumer.seen_ms, owned.get(consumer.number, []))
        for consumer in group.consumers()
    ]
    return GroupImage(group.name, group.last_id, group.entries_read, fates, consumers)


def build(keyspace: Keyspace, database: int, name: bytes, image: StreamImage) -> Topic:
    """A new topic out of an image, under a name that is free."""
    topic = keyspace.create_topic(database, name)
    for entry_id, words in image.entries:
        topic.append(entry_id, encode_entry(entry_id, words))
    topic.last_id, topic.max_deleted_id = image.last_id, image.max_deleted_id
    topic.entries_added = image.entries_added
    for group_image in image.groups:
        _build_group(topic, group_image, image.is_counted)
    topic.signal()
    return topic


def _build_group(topic: Topic, image: GroupImage, is_counted: bool) -> None:
    read = image.entries_read if is_counted else progress.count_of(topic, image.last_id)
    group = groups.create(topic, image.name, image.last_id, read)
    owners: dict[Id, int] = {}
    for consumer_image in image.consumers:
        consumer = group.create_consumer(consumer_image.name)
        consumer.seen_ms = consumer_image.seen_ms
        consumer.pending_count = len(consumer_image.pending)
        group.pending_count += consumer.pending_count
        group.changed_consumer(consumer)
        owners.update(dict.fromkeys(consumer_image.pending, consumer.number))
    rows = [((owners[entry_id], *fate), entry_ids.pack(entry_id)) for entry_id, fate in sorted(image.pending.items())]
    for fate, run in groupby(rows, itemgetter(0)):
        pending.add(topic.keyspace.writing(), group.of_group, fate, b"".join([packed for _, packed in run]))
