"""The readers of ephemeral topics and the consumers of ephemeral groups: topics and groups are removed when they have
none left.

Promises:
 - An ephemeral topic stays as long as a session is blocked on it, follows it, or is a consumer of one of its groups.
   Without any, it is removed once it has not been read or written for `GRACE_SECONDS`, even if it never had a reader.
 - A consumer of an ephemeral group (whose name ends in `#ephemeral`, too) is removed with the connection that last read
   for it. Its pending entries go back to the group, and the group is removed with its last consumer.
 - Nothing is done while the connection closes: the next look does it, and tries again if the store cannot.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from rlite_pubsub.groups import group as groups
from rlite_pubsub.groups import pending, release
from rlite_pubsub.keyspace.databases import Databases
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.storage.errors import StoreHeld
from rlite_pubsub.storage.groups import pending as pending_records
from rlite_pubsub.storage.groups.released import Released
from rlite_pubsub.storage.memory import EPHEMERAL
from rlite_pubsub.storage.topics.entry_ids import BYTES

if TYPE_CHECKING:
    from rlite_pubsub.engine.client import Client
    from rlite_pubsub.engine.stats.sampler import Sampler
    from rlite_pubsub.engine.tracking.notifications import Notifications
    from rlite_pubsub.groups.consumer import Consumer
    from rlite_pubsub.groups.group import Group
    from rlite_pubsub.keyspace.keyspace import Keyspace
    from rlite_pubsub.keyspace.records import Record

log = logging.getLogger("rlite_pubsub")

GRACE_SECONDS = 5.0
TOPICS_PER_LOOK = 100


class Seat(NamedTuple):
    """A consumer of a group that a session reads for."""

    database: int
    key: bytes
    group: bytes
    consumer: bytes


class Readership:
    """Knows which sessions read ephemeral topics, and removes the topics that nobody reads any more."""

    def __init__(
        self,
        keyspace: Keyspace,
        notifications: Notifications,
        sampler: Sampler,
        is_watched: Callable[[int, bytes], bool],
    ) -> None:
        """`is_watched` says whether a session waits for this key or follows it."""
        self._keyspace = keyspace
        self._notifications = notifications
        self._sampler = sampler
        self._is_watched = is_watched
        self._seats: dict[Client, dict[Seat, None]] = {}
        self._readers: dict[tuple[int, bytes], dict[Seat, Client]] = {}  # who read last, by topic
        self._departed: dict[Seat, None] = {}  # of ephemeral groups: their connections have gone
        self._seen: dict[tuple[int, bytes], tuple[int, float]] = {}  # as of which change, and when last in use
        self._database = self._cursor = 0  # where the next look begins
        self._has_failed = False

    def join(self, session: Client, read: Iterable[Group], consumer: bytes) -> list[Group]:
        """Note that a session reads groups for a consumer. Returns the ephemeral groups in which the consumer is new
        and must be created."""
        joined = []
        for group in read:
            topic = group.topic
            is_ephemeral = group.name.endswith(EPHEMERAL)
            if is_ephemeral or topic.name.endswith(EPHEMERAL):
                seat = Seat(topic.database, topic.name, group.name, consumer)
                self._seats.setdefault(session, {})[seat] = None
                self._readers.setdefault((topic.database, topic.name), {})[seat] = session
                self._departed.pop(seat, None)
                if is_ephemeral and group.consumer(consumer) is None:
                    joined.append(group)
        return joined

    def forget(self, session: Client) -> None:
        """Forget a closed session."""
        for seat in self._seats.pop(session, ()):
            readers = self._readers.get(seat[:2], {})
            if readers.get(seat) is not session:
                continue  # another one has read for this consumer since
            del readers[seat]
            if not readers:
                del self._readers[seat[:2]]
            if seat.group.endswith(EPHEMERAL):
                self._departed[seat] = None

    def cron(self, now: float) -> None:
        """Remove what nobody reads any more, to be committed with the turn."""
        keyspace = self._keyspace
        if keyspace.turn.failure is not None or not keyspace.times.may_expire:
            return
        try:
            for seat in list(self._departed):
                self._depart(keyspace, seat)
            if keyspace.memory is not None and not self._sampler.paused:
                self._look(keyspace, Databases((keyspace.memory.part,)), now)
        except StoreHeld:
            return  # another process is writing: it is done with the next run
        except Exception as failure:
            level = logging.DEBUG if self._has_failed else logging.WARNING
            log.log(level, "Can't remove ephemeral topics or consumers: %s", keyspace.fail(failure))
            self._has_failed = True
            return
        self._has_failed = False

    # -- groups

    def _depart(self, keyspace: Keyspace, seat: Seat) -> None:
        """Remove a departed consumer. It stays in the list until a later look finds it gone: this turn may yet be
        undone."""
        if _group(keyspace.find(*seat[:2]), seat) is None:
            del self._departed[seat]
            return
        group = _group(keyspace.for_change(*seat[:2]), seat)
        if group is None:
            return
        tell = self._notifications.tell
        consumer = group.consumer(seat.consumer)
        if consumer is not None:
            if group.consumer_count > 1:
                _give_back(group, consumer)
            group.delete_consumer(consumer)
            tell("t", b"xgroup-delconsumer", seat.database, seat.key)
        if not group.consumer_count:
            groups.destroy(group)
            tell("t", b"xgroup-destroy", seat.database, seat.key)

    # -- topics

    def _look(self, keyspace: Keyspace, memory: Databases, now: float) -> None:
        """Look at some topics; the next look goes on after them."""
        database = next((number for number in memory.numbers() if number >= self._database), None)
        if database is None:
            self._database = self._cursor = 0
            self._seen = {key: seen for key, seen in self._seen.items() if now - seen[1] < 2 * GRACE_SECONDS}
            return
        start = self._cursor if database == self._database else 0
        self._cursor, found, _ = memory.scan(database, start, TOPICS_PER_LOOK)
        self._database = database if self._cursor else database + 1
        for name, _ in found:
            topic = keyspace.find(database, name)
            if isinstance(topic, Topic) and not self._is_in_use(topic, now):
                self._remove(keyspace, topic)

    def _is_in_use(self, topic: Topic, now: float) -> bool:
        key = topic.database, topic.name
        version, since = self._seen.get(key, (-1, now))
        if version != topic.modified or key in self._readers or self._is_watched(*key):
            self._seen[key] = topic.modified, now
            return True
        return now - max(since, topic.used_at) < GRACE_SECONDS

    def _remove(self, keyspace: Keyspace, topic: Topic) -> None:
        found = keyspace.for_change(topic.database, topic.name)
        if found is not None:
            keyspace.remove(found)
            self._seen.pop((topic.database, topic.name), None)
            self._notifications.tell("g", b"del", topic.database, topic.name)


def _group(record: Record | None, seat: Seat) -> Group | None:
    """Return the group of this seat, if there is anything left to do about it."""
    group = groups.group_of(record, seat.group) if isinstance(record, Topic) else None
    if group is None or (group.consumer_count and group.consumer(seat.consumer) is None):
        return None
    return group


def _give_back(group: Group, consumer: Consumer) -> None:
    """Let another consumer have the entries pending with this one."""
    txn = group.topic.keyspace.writing()
    for run in list(pending_records.walk(txn, group.of_group)):
        if run.fate[0] == consumer.number:
            pending.acknowledge(group, run.ids)
            ids = [run.ids[at : at + BYTES] for at in range(0, len(run.ids), BYTES)]
            release.release(group, [Released(packed, release.AT_ONCE, run.fate[2], run.fate[1]) for packed in ids])
