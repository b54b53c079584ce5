"""A connection to which entries are pushed, made again when it is lost: what subscriptions and consumptions share."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from redis.exceptions import ConnectionError, ResponseError, TimeoutError

from rlite_pubsub.topics.course import Trip
from rlite_pubsub.topics.entry import Entry
from rlite_pubsub.topics.positions import next_delay_s
from rlite_pubsub.topics.route import MemberRoute

log = logging.getLogger("rlite_pubsub.topics.connection")
"""One of its own: `rlite-pubsub tail` shows the first of many lines in its own words."""

WAIT_S = 5.0
"""The longest read: a reader may notice only after it that what it reads was closed."""
_LOST = (ConnectionError, TimeoutError, OSError)

Item = TypeVar("Item", bound=Entry)


class PushedLine(Generic[Item]):
    """An iterator over what comes. It ends when it is closed."""

    def __init__(self, route: MemberRoute) -> None:
        """Returns once the server has answered what each new connection begins with."""
        self.route = route
        self._connection: Any = None
        self._pool: Any = None  # which it is of
        self._come: deque[Item] = deque()  # not given yet
        self._delay_s = 0.0
        self._closed = threading.Event()
        try:
            self._connect()
        except BaseException:
            self.close()
            raise

    def greet(self, connection: Any) -> Iterable[Item]:
        """Say what a new connection begins with; what there is already, in the place of what has not been given."""
        raise NotImplementedError

    def take(self, frame: Any) -> Iterable[Item]:
        """Return the items in a push."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[Item]:
        while not self._closed.is_set():
            entry = self.get(WAIT_S)
            if entry is not None:
                yield entry

    def get(self, timeout: float | None = None) -> Item | None:
        """The next entry, or None if none comes within `timeout` seconds. Without a timeout it waits for one."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self._closed.is_set():
            left = WAIT_S if deadline is None else deadline - time.monotonic()
            try:
                connection = self._connection or self._connect(deadline)
                if self._come:
                    return self._come.popleft()
                if connection.can_read(timeout=max(0.0, min(left, WAIT_S))):
                    self._come += self.take(connection.read_response(push_request=True))
                    self._delay_s = 0.0
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
        self.hang_up()
        self.route.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def _connect(self, deadline: float | None = None) -> Any:
        """To the member that has the topic. Raises ConnectionError where that is not known in time."""
        trip = self.route.begin()
        while True:
            try:
                return self._connect_at(trip)
            except _LOST:
                trip.is_lost()
                raise
            except ResponseError as refusal:
                delay_s = trip.follow(refusal)
                if deadline is not None and time.monotonic() + delay_s >= deadline:
                    raise ConnectionError(str(refusal)) from refusal
                self._closed.wait(delay_s)

    def _connect_at(self, trip: Trip) -> Any:
        pool: Any = self.route.at(trip.to).connection_pool
        connection = pool.get_connection()
        try:
            connection.connect()
            if trip.is_asking:
                connection.send_command("ASKING")
                connection.read_response()
            self._come = deque(self.greet(connection))
        except BaseException:
            connection.disconnect()
            pool.release(connection)
            raise
        self._connection, self._pool = connection, pool
        return connection

    def _lose(self, failure: BaseException, left_s: float) -> None:
        self.hang_up()
        if self._closed.is_set():
            return
        self._delay_s = next_delay_s(self._delay_s)
        log.info("Topics: the connection is lost (%s); retrying in %.2f s", failure, self._delay_s)
        self._closed.wait(max(0.0, min(self._delay_s, left_s)))

    def hang_up(self) -> None:
        """End the connection; the next read makes another one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(*_LOST):
                connection.disconnect()
            self._pool.release(connection)
