"""A queue, and all queues of a store."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from redis.exceptions import ResponseError

from rlite_pubsub.queues.errors import explained
from rlite_pubsub.queues.item import Start, start_of
from rlite_pubsub.queues.subscriber import Subscriber, SubscriberStatus
from rlite_pubsub.topics.entry import text
from rlite_pubsub.topics.subscription import Where, client_of


class Queue:
    """The queue of this name in a store's folder, behind a URL, or of a client; it is made if need be.

    With `create=False` it must be there: raises NoSuchQueue. Every other keyword is the client's.
    """

    def __init__(self, where: Where, name: str | bytes, *, create: bool = True, **options: Any) -> None:
        self._client = client_of(where, **options)
        self._owns_client = self._client is not where
        self.name = name
        try:
            if create:
                self._do("QUEUE.CREATE", name)
            else:
                self._do("QUEUE.LIST", name)
        except BaseException:
            self.close()
            raise

    def push(self, *values: str | bytes) -> list[str]:
        """Append values; their ids. All of them, or none."""
        return [text(entry_id) for entry_id in self._do("QUEUE.PUSH", self.name, *values)]

    def create_subscriber(self, name: str | bytes, start: Start = "beginning") -> Subscriber:
        """A subscriber; one that is there keeps its place."""
        self._do("QUEUE.SUBSCRIBER", self.name, name, start_of(start))
        return Subscriber(self._client, self.name, name)

    def subscriber(self, name: str | bytes) -> Subscriber:
        """The subscriber of this name, which must have been made before."""
        return Subscriber(self._client, self.name, name)

    def list(self) -> list[SubscriberStatus]:
        """What is known of its subscribers, by name."""
        found = []
        for row in self._do("QUEUE.LIST", self.name):
            pairs = row.items() if isinstance(row, dict) else zip(row[::2], row[1::2], strict=True)
            known = {text(name): value for name, value in pairs}
            asleep = bool(known["asleep"])
            found.append(SubscriberStatus(text(known["name"]), text(known["position"]), known["behind"], asleep))
        return found

    def __len__(self) -> int:
        """How many items its history has."""
        return int(self._do("XLEN", self.name))

    def delete(self) -> bool:
        """Remove it, with its history and its subscribers; False if it is gone already."""
        return bool(self._do("QUEUE.DELETE", self.name))

    def close(self) -> None:
        """Let go of the client, if it is the queue's own. Everything stays where it is."""
        if self._owns_client:
            self._client.close()

    def __enter__(self) -> Queue:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def _do(self, *words: Any) -> Any:
        try:
            return self._client.execute_command(*words)  # type: ignore[no-untyped-call]
        except ResponseError as refusal:
            raise explained(refusal) from None


def create_queue(where: Where, name: str | bytes, **options: Any) -> Queue:
    """The queue of this name, made if need be."""
    return Queue(where, name, **options)


def get_queue(where: Where, name: str | bytes, **options: Any) -> Queue:
    """The queue of this name. Raises NoSuchQueue."""
    return Queue(where, name, create=False, **options)


def list_queues(where: Where, **options: Any) -> list[str]:
    """The names of all queues."""
    client = client_of(where, **options)
    try:
        return [text(name) for name in client.execute_command("QUEUE.LIST")]  # type: ignore[no-untyped-call]
    finally:
        if client is not where:
            client.close()
