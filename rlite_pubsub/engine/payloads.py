"""A key's value as bytes that redis-server 7.0.15 understands, and back: for DUMP, RESTORE and MIGRATE.

All types of this server are covered; any other type is refused as a bad format, like a broken payload.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple, TypeAlias

from rlite_pubsub.groups import group as groups
from rlite_pubsub.groups import progress
from rlite_pubsub.groups.group import Group
from rlite_pubsub.keyspace.hashes import Hash
from rlite_pubsub.keyspace.keyspace import Keyspace
from rlite_pubsub.keyspace.lists import List
from rlite_pubsub.keyspace.records import Record, Text
from rlite_pubsub.keyspace.sets import Set
from rlite_pubsub.keyspace.sorted_sets import Scored, SortedSet
from rlite_pubsub.keyspace.topic.append import encode_entry
from rlite_pubsub.keyspace.topic.nodes import words_of
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.protocol.rdb import collections, envelope, hashes, sorted_sets, stream
from rlite_pubsub.protocol.rdb.malformed import Malformed
from rlite_pubsub.protocol.rdb.stream import ConsumerImage, Entry, GroupImage, StreamImage
from rlite_pubsub.storage.groups import pending
from rlite_pubsub.storage.topics import entry_ids
from rlite_pubsub.storage.topics.entry_ids import Id

_STRING = 0


class _ListImage(list[bytes]):
    """The elements of a list."""


class _SetImage(list[bytes]):
    """The members of a set."""


class _HashImage(NamedTuple):
    """The fields and values of a hash, alternating."""

    words: list[bytes]
    is_packed: bool


class _SortedSetImage(NamedTuple):
    """The members of a sorted set, with their scores."""

    members: list[Scored]
    is_packed: bool


class _ExpiringImage(list[tuple[bytes, bytes, int]]):
    """The fields of a hash, with their values and expiry times."""


Image: TypeAlias = bytes | StreamImage | _ListImage | _SetImage | _HashImage | _ExpiringImage | _SortedSetImage


def payload_of(record: Record) -> bytes:
    """Return a payload that RESTORE takes."""
    if _has_expiring_fields(record):
        return envelope.seal(packed(record), envelope.LATEST_VERSION)
    return envelope.seal(packed(record))


def payload_for_replicas(record: Record) -> bytes:
    """Return a payload that RESTORE of redis-server 7.0 takes, which does not know expiring fields."""
    return envelope.seal(packed(record, with_times=False))


def _has_expiring_fields(record: Record) -> bool:
    return isinstance(record, Hash) and bool(record.expires_by_fields) and any(f.due_ms for f in record.fields())


def pieces(record: Record, *, with_times: bool = True) -> Iterator[bytes]:
    """Yield a value's type and contents as an RDB file has them; of a topic at most one node at a time. `with_times`:
    include the expiry of hash fields, which redis-server 7.0 does not read."""
    if isinstance(record, Topic):
        yield from stream.stream_pieces(lambda: image_of(record), record.node_limits)
    else:
        yield packed(record, with_times=with_times)


def packed(record: Record, *, with_times: bool = True) -> bytes:
    """Return a value's type and contents; `with_times` as for `pieces`."""
    if isinstance(record, Topic):
        return stream.pack_stream(image_of(record), record.node_limits)
    if with_times and _has_expiring_fields(record):
        assert isinstance(record, Hash)
        return hashes.pack_expiring([(field.name, field.value, field.due_ms) for field in record.fields()])
    if isinstance(record, List):
        return collections.pack_list(record.walk())
    if isinstance(record, Set):
        members = list(record.members())
        return collections.pack_intset(members) if record.is_of_integers else collections.pack_set(members)
    if isinstance(record, Hash):
        words = [word for pair in record.pairs() for word in pair]
        return hashes.pack_small(words) if record.is_small else hashes.pack_large(words)
    if isinstance(record, SortedSet):
        scored = list(record.walk())
        return sorted_sets.pack_small(scored) if record.is_small else sorted_sets.pack_large(scored)
    assert isinstance(record, Text)
    return bytes((_STRING,)) + envelope.string(record.value)


