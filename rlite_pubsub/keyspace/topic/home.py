"""What a topic asks of those around it: of the keyspace that it is in, of retention, and of what is kept with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from rlite_pubsub.keyspace.topic.cold_reader import ShelfOwner

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlite_pubsub.keyspace.records import Record
    from rlite_pubsub.keyspace.topic.topic import Topic
    from rlite_pubsub.storage.environment import Txn
    from rlite_pubsub.storage.turn import Turn


class Home(ShelfOwner, Protocol):
    """What a topic, and those who work on it, ask of the keyspace that it belongs to."""

    ready: dict[tuple[int, bytes | None], None]
    """Keys that whoever is blocked should look at."""
    touched: dict[tuple[int, bytes | None], None]
    """Keys that other processes are to be told of at the turn's end."""

    @property
    def turn(self) -> Turn: ...

    @property
    def retention(self) -> Keeper | None: ...

    def writing(self) -> Txn:
        """The turn's transaction, which writes from now on. Raises StoreError."""

    def settle(self) -> Txn:
        """Bring what was changed into the open transaction, so that walks over the store see it."""

    def changed(self, record: Record) -> None:
        """It was changed."""

    def appended(self, record: Record) -> None:
        """It was changed, and whoever is blocked on it should look."""

    def show(self, keys: Iterable[tuple[int, bytes | None]]) -> None:
        """Whoever is blocked on one of these keys in this process should look."""

    def keep(self, record: Record) -> None:
        """It was changed, but not in the eyes of those who watch it."""

    def signal(self, database: int, name: bytes | None) -> None:
        """Whoever is blocked on this key should look."""

    def for_change(self, database: int, name: bytes) -> Record | None:
        """A key, to be changed."""

    def create_topic(self, database: int, name: bytes) -> Topic:
        """A new one under a name that is free."""

    def on_appended(self, database: int, name: bytes) -> None:
        """A topic has an entry that no command put there now."""

    def on_deadline(self, at_ms: int) -> None:
        """Something is to be done at this time."""


class Keeper(Protocol):
    """Retention, as far as a topic tells it something."""

    def schedule(self, txn: Txn, topic: Topic) -> None:
        """It is being written."""

    def copy(self, source: Topic, target: Topic) -> None:
        """A new topic is to be kept as another one."""


class Attached(Protocol):
    """What others keep with a topic: its groups."""

    def settle(self, txn: Txn) -> None:
        """The topic is being written: write what has changed."""
