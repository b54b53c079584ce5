"""A group of a topic: how far it has read, its consumers, and how much is pending with them.

It is kept with its topic (`Topic.attach`), once somebody has asked for it. Counters are kept in the records, so that
nothing has to be walked to know them. What a turn changes is written once, by `settle`, with the topic's own record;
pending entries are written where they change.
Code that changes a group has its topic from `Keyspace.for_change`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlite_pubsub.groups import progress
from rlite_pubsub.groups.consumer import Consumer
from rlite_pubsub.keyspace.effects import WHOLE
from rlite_pubsub.storage.groups import consumers, groups, in_flight, pending, released
from rlite_pubsub.storage.groups.consumers import ConsumerRecord
from rlite_pubsub.storage.groups.group_settings import GroupSettings
from rlite_pubsub.storage.groups.groups import GroupRecord
from rlite_pubsub.storage.topics import deadlines, entry_ids
from rlite_pubsub.storage.topics.deadlines import GroupRow
from rlite_pubsub.storage.topics.entry_ids import Id

if TYPE_CHECKING:
    from rlite_pubsub.keyspace.topic.topic import Topic
    from rlite_pubsub.storage.environment import Txn


class Group:
    """A consumer group."""

    __slots__ = (
        "_by_name",
        "_by_number",
        "_changed_consumers",
        "_is_complete",
        "_is_dirty",
        "consumer_count",
        "_due_ms",
        "entries_read",
        "last_consumer",
        "last_id",
        "name",
        "number",
        "of_group",
        "_oldest_ms",
        "pending_count",
        "settings",
        "topic",
    )

    def __init__(self, topic: Topic, record: GroupRecord) -> None:
        self.topic = topic
        self.name = record.name
        self.number = record.number
        self.last_id: Id = record.last_id  # the last that was delivered
        self.entries_read: int | None = record.entries_read  # None: unknown
        self.pending_count = record.pending
        self.consumer_count = record.consumers
        self.last_consumer = record.last_consumer  # the highest number that a consumer was given
        self.settings: GroupSettings = record.settings
        self.of_group = pending.prefix(topic.number, record.number)  # of its pending entries' keys
        self._oldest_ms: int | None = None  # no pending entry was delivered earlier; None: unknown
        self._due_ms: int | None = None  # when something of it is to be done (deadlines.py); None: look it up
        self._by_name: dict[bytes, Consumer] = {}
        self._by_number: dict[int, Consumer] = {}
        self._is_complete = not record.consumers  # all consumers are loaded
        self._changed_consumers: dict[Consumer, None] = {}
        self._is_dirty = False

    # -- in the store

    def settle(self, txn: Txn) -> None:
        """Write what was changed."""
        if not self._is_dirty:
            return
        self._is_dirty = False
        groups.put(txn, self.topic.number, self.record)
        changed, self._changed_consumers = self._changed_consumers, {}
        for consumer in changed:
            consumers.put(txn, self.topic.number, self.number, consumer.record)

    @property
    def record(self) -> GroupRecord:
        """The record to store."""
        return GroupRecord(
            self.name,
            self.number,
            self.last_id,
            self.entries_read,
            self.pending_count,
            self.consumer_count,
            self.last_consumer,
            self.settings,
        )

    def changed(self) -> None:
        """Note that it was changed, and must be written. Those who watch the key do not mind, as in Redis."""
        self._is_dirty = True
        self.topic.keyspace.keep(self.topic)

    def changed_consumer(self, consumer: Consumer) -> None:
        """One of its consumers was changed."""
        self._changed_consumers[consumer] = None
        self.changed()

    # -- consumers

    def consumer(self, name: bytes) -> Consumer | None:
        """Return the consumer of this name."""
        consumer = self._by_name.get(name)
        if consumer is None and not self._is_complete:
            txn = self.topic.keyspace.reading()
            number = consumers.number_of(txn, self.topic.number, self.number, name)
            return None if number is None else self.numbered(number)
        return consumer

    def numbered(self, number: int) -> Consumer:
        """Return the consumer that pending entries name."""
        try:
            return self._by_number[number]
        except KeyError:
            record = consumers.get(self.topic.keyspace.reading(), self.topic.number, self.number, number)
            assert record is not None
            return self._known(Consumer(record))

    def _known(self, consumer: Consumer) -> Consumer:
        self._by_name[consumer.name] = consumer
        self._by_number[consumer.number] = consumer
        return consumer

    def consumers(self) -> list[Consumer]:
        """Return all consumers, by name."""
        if not self._is_complete:
            for record in consumers.of_group(self.topic.keyspace.reading(), self.topic.number, self.number):
                if record.number not in self._by_number:
                    self._known(Consumer(record))
            self._is_complete = True
        return [self._by_name[name] for name in sorted(self._by_name)]

    def create_consumer(self, name: bytes) -> Consumer:
        """Create a consumer; the name is free."""
        keyspace = self.topic.keyspace
        self.last_consumer += 1
        self.consumer_count += 1
        consumer = Consumer(ConsumerRecord(self.last_consumer, name, keyspace.clock_ms(), 0))
        consumers.add(keyspace.writing(), self.topic.number, self.number, consumer.record)
        self._known(consumer)
        self.changed()
        effects = keyspace.effects
        if effects is not None:
            effects.consumer_made(self.topic, self.name, name)
        return consumer

    def delete_consumer(self, consumer: Consumer) -> None:
        """Remove it, and what is pending with it."""
        txn = self.topic.keyspace.writing()
        left = consumer.pending_count
        if left:
            for run in list(pending.walk(txn, self.of_group)):
                if run.fate[0] == consumer.number:
                    txn.delete(run.key)
                    left -= len(run.ids) >> 4
                    if not left:
                        break
        self.pending_count -= consumer.pending_count
        self.consumer_count -= 1
        consumers.delete(txn, self.topic.number, self.number, consumer.number, consumer.name)
        del self._by_name[consumer.name]
        del self._by_number[consumer.number]
        self._changed_consumers.pop(consumer, None)
        self.changed()
        effects = self.topic.keyspace.effects
        if effects is not None:
            effects.consumer_removed(self.topic, self.name, consumer.name)

    # -- what is pending

    def count_pending(self, consumer: Consumer, more: int) -> None:
        """Count this many more entries pending with this consumer, or fewer."""
        self.pending_count += more
        consumer.count_pending(more)
        self.changed_consumer(consumer)

    def note_delivery(self, at_ms: int) -> None:
        """Note that something pending was last delivered at this time."""
        if self._oldest_ms is not None and at_ms < self._oldest_ms:
            self._oldest_ms = at_ms

    def oldest_ms(self, *, anew: bool = False) -> int:
        """Return the earliest last delivery of a pending entry; there must be one. It may be too early, unless it looks
        `again`."""
        if self._oldest_ms is None or anew:
            txn = self.topic.keyspace.reading()
            self._oldest_ms = min(run.fate[1] for run in pending.walk(txn, self.of_group))
        return self._oldest_ms

    def has_idle(self, since_ms: int) -> bool:
        """Return whether something is pending that was not delivered after this time."""
        if not self.pending_count or (self._oldest_ms is not None and self._oldest_ms > since_ms):
            return False
        return self.oldest_ms(anew=True) <= since_ms

    # -- when something of it is to be done

    def due_ms(self) -> int:
        """Return the earliest time."""
        if self._due_ms is None:
            row = deadlines.group_row(self.topic.keyspace.reading(), self.topic.number, self.number)
            self._due_ms = deadlines.NEVER if row is None else row.due_ms
        return self._due_ms

    def set_due(self, at_ms: int) -> None:
        """Set its due time."""
        topic, news = self.topic, self.topic.keyspace.news
        row = GroupRow(at_ms, self.name)
        deadlines.put_group(topic.keyspace.writing(), topic.number, topic.place, self.number, row)
        self._due_ms = at_ms
        if at_ms != deadlines.NEVER:
            news.on_deadline(at_ms)
            news.touched[topic.database, topic.name] = None  # who waits elsewhere may be the one to do it

    # -- settings

    def change(self, **settings: object) -> None:
        """Other settings, or other counts of what has become of its entries: fields of GroupSettings."""
        self.settings = self.settings._replace(**settings)  # type: ignore[arg-type]
        self.changed()

    def start_over(self) -> None:
        """Start over at the end of an emptied topic: nothing is in flight or waits to be delivered again."""
        topic = self.topic
        txn = topic.keyspace.writing()
        pending.delete_all(txn, topic.number, self.number)
        released.delete_all(txn, topic.number, self.number)
        in_flight.delete_all(txn, topic.number, self.number)
        deadlines.remove_group(txn, topic.number, self.number)
        self._oldest_ms = self._due_ms = None
        for consumer in self.consumers() if self.pending_count else ():
            if consumer.pending_count:
                self.count_pending(consumer, -consumer.pending_count)
        self.last_id = max(self.last_id, topic.last_id)
        self.entries_read = progress.kept(topic.entries_added)
        self.change(released=0)
        effects = topic.keyspace.effects
        if effects is not None:
            effects.changed(topic, WHOLE)

    @property
    def is_stopped(self) -> bool:
        """True if it must not be given anything new."""
        return self.settings.is_paused or self.settings.is_asleep or self.topic.is_paused

    # -- how far it is

    def move(self, last_id: Id, entries_read: int | None) -> None:
        """Go on after this id; None: it is unknown how many entries are read by then."""
        self.last_id = last_id
        self.entries_read = entries_read
        self._moved()

    def _moved(self) -> None:
        self.changed()
        effects = self.topic.keyspace.effects
        if effects is not None:
            effects.group_moved(self.topic, self.name)

    def note_pending(self, packed_ids: bytes) -> None:
        """The fates of these entries have changed."""
        effects = self.topic.keyspace.effects
        if effects is not None:
            effects.pended(self.topic, self.name, packed_ids)

    def advance(self, packed_ids: bytes) -> None:
        """Deliver these ids, the next ones of the topic."""
        self.entries_read = progress.kept(progress.read_on(self.topic, self.entries_read, packed_ids))
        self.last_id = entry_ids.unpack(packed_ids, len(packed_ids) - entry_ids.BYTES)
        self._moved()

    @property
    def lag(self) -> int | None:
        """How many entries it has not been given yet; None if that cannot be known."""
        return progress.lag(self.topic, self.last_id, self.entries_read)


class KnownGroups:
    """Those of a topic's groups that somebody has asked for."""

    __slots__ = ("by_name",)

    def __init__(self) -> None:
        self.by_name: dict[bytes, Group] = {}

    def settle(self, txn: Txn) -> None:
        """Write what was changed."""
        for group in self.by_name.values():
            group.settle(txn)