def read(payload: bytes) -> Image:
    """Return the value in a payload. Raises Malformed."""
    reader = envelope.PayloadReader(payload)
    return read_value(reader.byte(), reader)


def read_value(kind: int, reader: envelope.PayloadReader) -> Image:
    """Read a value of this type. Raises Malformed."""
    if kind == _STRING:
        return reader.string()
    if kind in stream.STREAMS:
        return stream.read_stream(kind, reader)
    if kind in collections.LISTS:
        return _ListImage(collections.read_list(kind, reader))
    if kind in collections.SETS:
        return _SetImage(collections.read_set(kind, reader))
    if kind in hashes.HASHES:
        return _HashImage(hashes.read_hash(kind, reader), kind in hashes.PACKED)
    if kind in sorted_sets.ZSETS:
        return _SortedSetImage(sorted_sets.read_sorted_set(kind, reader), kind in sorted_sets.PACKED)
    if kind in hashes.EXPIRING_HASHES:
        return _ExpiringImage(hashes.read_expiring(kind, reader))
    raise Malformed("a value of a type that is not kept here")


def build(keyspace: Keyspace, database: int, key: bytes, image: Image) -> Record:
    """Make a key, whose name is free, with this value."""
    if isinstance(image, StreamImage):
        return topic_of(keyspace, database, key, image)
    if isinstance(image, _ListImage):
        restored = keyspace.create(List, database, key)
        restored.push(image, left=False)
        return restored
    if isinstance(image, _SetImage):
        members = keyspace.create(Set, database, key)
        members.add(image)
        return members
    if isinstance(image, _HashImage):
        restored_hash = keyspace.create(Hash, database, key)
        if image.is_packed:
            restored_hash.take_packed(image.words)
        else:
            restored_hash.put(image.words)
        return restored_hash
    if isinstance(image, _SortedSetImage):
        restored_set = keyspace.create(SortedSet, database, key)
        if image.is_packed:
            restored_set.take_packed(image.members)
        else:
            restored_set.take(image.members, longest=max(len(member) for member, _ in image.members))
        return restored_set
    if isinstance(image, _ExpiringImage):
        expiring_hash = keyspace.create(Hash, database, key)
        expiring_hash.put([word for name, value, _ in image for word in (name, value)])
        for name, _, due_ms in image:
            if due_ms:
                expiring_hash.set_due(name, due_ms)
        return expiring_hash
    keyspace.put_string(database, key, image)
    text = keyspace.for_change(database, key)
    assert text is not None
    return text


# -- A topic as a dumped stream has it, and back. It holds what a Redis stream has: entries, counters, groups, consumers
# and their pending entries. What only topics have (retention, pauses, deferred and released entries, the settings of
# groups) is left out.

def image_of(topic: Topic) -> StreamImage:
    """Return what a dump of a topic holds. The entries are read lazily: change nothing meanwhile."""
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


def topic_of(keyspace: Keyspace, database: int, name: bytes, image: StreamImage) -> Topic:
    """Make a new topic from an image, under a name that is free."""
    topic = keyspace.create_topic(database, name)
    for entry_id, words in image.entries:
        topic.append(entry_id, encode_entry(entry_id, words))
    topic.restate(last_id=image.last_id, entries_added=image.entries_added, max_deleted_id=image.max_deleted_id)
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
        consumer.see(consumer_image.seen_ms)
        group.count_pending(consumer, len(consumer_image.pending))
        owners.update(dict.fromkeys(consumer_image.pending, consumer.number))
    rows = [((owners[entry_id], *fate), entry_ids.pack(entry_id)) for entry_id, fate in sorted(image.pending.items())]
    for fate, run in groupby(rows, itemgetter(0)):
        pending.add(topic.keyspace.writing(), group.of_group, fate, b"".join([packed for _, packed in run]))
