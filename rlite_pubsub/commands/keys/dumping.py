"""DUMP and RESTORE: a key's value as bytes that redis-server 7.0.15 understands, and back.

Every type that is kept here; any other one is as bad a format as a broken payload. A payload is read as a whole before
anything is changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from rlite_pubsub.engine.arguments.integers import LONG_MAX, integer
from rlite_pubsub.engine.arguments.lookup import find, for_change, keyspace_of
from rlite_pubsub.engine.eviction.usage import MOST, Often
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command
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
from rlite_pubsub.protocol.errors import SYNTAX, CommandError
from rlite_pubsub.protocol.rdb import collections, envelope, hashes, sorted_sets, stream
from rlite_pubsub.protocol.rdb.malformed import Malformed
from rlite_pubsub.protocol.rdb.stream import ConsumerImage, Entry, GroupImage, StreamImage
from rlite_pubsub.protocol.replies import OK, Reply
from rlite_pubsub.storage.groups import pending
from rlite_pubsub.storage.topics import entry_ids
from rlite_pubsub.storage.topics.entry_ids import Id

# -- A topic as a dumped stream has it, and the other way round. It has what Redis knows of a stream: entries, counters,
# groups, consumers and what is pending with them. What only topics have (retention, pauses, what is deferred or
# released, the settings of groups) is not in it.

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


_BUSY = b"BUSYKEY Target key name already exists."
_BAD_TTL = b"ERR Invalid TTL value, must be >= 0"
_BAD_IDLE_TIME = b"ERR Invalid IDLETIME value, must be >= 0"
_BAD_FREQUENCY = b"ERR Invalid FREQ value, must be >= 0 and <= 255"
_BAD_SEAL = b"ERR DUMP payload version or checksum are wrong"
_BAD_FORMAT = b"ERR Bad data format"
_STRING = 0
_IDLE_CLOCK_SECONDS = 1 << 24
"""Redis has a clock of 24 bits for when a key was used."""


class _ListImage(list[bytes]):
    """The elements of a list."""


class _SetImage(list[bytes]):
    """The members of a set."""


class _HashImage(NamedTuple):
    """The fields and values of a hash, by turns."""

    words: list[bytes]
    is_packed: bool


class _SortedSetImage(NamedTuple):
    """The members of a sorted set, with their scores."""

    members: list[Scored]
    is_packed: bool


class _ExpiringImage(list[tuple[bytes, bytes, int]]):
    """The fields of a hash, their values and when they expire."""


_Image = bytes | StreamImage | _ListImage | _SetImage | _HashImage | _ExpiringImage | _SortedSetImage


@command(
    "dump",
    arity=2,
    flags="readonly",
    group="generic",
    since="2.6.0",
    categories="keyspace",
    summary="Return a serialized version of the value stored at the specified key.",
    complexity="O(1) to access the key and additional O(N*M) to serialize it, where N is the number of Redis objects "
    "composing the value and M their average size. For small string values the time complexity is thus O(1)+O(1*M) "
    "where M is small, so simply O(1).",
    arguments=(Arg("key", "key", key_spec=0),),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
    tips=("nondeterministic_output",),
)
def dump(session: CommandSession, args: list[bytes]) -> Reply:
    record = find(session, args[1])
    return None if record is None else payload_of(record)


def payload_of(record: Record) -> bytes:
    """What RESTORE takes."""
    if isinstance(record, Hash) and record.expires_by_fields:
        fields = [(field.name, field.value, field.due_ms) for field in record.fields()]
        if any(due_ms for _, _, due_ms in fields):
            return envelope.seal(hashes.pack_expiring(fields), envelope.LATEST_VERSION)
    return envelope.seal(_packed(record))


def _packed(record: Record) -> bytes:
    """Its type and its value."""
    if isinstance(record, Topic):
        return stream.pack_stream(image_of(record), record.node_limits)
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


@command(
    "restore",
    arity=-4,
    flags="write denyoom",
    group="generic",
    since="2.6.0",
    categories="keyspace dangerous",
    summary="Create a key using the provided serialized value, previously obtained using DUMP.",
    complexity="O(1) to create the new key and additional O(N*M) to reconstruct the serialized value, where N is the "
    "number of Redis objects composing the value and M their average size. For small string values the time complexity "
    "is thus O(1)+O(1*M) where M is small, so simply O(1). However for sorted set values the complexity is "
    "O(N*M*log(N)) because inserting values into sorted sets is O(log(N)).",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("ttl", "integer"),
        Arg("serialized-value"),
        Arg("replace", "pure-token", token="REPLACE", optional=True, since="3.0.0"),
        Arg("absttl", "pure-token", token="ABSTTL", optional=True, since="5.0.0"),
        Arg("seconds", "integer", token="IDLETIME", optional=True, since="5.0.0"),
        Arg("frequency", "integer", token="FREQ", optional=True, since="5.0.0"),
    ),
    key_specs=(KeySpec(("OW", "UPDATE"), ("index", 1), ("range", 0, 1, 0)),),
    history=(
        ("3.0.0", "Added the `REPLACE` modifier."),
        ("5.0.0", "Added the `ABSTTL` modifier."),
        ("5.0.0", "Added the `IDLETIME` and `FREQ` options."),
    ),
)
def restore(session: CommandSession, args: list[bytes]) -> Reply:
    key = args[1]
    words, idle_s, frequency = _options(args)
    existing = for_change(session, key)
    if existing is not None and b"replace" not in words:
        raise CommandError(_BUSY)
    ttl_ms = integer(args[2])
    if ttl_ms < 0:
        raise CommandError(_BAD_TTL)
    if not envelope.is_sealed(args[3]):
        raise CommandError(_BAD_SEAL)
    try:
        image = _read(args[3])
    except Malformed:
        raise CommandError(_BAD_FORMAT) from None

    keyspace, notifications = keyspace_of(session), session.engine.notifications
    if existing is not None:
        keyspace.remove(existing)
    now_ms = keyspace.clock_ms()
    expires_ms = ttl_ms if not ttl_ms or b"absttl" in words else ttl_ms + now_ms
    if expires_ms and not now_ms < expires_ms <= LONG_MAX:
        if existing is not None:
            notifications.tell("g", b"del", session.db, key)
        return OK
    record = _build(keyspace, session.db, key, image)
    if expires_ms:
        keyspace.set_expiry(record, expires_ms)
    usage, now = session.engine.memory_limit.usage, session.engine.clock()
    if isinstance(usage, Often):
        if frequency is not None:
            usage.set(session.db, key, frequency, now)
    elif idle_s is not None:
        record.used_at = now - idle_s % _IDLE_CLOCK_SECONDS
    notifications.tell("g", b"restore", session.db, key)
    return OK


def _options(args: list[bytes]) -> tuple[set[bytes], int | None, int | None]:
    """The words that were said, IDLETIME and FREQ."""
    words: set[bytes] = set()
    idle_s = frequency = None
    rest = iter(args[4:])
    for word in rest:
        option = word.lower()
        words.add(option)
        if option in (b"replace", b"absttl"):
            continue
        value = next(rest, None)
        if value is None or option not in (b"idletime", b"freq") or {b"idletime", b"freq"} <= words:
            raise CommandError(SYNTAX)
        number = integer(value)
        if option == b"idletime":
            if number < 0:
                raise CommandError(_BAD_IDLE_TIME)
            idle_s = number
        elif not 0 <= number <= MOST:
            raise CommandError(_BAD_FREQUENCY)
        else:
            frequency = number
    return words, idle_s, frequency


def _read(payload: bytes) -> _Image:
    """What a payload holds. Raises Malformed."""
    reader = envelope.PayloadReader(payload)
    kind = reader.byte()
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


def _build(keyspace: Keyspace, database: int, key: bytes, image: _Image) -> Record:
    """The key, whose name is free, with this value."""
    if isinstance(image, StreamImage):
        return build(keyspace, database, key, image)
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