def _known(topic: Topic) -> dict[bytes, Group]:
    known = topic.attached
    if known is None:
        known = KnownGroups()
        topic.attach(known)
    assert isinstance(known, KnownGroups)
    return known.by_name


def group_of(topic: Topic, name: bytes) -> Group | None:
    """Return the topic's group of this name."""
    if not topic.group_count:
        return None
    known = _known(topic)
    group = known.get(name)
    if group is None:
        record = groups.get(topic.keyspace.reading(), topic.number, name)
        if record is not None:
            group = known[name] = Group(topic, record)
    return group


def create(topic: Topic, name: bytes, last_id: Id, entries_read: int | None) -> Group:
    """Create a group; the name is free."""
    record = GroupRecord(name, topic.count_group(), last_id, progress.kept(entries_read), 0, 0, 0, GroupSettings())
    group = _known(topic)[name] = Group(topic, record)
    groups.put(topic.keyspace.writing(), topic.number, record)
    group.changed()
    effects = topic.keyspace.effects
    if effects is not None:
        effects.group_made(topic, name)
    return group


def destroy(group: Group) -> None:
    """Remove a group with its consumers and all that is pending. Who is blocked on it should look."""
    topic = group.topic
    txn = topic.keyspace.writing()
    groups.delete(txn, topic.number, group.name)
    consumers.delete_all(txn, topic.number, group.number)
    pending.delete_all(txn, topic.number, group.number)
    released.delete_all(txn, topic.number, group.number)
    in_flight.delete_all(txn, topic.number, group.number)
    deadlines.remove_group(txn, topic.number, group.number)
    _known(topic).pop(group.name, None)
    topic.discount_group()
    topic.wake()
    effects = topic.keyspace.effects
    if effects is not None:
        effects.group_removed(topic, group.name)


def all_groups(topic: Topic) -> list[Group]:
    """Every group of the topic, by name."""
    if not topic.group_count:
        return []
    stored = sorted(groups.of_topic(topic.keyspace.reading(), topic.number))
    found = [group_of(topic, record.name) for record in stored]
    return [group for group in found if group is not None]
