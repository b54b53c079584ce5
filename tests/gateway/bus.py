"""The parts of a gateway, without a server."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from event_source import Event, events, lines_of
from recorded_session import House

from rlite_pubsub.gateway.events import event
from rlite_pubsub.gateway.events.event_log import PAGE_BYTES, EventLog
from rlite_pubsub.gateway.events.indexing import Indexing
from rlite_pubsub.gateway.events.matcher import Matcher
from rlite_pubsub.gateway.events.posting import Posting
from rlite_pubsub.gateway.events.segments import EventSegments
from rlite_pubsub.gateway.session import HttpSession
from rlite_pubsub.keyspace.keyspace import Keyspace
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.storage.topics import entry_ids, type_index, uuid6
from rlite_pubsub.storage.topics.entry_ids import Id


class Bus:
    """The event bus: a topic, its index and its log."""

    def __init__(self) -> None:
        self.house = House()
        keyspace = self.house.engine.keyspace
        assert keyspace is not None
        self.keyspace: Keyspace = keyspace
        self.log = EventLog(keyspace)
        self.indexing = Indexing(keyspace, self.house.engine.call_later)
        self.said: list[tuple[Id, str]] = []
        self.number = 0

    def posting(self, turn_soon: Callable[[], None] = lambda: None) -> Posting:
        """Who puts what is posted behind it."""
        engine = self.house.engine
        assert engine.keeping is not None
        segments = EventSegments(
            engine.settings, self.keyspace, engine.keeping.retention, turn_soon, engine.call_later
        )
        session = partial(HttpSession, engine)
        return Posting(session, self.keyspace, engine.pause, segments, engine.hub.agenda, turn_soon)

    def append(self, types: list[str], body: bytes = b"x") -> None:
        topic = self.keyspace.for_change(0, event.TOPIC) or self.keyspace.create_topic(0, event.TOPIC)
        assert isinstance(topic, Topic)
        for type in types:
            self.number += 1
            entry_id = 1_700_000_000_000, self.number
            topic.append(entry_id, event.encode(entry_id, type.encode(), body))
            self.said.append((entry_id, type))
        self.commit()

    def commit(self) -> None:
        self.house.engine.commit()
        self.log.changed()

    def index(self) -> int:
        """Take all in; in how many steps."""
        steps = 1
        while self.indexing.step():
            self.commit()
            steps += 1
        self.commit()
        return steps

    def indexed(self) -> Id:
        topic = self.topic()
        return self.keyspace.environment.read(lambda txn: type_index.indexed(txn, topic.number))

    def topic(self) -> Topic:
        topic = self.keyspace.find(0, event.TOPIC)
        self.keyspace.end_turn()
        assert isinstance(topic, Topic)
        return topic

    def read(self, *patterns: str, after: Id = entry_ids.MIN) -> list[Event]:
        matcher = Matcher(patterns) if patterns else None
        data = b""
        for _ in range(10_000):
            page = self.log.page(after, matcher)
            assert page.after > after or page.is_end
            assert len(page.data) < PAGE_BYTES + 300_000
            data += page.data
            after = page.after
            if page.is_end:
                return list(events(lines_of(data.decode())))
        raise AssertionError("it does not come to an end")

    def expected(self, *types: str, after: Id = entry_ids.MIN) -> list[str]:
        return [uuid6.text(id).decode() for id, type in self.said if id > after and (not types or type in types)]
