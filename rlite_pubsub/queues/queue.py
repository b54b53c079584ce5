"""A queue, and all queues of a store."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from redis.exceptions import ResponseError

from rlite_pubsub.queues.codec import CodecName, codec_of
from rlite_pubsub.queues.errors import NoSuchSubscriber, explained
from rlite_pubsub.queues.item import Start, start_of
from rlite_pubsub.queues.requests import QueueNames, SubscriberStatus, gathered, lease_words, names_in, statuses_of
from rlite_pubsub.queues.subscriber import Subscriber
from rlite_pubsub.topics.entry import text
from rlite_pubsub.topics.route import MemberRoute, Where, brief_route


class Queue:
    """The queue of this name in a store's folder, behind a URL, or of a client; it is made if necessary.

    With `create=False` it must be there: raises NoSuchQueue. `codec` says what its values are: `bytes` (str is written
    as UTF-8), `text`, `json`, `msgpack`, or a Codec. Every other keyword is the client's.
    """

    def __init__(
        self, where: Where, name: str | bytes, *, create: bool = True, codec: CodecName = "bytes", **options: Any
    ) -> None:
        self.codec = codec_of(codec)
        self._route = MemberRoute(where, **options)
        self.name = name
        try:
            if create:
                self._do("QUEUE.CREATE", name)
            else:
                self._do("QUEUE.LIST", name)
        except BaseException:
            self.close()
            raise

    def push(self, *values: Any) -> list[str]:
        """Append values and return their ids. All are appended, or none."""
        packed = [self.codec.encode(value) for value in values]
        if not packed:
            return []
        return [text(entry_id) for entry_id in self._do("QUEUE.PUSH", self.name, *packed)]

    def create_subscriber(
        self,
        name: str | bytes,
        start: Start = "beginning",
        *,
        lease: float | None = None,
        max_deliveries: int | None = None,
        dead_letters: str | bytes | None = None,
    ) -> Subscriber:
        """Create a subscriber. One that exists keeps its position.

        `lease`: how many seconds an item that is popped with `ack=True` stays with who has popped it (30, unless said).
        `max_deliveries`, `dead_letters`: what is popped so often without an acknowledgement goes to the topic of that
        name, or is dropped without one. What is not given stays as it is; TOPIC.GROUP shows and changes it."""
        settings = lease_words(lease, max_deliveries, dead_letters)
        self._do("QUEUE.SUBSCRIBER", self.name, name, start_of(start))
        if settings:
            self._do("TOPIC.GROUP", self.name, name, *settings)
        return self.subscriber(name)

    def subscriber(self, name: str | bytes) -> Subscriber:
        """The subscriber of this name, which must exist."""
        return Subscriber(self._route, self.name, name, self.codec)

    def list(self) -> list[SubscriberStatus]:
        """The status of its subscribers, by name."""
        return statuses_of(self._do("QUEUE.LIST", self.name))

    def __len__(self) -> int:
        """Return how many items its history contains."""
        return int(self._do("QUEUE.LEN", self.name))

    def delete(self) -> bool:
        """Remove it, with its history and its subscribers; False if it is gone already."""
        return bool(self._do("QUEUE.DELETE", self.name))

    def close(self) -> None:
        """Let go of the client, if it is the queue's own. Everything stays where it is."""
        self._route.close()

    def __enter__(self) -> Queue:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def _do(self, *words: Any) -> Any:
        try:
            return self._route.ask(*words)
        except ResponseError as refusal:
            raise explained(refusal) from None


def create_queue(where: Where, name: str | bytes, **options: Any) -> Queue:
    """The queue of this name, created if necessary."""
    return Queue(where, name, **options)


def get_queue(where: Where, name: str | bytes | None = None, *, subscriber: str | None = None, **options: Any) -> Queue:
    """The queue of this name, or the one that the subscriber with this id reads. Raises NoSuchQueue, NoSuchSubscriber,
    and ValueError for what is no id."""
    if (name is None) == (subscriber is None):
        raise TypeError("get_queue takes a queue's name, or subscriber= with an id")
    if subscriber is None:
        assert name is not None
        return Queue(where, name, create=False, **options)
    of_queue, who = names_in(subscriber)
    queue = Queue(where, of_queue, create=False, **options)
    if text(who) not in {status.name for status in queue.list()}:
        queue.close()
        raise NoSuchSubscriber(f"No such subscriber {subscriber!r}")
    return queue


def get_subscriber(where: Where, id: str, **options: Any) -> Subscriber:
    """The subscriber with this id, wherever that was made; its queue's keywords. Raises as `get_queue`."""
    queue = get_queue(where, subscriber=id, **options)
    return Subscriber(queue._route, queue.name, names_in(id)[1], queue.codec, owns_route=True)


def list_queues(where: Where, **options: Any) -> QueueNames:
    """The names of all queues; where they are sharded, of all members that answer: `missing` of the list names the
    others. Raises RedisError if none does."""
    with brief_route(where, options) as route:
        return gathered(route.ask_all("QUEUE.LIST"))
