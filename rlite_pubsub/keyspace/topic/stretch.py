"""A stretch: what a turn's XADDs put behind one topic, one after the other, while nobody looks at it.

They differ in their last argument only. Each has its id and its answer at once; entries are made of all of them
together as soon as anybody looks up a key (`Keyspace.find`), and at the turn's end. All ids are of one millisecond: a
stretch is no longer than a turn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlite_pubsub.keyspace.topic.topic import Topic

MAX_SEQUENCE = 10**18
"""Beyond it ids are left to others."""


class Stretch:
    """Of one topic, which is ready to be changed."""

    __slots__ = ("_before_tail", "_first", "_limit", "_ms", "_reply", "_tails", "_topic", "database", "head",
                 "next")  # fmt: skip

    def __init__(self, topic: Topic, ms: int, seq: int, head: list[bytes]) -> None:
        """`head`: `XADD key * field …`, all but the last value."""
        fields = [b"$%d\r\n%b\r\n" % (len(word), word) for word in head[3:]]
        self._topic = topic
        self._ms = ms
        self._before_tail = b"*%d\r\n%b$" % (len(fields) + 1, b"".join(fields))
        self._tails: list[bytes] = []
        self._first = self.next = seq
        self.database = topic.database
        self.head = head
        self._widen(seq)

    def _widen(self, seq: int) -> None:
        """Answer ids that have as many digits as this one."""
        digits = len(str(seq))
        self._limit = 10**digits
        self._reply = self._form(digits) + b"%d\r\n"

    def _form(self, digits: int) -> bytes:
        ms = b"%d-" % self._ms
        return b"$%d\r\n%b" % (len(ms) + digits, ms)

    def add(self, tails: list[bytes]) -> bytes:
        """Put a value behind the others (each is `<length>\\r\\n<value>`); the replies."""
        seq = self.next
        end = self.next = seq + len(tails)
        self._tails += tails
        if end <= self._limit:
            return self._reply % seq if len(tails) == 1 else self._reply * len(tails) % tuple(range(seq, end))
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
        seq, end, tails = self._first, self.next, self._tails
        before_tail = self._before_tail.replace(b"%", b"%%")
        entries: list[bytes] = []
        while seq < end:
            digits = len(str(seq))
            stop = min(end, 10**digits)
            entry = b"*2\r\n%b%%d\r\n%b%%b\r\n" % (self._form(digits), before_tail)
            of_these = tails if stop - seq == len(tails) else tails[seq - self._first : stop - self._first]
            entries += map(entry.__mod__, zip(range(seq, stop), of_these, strict=True))
            seq = stop
        self._topic.append_all((self._ms, self._first), entries)
