"""What a topic asks of its surroundings: the keyspace that it is in, retention, and what is kept with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from rlite_pubsub.keyspace.topic.cold_reader import ShelfOwner

if TYPE_CHECKING:
    from rlite_pubsub.keyspace.effects import Effects
    from rlite_pubsub.keyspace.news import News
    from rlite_pubsub.keyspace.records import Record
    from rlite_pubsub.keyspace.topic.topic import Topic
    from rlite_pubsub.storage.environment import Txn
    from rlite_pubsub.storage.topics.topic_settings import AppendRules
    from rlite_pubsub.storage.turn import Turn


class Directory(Protocol):
    """The keys of all parts of the keyspace, by their names."""

    def for_change(self, database: int, name: bytes) -> Record | None:
        """Return a key, to be changed."""

    def create_topic(self, database: int, name: bytes) -> Topic:
        """Create a topic under a name that is free."""


class Home(ShelfOwner, Protocol):
    """The part of the keyspace that a topic is in, as the topic and those who work on it need it."""

    @property
    def names(self) -> Directory: ...

    @property
    def news(self) -> News: ...

    @property
    def turn(self) -> Turn: ...

    @property
    def retention(self) -> Keeper | None: ...

    @property
    def effects(self) -> Effects | None: ...

    def writing(self) -> Txn:
        """Return the turn's transaction, which writes from now on. Raises StoreError."""

    def settle(self) -> Txn:
        """Bring what was changed into the open transaction, so that walks over the store see it."""

    def changed(self, record: Record) -> None:
        """Note that it has changed."""

    def appended(self, record: Record, count: int = 0) -> None:
        """Note that it has changed, and has `count` more entries: wake the clients that are blocked on it."""

    def keep(self, record: Record) -> None:
        """Note that it has changed, but not for WATCH."""

    def is_ours(self, name: bytes) -> bool:
        """Return whether keys of this name belong to this member of a sharded store."""


class Keeper(Protocol):
    """The part of retention that a topic talks to."""

    def schedule(self, txn: Txn, topic: Topic) -> None:
        """It is being written."""

    def count(self, topic: Topic, before: int) -> None:
        """It is being written, and had this many entries ever added when it was written last."""

    def append_rules(self, topic: Topic) -> AppendRules:
        """Return the rules for appended entries."""

    def copy(self, source: Topic, target: Topic) -> None:
        """Keep a new topic as another one is kept."""


class Attached(Protocol):
    """The part of a topic that others keep with it: its groups."""

    def settle(self, txn: Txn) -> None:
        """Write what has changed: the topic is being written."""
