"""Retained channels: what is published to one is also an entry of the topic of its name, in database 0.

Law 5: the entry is committed with the publisher's turn, before the publisher is answered; who subscribes is served as
ever. A channel is retained if a rule of retention (rules.py) matches its name; its route knows (`Route.topic`).
Law 8: where a key of that name is no topic, the message goes to its subscribers alone. That is counted, and logged once
for each name.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from rlite_pubsub.keyspace.topic.append import encode_run, next_id
from rlite_pubsub.keyspace.topic.append_rules import check_size
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.protocol.errors import CommandError

if TYPE_CHECKING:
    from rlite_pubsub.keyspace.keyspace import Keyspace

log = logging.getLogger("rlite_pubsub")

DATABASE = 0
FIELD = b"message"
_BEFORE_PAYLOAD = b"*2\r\n$%d\r\n%b\r\n$" % (len(FIELD), FIELD)
_EXHAUSTED = b"ERR The topic has exhausted the last possible ID, unable to add more items"
_NAMES_REMEMBERED = 1000


class Retained:
    """The retained channels of one engine."""

    def __init__(self, keyspace: Keyspace) -> None:
        self._keyspace = keyspace
        self.entries = 0
        self.refused = 0
        self._told: set[bytes] = set()  # names that were logged

    def append(self, name: bytes, tails: list[bytes]) -> bool:
        """Put messages (each `<length>\\r\\n<payload>`) behind the topic's entries; False where its key is no topic.

        Raises StoreError, and CommandError where no id is left, or one is larger than its topic takes.
        """
        keyspace = self._keyspace
        lack = keyspace.environment.room.lack()
        if lack is not None:
            raise lack
        topic = keyspace.for_change(DATABASE, name)
        if topic.__class__ is not Topic:
            if topic is not None:
                self._refuse(name, len(tails))
                return False
            topic = keyspace.create_topic(DATABASE, name)
        assert isinstance(topic, Topic)
        if topic.has_append_rules:
            for tail in tails:
                check_size(topic, len(FIELD) + len(tail) - tail.index(b"\r\n") - 2)
        first = next_id(topic.last_id, keyspace.clock_ms(), len(tails))
        if first is None:
            raise CommandError(_EXHAUSTED)
        topic.append_all(first, encode_run(first, tails, _BEFORE_PAYLOAD, b"\r\n"))
        self.entries += len(tails)
        return True

    def _refuse(self, name: bytes, count: int) -> None:
        self.refused += count
        if name not in self._told:
            if len(self._told) >= _NAMES_REMEMBERED:
                self._told.clear()
            self._told.add(name)
            log.warning("What is published to %s can't be retained: the key of that name is not a topic", ascii(name))
