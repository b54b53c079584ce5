"""What is done to keys, noted as it is done, for the replication stream (engine/replicas/outgoing.py).

It is noted where records are changed, not where commands are executed: so every change of a key is noted, by a command,
by retention, or by expiry. For a key, the note says that its value or its expiry has changed; for a topic, what exactly
was done, for a topic is too large to be sent again. Law 11: `News.effects` is None as long as nobody replicates.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from rlite_pubsub.keyspace.records import Record
    from rlite_pubsub.storage.topics.entry_ids import Id

VALUE: Final = 1
"""It has another value, or is gone."""
EXPIRY: Final = 2
"""It expires at another time, or never."""
WHOLE: Final = 4
"""It is a new topic, or as good as new."""
BEYOND: Final = 8
"""It has changed by more than the command says."""
GONE: Final = 16
"""The key that was there is gone; there may be another one of its name."""

KeyPlace: TypeAlias = tuple[int, bytes]
"""(database, name)"""
Telling: TypeAlias = tuple[int, list[bytes]]
"""A request for replicas, and its database."""


class Expiry(tuple[int, list[bytes]]):
    """The expiry of a key, which may be sent alone as well as with other effects."""

    __slots__ = ()



class GroupEffects:
    """What was done to a group of a topic."""

    __slots__ = ("consumers", "has_moved", "ids", "was_made", "was_removed")

    def __init__(self) -> None:
        self.was_made = self.was_removed = self.has_moved = False
        self.consumers: dict[bytes, bool] = {}
        """The consumers that were made or removed; True: removed at some time."""
        self.ids: list[bytes] = []
        """The ids of entries whose pending state has changed, packed, one or several in each."""


class TopicEffects:
    """What was done to a topic."""

    __slots__ = ("appended", "deleted", "groups", "was_restated", "was_trimmed")

    def __init__(self) -> None:
        self.appended = 0
        self.deleted: list[Id] = []
        self.was_trimmed = self.was_restated = False
        self.groups: dict[bytes, GroupEffects] = {}

    @property
    def are_additions(self) -> bool:
        """Nothing but entries that it has more."""
        return bool(self.appended) and not (self.deleted or self.was_trimmed or self.was_restated or self.groups)

    def of_group(self, name: bytes) -> GroupEffects:
        """Return a group's effects, for more to be added."""
        found = self.groups.get(name)
        if found is None:
            found = self.groups[name] = GroupEffects()
        return found


class Effects:
    """The effects of one turn that are not requests yet."""

    def __init__(self) -> None:
        self.keys: dict[KeyPlace, int] = {}
        self.topics: dict[KeyPlace, TopicEffects] = {}
        self.requests: list[Telling] = []
        """What is known in the words that replicas are told, in order."""
        self.units: list[int] = []
        """Where in `requests` something begins that stands by itself: a command, or a transaction."""

    def _note(self, key: KeyPlace, what: int) -> None:
        self.keys[key] = self.keys.get(key, 0) | what

    def changed(self, record: Record, what: int = VALUE) -> None:
        """Note that a record has another value, or another expiry."""
        self._note((record.database, record.name), what)

    def removed(self, database: int, name: bytes) -> None:
        """Note that a key was removed."""
        self.topics.pop((database, name), None)
        self.keys[database, name] = VALUE | GONE

    def expired(self, database: int, name: bytes) -> None:
        """Note that a key has expired: what comes next may already rely on that."""
        self.removed(database, name)
        del self.keys[database, name]
        self.requests.append(Expiry((database, [b"DEL", name])))

    def flushed(self, database: int) -> None:
        """Note that all keys of the database are gone."""
        for key in [key for key in self.keys if key[0] == database]:
            del self.keys[key]
            self.topics.pop(key, None)
        self.requests.append((database, [b"FLUSHDB"]))

    def swapped(self, first: int, second: int) -> None:
        """Swap the notes of two databases that have been swapped."""
        places = {first: second, second: first}
        self.keys = {(places.get(key[0], key[0]), key[1]): what for key, what in self.keys.items()}
        self.topics = {(places.get(key[0], key[0]), key[1]): what for key, what in self.topics.items()}
        self.requests.append((first, [b"SWAPDB", b"%d" % first, b"%d" % second]))

    def begin_unit(self) -> None:
        """What comes now stands by itself."""
        if not self.units or self.units[-1] != len(self.requests):
            self.units.append(len(self.requests))

    def units_of_requests(self) -> Iterator[list[Telling]]:
        """Yield the requests, those together that a replica is to execute as one."""
        begins = 0
        for ends in (*self.units, len(self.requests)):
            if ends > begins:
                yield self.requests[begins:ends]
            begins = ends

    # -- topics

    def of_topic(self, topic: Record) -> TopicEffects:
        """Return a topic's effects, for more to be added."""
        key = topic.database, topic.name
        self._note(key, VALUE)
        found = self.topics.get(key)
        if found is None:
            found = self.topics[key] = TopicEffects()
        return found

    def appended(self, topic: Record, count: int) -> None:
        """Note that this many entries were appended."""
        self.of_topic(topic).appended += count

    def deleted(self, topic: Record, ids: Iterable[Id]) -> None:
        """Note that these entries were deleted."""
        self.of_topic(topic).deleted += ids

    def trimmed(self, topic: Record) -> None:
        """Note that it has lost some of its oldest entries."""
        self.of_topic(topic).was_trimmed = True

    def restated(self, topic: Record) -> None:
        """Note that something about its past was set again."""
        self.of_topic(topic).was_restated = True

    # -- its groups

    def group_made(self, topic: Record, name: bytes) -> None:
        self.of_topic(topic).of_group(name).was_made = True

    def group_removed(self, topic: Record, name: bytes) -> None:
        group = self.of_topic(topic).of_group(name)
        if group.was_made:
            self._note((topic.database, topic.name), WHOLE)
        group.was_removed = True

    def group_moved(self, topic: Record, name: bytes) -> None:
        self.of_topic(topic).of_group(name).has_moved = True

    def consumer_made(self, topic: Record, name: bytes, consumer: bytes) -> None:
        self.of_topic(topic).of_group(name).consumers.setdefault(consumer, False)

    def consumer_removed(self, topic: Record, name: bytes, consumer: bytes) -> None:
        self.of_topic(topic).of_group(name).consumers[consumer] = True

    def pended(self, topic: Record, name: bytes, packed_ids: bytes) -> None:
        """Note that the owners of these pending entries have changed, or that they are no longer pending."""
        self.of_topic(topic).of_group(name).ids.append(packed_ids)

    def forget(self) -> None:
        """Forget everything: nothing of it was done."""
        self.keys.clear()
        self.topics.clear()
        self.written()

    def written(self) -> None:
        """The requests are where replicas are told of them."""
        self.requests.clear()
        self.units.clear()
