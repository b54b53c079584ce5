"""A stretch: what a turn's XADDs put behind one topic, one after the other, while nobody looks at it.

They differ in their last argument only. Each has its id and its answer at once; entries are made of all of them
together as soon as anybody looks up a key (`Keyspace.find`), and at the turn's end. All ids are of one millisecond: a
stretch is no longer than a turn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlite_pubsub.keyspace.topic.append import encode_run
from rlite_pubsub.protocol.encoder import bulk_array

if TYPE_CHECKING:
    from rlite_pubsub.keyspace.topic.topic import Topic
    from rlite_pubsub.storage.topics.entry_ids import Id

MAX_SEQUENCE = 10**18
"""Beyond it ids are left to others."""


class Stretch:
    """Of one topic, which is ready to be changed."""

    __slots__ = ("_before_tail", "_first", "_limit", "_ms", "_reply", "_tails", "_topic", "database", "head",
                 "next")  # fmt: skip

    def __init__(self, topic: Topic, first: Id, head: list[bytes]) -> None:
        """`head`: `XADD key * field …`, all but the last value."""
        fields = bulk_array(tuple(head[3:]))
        self._topic = topic
        self._ms, seq = first
        self._before_tail = b"*%d\r\n%b$" % (len(head) - 2, fields[fields.index(b"\n") + 1 :])
        self._tails: list[bytes] = []
        self._first = self.next = seq
        self.database = topic.database
        self.head = head
        self._limit = 0  # up to here the answers are known to have as many digits as `_reply` says
        self._reply = b""

    def _widen(self, seq: int) -> None:
        """Answer ids that have as many digits as this one."""
        digits = len(str(seq))
        self._limit = 10**digits
        ms = b"%d-" % self._ms
        self._reply = b"$%d\r\n%b%%d\r\n" % (len(ms) + digits, ms)

    def add(self, tails: list[bytes]) -> bytes:
        """Put a value behind the others (each is `<length>\\r\\n<value>`); the replies."""
        seq = self.next
        end = self.next = seq + len(tails)
        self._tails += tails
        if end - self._first == 1:  # most stretches have no more than this one
            text = b"%d-%d" % (self._ms, seq)
            return b"$%d\r\n%b\r\n" % (len(text), text)
        if not self._limit:
            self._widen(seq)
        if end <= self._limit:
            return self._reply % seq if end - seq == 1 else self._reply * len(tails) % tuple(range(seq, end))
        replies = []
        while seq < end:
            if seq >= self._limit:
                self._widen(seq)
            stop = min(end, self._limit)
            replies += [self._reply % number for number in range(seq, stop)]
            seq = stop
        return b"".join(replies)

    def take_in(self) -> None:
        """Make entries of them."""
        first, tails = (self._ms, self._first), self._tails
        if len(tails) == 1:
            text = b"%d-%d" % first
            entry = b"*2\r\n$%d\r\n%b\r\n%b%b\r\n" % (len(text), text, self._before_tail, tails[0])
            self._topic.append(first, entry)
            return
        self._topic.append_all(first, encode_run(first, tails, self._before_tail, b"\r\n"))


class Stretches:
    """All that one turn gathers."""

    def __init__(self) -> None:
        self.open: dict[bytes, Stretch] = {}  # by the names of their topics

    def take_in(self) -> None:
        """Somebody looks: what was put behind topics becomes entries."""
        stretches, self.open = self.open, {}
        for stretch in stretches.values():
            stretch.take_in()

    def forget(self) -> None:
        """Nothing of it was done."""
        self.open.clear()
