"""Reading topics, and writing to them: `publish` and `subscribe`.

A subscription goes on by itself: where its connection ends, or its server, it connects again and resumes behind the
last entry that it has given. Each entry is given once, in the order of its topic; a gap reports what retention took.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any, TypeAlias

import redis
from redis.exceptions import ConnectionError, TimeoutError

from rlite_pubsub.topics.entry import Entry, Since, text
from rlite_pubsub.topics.positions import OnGap, Positions, warn_of_gap

log = logging.getLogger("rlite_pubsub")

Where: TypeAlias = "str | os.PathLike[str] | redis.Redis"
"""A store's folder, a URL (rlite://, redis://, rediss://, unix://), or a client."""
Fields: TypeAlias = "Mapping[str, Any] | Mapping[bytes, Any] | str | bytes"
"""An entry's fields and values; plain text becomes the field `message`."""

WAIT_S = 5.0
"""The longest read: a reader may notice only after it that its subscription was closed."""
_LOST = (ConnectionError, TimeoutError, OSError)


def client_of(where: Where, **options: Any) -> redis.Redis:
    """A client for a folder or a URL; a client is taken as it is."""
    if isinstance(where, redis.Redis):
        return where
    place = os.fspath(where)
    if "://" in place and not place.startswith("rlite://"):
        return redis.Redis.from_url(place, **options)
    from rlite_pubsub.embedded.client import Redis, from_url

    return from_url(place, **options) if "://" in place else Redis(place, **options)


def fields_of(fields: Fields) -> dict[Any, Any]:
    """As XADD wants them."""
    return {"message": fields} if isinstance(fields, str | bytes) else dict(fields)


def publish(where: Where, topic: str | bytes, fields: Fields, **options: Any) -> str:
    """Append an entry; its id."""
    client = client_of(where, **options)
    try:
        return text(client.xadd(topic, fields_of(fields)))
    finally:
        if client is not where:
            client.close()


def subscribe(
    where: Where,
    *topics: str | bytes,
    since: Since | Mapping[str, Since] = None,
    on_gap: OnGap = warn_of_gap,
    **options: Any,
) -> Subscription:
    """Follow topics. `since` is one start for all of them, or one for each: `{"orders": "1700000000000-0"}`.

    What is published from now on is received. Raises ConnectionError where the store can't be had, and ResponseError
    where one of the names is no topic's, or the start is none."""
    return Subscription(where, topics, since, on_gap, options)


class Subscription:
    """An iterator over entries. It ends when it is closed."""

    def __init__(
        self,
        where: Where,
        topics: Iterable[str | bytes],
        since: Since | Mapping[str, Since],
        on_gap: OnGap,
        options: dict[str, Any],
    ) -> None:
        self._positions = positions_of(topics, since, on_gap)
        self._client = client_of(where, **options)
        self._owns_client = self._client is not where
        self._connection: Any = None
        self._closed = threading.Event()
        try:
            self._begin()
        except BaseException:
            self.close()
            raise

    @property
    def positions(self) -> dict[str, str]:
        """By topic, the id after which it would continue. Pass them to `subscribe` as `since` to do so later."""
        return dict(self._positions.ids)

    def __iter__(self) -> Iterator[Entry]:
        while not self._closed.is_set():
            entry = self.get(WAIT_S)
            if entry is not None:
                yield entry

    def get(self, timeout: float | None = None) -> Entry | None:
        """The next entry, or None if none comes within `timeout` seconds. Without a timeout it waits for one."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self._closed.is_set():
            left = WAIT_S if deadline is None else deadline - time.monotonic()
            try:
                connection = self._connection or self._connect()
                if connection.can_read(timeout=max(0.0, min(left, WAIT_S))):
                    entry = self._positions.take(connection.read_response(push_request=True))
                    if entry is not None:
                        return entry
                    continue
            except Exception as failure:
                if self._closed.is_set():  # by another thread, which has taken the connection out of this one's hands
                    return None
                if not isinstance(failure, _LOST):
                    raise
                self._lose(failure, left)
            if deadline is not None and time.monotonic() >= deadline:
                break
        return None

    def close(self) -> None:
        """End it. Another thread than the reader's may call this."""
        self._closed.set()
        self._disconnect()
        if self._owns_client:
            self._client.close()

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def _begin(self) -> None:
        """Return once the server has said where each topic continues."""
        connection = self._connect()
        while not self._positions.are_known:
            self._positions.take(connection.read_response(push_request=True))

    def _connect(self) -> Any:
        connection: Any = self._client.connection_pool.get_connection()
        try:
            connection.connect()
            connection.send_command(*self._positions.command)
        except BaseException:
            connection.disconnect()
            self._client.connection_pool.release(connection)
            raise
        self._connection = connection
        return connection

    def _lose(self, failure: BaseException, left_s: float) -> None:
        self._disconnect()
        if self._closed.is_set():
            return
        delay_s = self._positions.next_delay_s()
        log.info("Topics: the connection is lost (%s); retrying in %.2f s", failure, delay_s)
        self._closed.wait(max(0.0, min(delay_s, left_s)))

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(*_LOST):
                connection.disconnect()
            self._client.connection_pool.release(connection)


def positions_of(topics: Iterable[str | bytes], since: Since | Mapping[str, Since], on_gap: OnGap) -> Positions:
    if isinstance(since, Mapping):
        starts: dict[str, Since] = dict.fromkeys(map(text, topics))
        starts.update(since)
        return Positions(starts, None, on_gap)
    return Positions(topics, since, on_gap)
