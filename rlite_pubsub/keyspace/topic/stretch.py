"""A stretch: what a turn's XADDs put behind one topic, one after the other, while nobody looks at it.

They differ in their last argument only. Each has its id and its answer at once; entries are made of all of them
together as soon as anybody looks up a key (`Keyspace.find`), and at the turn's end. All ids are of one millisecond: a
stretch is no longer than a turn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rlite_pubsub.keyspace.topic.append import encode_run
from rlite_pubsub.protocol.batch import written

if TYPE_CHECKING:
    from rlite_pubsub.keyspace.topic.topic import Topic
    from rlite_pubsub.storage.topics.entry_ids import Id

MAX_SEQUENCE: Final = 10**18
"""Beyond it ids are left to others."""


class Stretch:
    """Gathers entries for one topic, which is ready to be changed."""

    __slots__ = ("_limit", "_ms", "_reply", "before_tail", "database", "first", "head", "next", "tails",
                 "topic")  # fmt: skip

    def __init__(self, topic: Topic, first: Id, head: list[bytes]) -> None:
        """`head`: `XADD key * field …`, all but the last value."""
        self.topic = topic
        self._ms, seq = self.first = first
        self.before_tail = written((*head[3:], b""))[: -len(b"0\r\n\r\n")]
        self.tails: list[bytes] = []
        self.next = seq
        self.database = topic.database
        self.head = head
        self._limit = 0  # up to here the answers begin with `_reply`, for their ids have as many digits
        self._reply = b""

    def add(self, tails: list[bytes]) -> bytes:
        """Put a value behind the others (each is `<length>\\r\\n<value>`); the replies."""
        self.tails += tails
        replies = []
        seq = self.next
        for _ in tails:
            if seq >= self._limit:
                digits = len(str(seq))
                self._limit = 10**digits
                self._reply = b"$%d\r\n%d-" % (len(str(self._ms)) + 1 + digits, self._ms)
            replies.append(b"%b%d\r\n" % (self._reply, seq))
            seq += 1
        self.next = seq
        return replies[0] if len(replies) == 1 else b"".join(replies)


class Stretches:
    """All that one turn gathers."""

    def __init__(self) -> None:
        self.open: dict[bytes, Stretch] = {}  # by the names of their topics

    def take_in(self) -> None:
        """Somebody looks: what was put behind topics becomes entries."""
        stretches, self.open = self.open, {}
        for stretch in stretches.values():
            entries = encode_run(stretch.first, stretch.tails, stretch.before_tail, b"\r\n")
            stretch.topic.append_all(stretch.first, entries)

    def forget(self) -> None:
        """Forget it: nothing of it was done."""
        self.open.clear()
