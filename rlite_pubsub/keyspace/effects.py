"""What is done to keys, noted as it is done, for those who tell replicas of it (engine/replicas/outgoing.py).

It is noted where records are changed, not where commands are executed: so whatever changes a key is noted, a command,
retention, or a key's time that is over. Of a key it is known that it has another value, or expires at another time; of
a topic what exactly was done, for a topic is too large to be sent again. Law 11: `News.effects` is None as long as
nobody replicates.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from rlite_pubsub.keyspace.records import Record
    from rlite_pubsub.storage.topics.entry_ids import Id

VALUE: Final = 1
"""It has another value, or is gone."""
EXPIRY: Final = 2
"""It expires at another time, or never."""
WHOLE: Final = 4
"""It is a topic that is new, or as good as new."""
BEYOND: Final = 8
"""It has changed by more than the command that came to it says."""

KeyPlace: TypeAlias = tuple[int, bytes]
"""(database, name)"""
Telling: TypeAlias = tuple[int, list[bytes]]
"""What a replica is to execute, and in which database."""


class Expiry(tuple[int, list[bytes]]):
    """That a key is gone because its time is over: as good by itself as with what was done beside it."""

    __slots__ = ()



class GroupEffects:
    """What was done to a group of a topic."""

    __slots__ = ("consumers", "has_moved", "ids", "was_made", "was_removed")

    def __init__(self) -> None:
        self.was_made = self.was_removed = self.has_moved = False
        self.consumers: dict[bytes, bool] = {}
        """Those that were made or removed; True: removed at some time."""
        self.ids: list[bytes] = []
        """Of entries whose fates have changed, packed, one or several in each."""


class TopicEffects:
    """What was done to a topic."""

    __slots__ = ("appended", "deleted", "groups", "was_restated", "was_trimmed")

    def __init__(self) -> None:
        self.appended = 0
        self.deleted: list[Id] = []
        self.was_trimmed = self.was_restated = False
        self.groups: dict[bytes, GroupEffects] = {}

    def of_group(self, name: bytes) -> GroupEffects:
        """To be added to."""
        found = self.groups.get(name)
        if found is None:
            found = self.groups[name] = GroupEffects()
        return found


class Effects:
    """Of one turn, as far as they are not requests yet."""

    def __init__(self) -> None:
        self.keys: dict[KeyPlace, int] = {}
        self.topics: dict[KeyPlace, TopicEffects] = {}
        self.requests: list[Telling] = []
        """What is known in the words that replicas are told, in order."""

    def _note(self, key: KeyPlace, what: int) -> None:
        self.keys[key] = self.keys.get(key, 0) | what

    def changed(self, record: Record, what: int = VALUE) -> None:
        """It has another value, or another time to expire."""
        self._note((record.database, record.name), what)

    def removed(self, database: int, name: bytes) -> None:
        """There is no such key any more."""
        self.topics.pop((database, name), None)
        self.keys[database, name] = VALUE

    def expired(self, database: int, name: bytes) -> None:
        """There is none, because its time is over: what comes next may already rest on that."""
        self.removed(database, name)
        del self.keys[database, name]
        self.requests.append(Expiry((database, [b"DEL", name])))

    def flushed(self, database: int) -> None:
        """All keys of the database are gone."""
        for key in [key for key in self.keys if key[0] == database]:
            del self.keys[key]
            self.topics.pop(key, None)
        self.requests.append((database, [b"FLUSHDB"]))

    def swapped(self, first: int, second: int) -> None:
        """Two databases have changed places, and what is noted of their keys with them."""
        places = {first: second, second: first}
        self.keys = {(places.get(key[0], key[0]), key[1]): what for key, what in self.keys.items()}
        self.topics = {(places.get(key[0], key[0]), key[1]): what for key, what in self.topics.items()}
        self.requests.append((first, [b"SWAPDB", b"%d" % first, b"%d" % second]))

    # -- topics

    def of_topic(self, topic: Record) -> TopicEffects:
        """To be added to."""
        key = topic.database, topic.name
        self._note(key, VALUE)
        found = self.topics.get(key)
        if found is None:
            found = self.topics[key] = TopicEffects()
        return found

    def appended(self, topic: Record, count: int) -> None:
        """It has so many more entries."""
        self.of_topic(topic).appended += count

    def deleted(self, topic: Record, ids: Iterable[Id]) -> None:
        """It has these entries no more."""
        self.of_topic(topic).deleted += ids

    def trimmed(self, topic: Record) -> None:
        """It has lost some of its oldest entries."""
        self.of_topic(topic).was_trimmed = True

    def restated(self, topic: Record) -> None:
        """Something else is said of its past."""
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
        """These entries are pending with others than before, or with nobody."""
        self.of_topic(topic).of_group(name).ids.append(packed_ids)

    def forget(self) -> None:
        """Nothing of it was done."""
        self.keys.clear()
        self.topics.clear()
        self.requests.clear()
