"""What a session was sent and its peer has not taken: in order, bounded in memory, the rest on disk, within limits.

    said (this turn)  ->  the peer, as much as it takes                                (nothing else waits)
    said (this turn)  ->  backlog (memory and disk, backlog.py)  ->  the peer           (it has stalled)

Law 7: publishers never wait for subscribers. What a peer leaves waits here; beyond `spill-threshold` it is moved to the
session's mailbox on disk (spiller.py), and pressure.py holds the limits, also on what a single turn says.

A peer is pushed (a socket that takes what it has room for, and becomes writable later) or takes (a program in this
process, a stream of events). The outbox does not hold its session: the caller, which has both, passes it.
"""

from __future__ import annotations

import errno
import os
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from mypy_extensions import mypyc_attr

if TYPE_CHECKING:  # a program that only publishes has none of these, and waits for imports
    from rlite_pubsub.pubsub.backlog import Backlog
    from rlite_pubsub.pubsub.pressure import Pressure, Reader

DRAIN_BYTES: Final = 1024 * 1024
"""Written of a backlog in one turn, so that one fast reader of a long backlog does not keep the others waiting."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Outbox:
    """The outbox of a session whose peer cannot be slow: it takes what is sent by itself."""

    __slots__ = ("backlog", "said")

    def __init__(self) -> None:
        self.said: list[bytes] = []  # this turn; always the same list
        self.backlog: Backlog | None = None

    def flush(self, reader: Reader) -> bool:
        """Hand over what was said. Called once a turn, after the commit. Whether its peer has all of it, and so the
        session may be closed if it is to be."""
        reader.flush()
        return False

    def drain(self, reader: Reader) -> None:
        """React to a peer that takes more again."""

    def end(self) -> None:
        """The session is closed: nothing that waits is for anybody."""
        self.said.clear()

    def _end_backlog(self, pressure: Pressure) -> None:
        """End the backlog: nothing waits for the peer any more."""
        backlog, self.backlog = self.backlog, None
        if backlog is not None:
            pressure.end(backlog)

    @property
    def waiting_bytes(self) -> int:
        """All that the peer has not taken, and that this turn has not said."""
        return self.backlog.total_bytes if self.backlog is not None else 0

    @property
    def memory_bytes(self) -> int:
        """How much of that is in memory."""
        return self.backlog.memory_bytes if self.backlog is not None else 0

    @property
    def parts(self) -> int:
        """How many pieces that is."""
        return len(self.backlog.head) + len(self.backlog.tail) if self.backlog is not None else 0


class PushedOutbox(Outbox):
    """The outbox of a session with a socket. `send` writes to it, and does not block."""

    __slots__ = ("_counts", "_pressure", "_send")

    def __init__(self, pressure: Pressure, send: Callable[[bytes | memoryview], int]) -> None:
        super().__init__()
        self._pressure = pressure
        self._counts = pressure.counts
        self._send = send

    def flush(self, reader: Reader) -> bool:
        parts = self.said
        if self.backlog is not None:
            self._pressure.pile_up(reader, self.backlog, parts)
            parts.clear()
            return False
        data = parts[0] if len(parts) == 1 else b"".join(parts)
        if len(data) > self._pressure.at_once_bytes and self._pressure.refuses(reader, len(data)):
            return False  # closed with its outbox full, for a durable subscriber's feed must see what has not been sent
        parts.clear()
        if not data:
            return True
        try:
            sent = self._send(data)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError:
            parts.append(data)  # said, and never to arrive: a durable subscriber's feed must see it
            reader.cut()
            return False
        counts = self._counts
        counts.output_bytes += sent
        counts.writes += 1
        if sent == len(data):
            return True
        self.backlog = backlog = self._pressure.begin(reader)
        reader.stalled()
        self._pressure.pile_up_rest(reader, backlog, memoryview(data)[sent:])
        return False

    def drain(self, reader: Reader) -> None:
        """Write what has piled up, as much as the socket takes."""
        backlog = self.backlog
        if backlog is None:
            return
        budget = DRAIN_BYTES
        while backlog:
            if budget <= 0 or (not backlog.head and not self._pressure.refill(reader, backlog)):
                return
            part = backlog.head[0]
            try:
                sent = self._send(part)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                reader.cut()
                return
            self._counts.output_bytes += sent
            self._counts.writes += 1
            backlog.written(sent)
            budget -= sent
            if sent != len(part):
                return
        self._end_backlog(self._pressure)
        reader.drained()
        if reader.closing:
            reader.close_now()

    def end(self) -> None:
        super().end()
        self._send = _send_nowhere  # its descriptor may be another session's from here on
        self._end_backlog(self._pressure)


def _send_nowhere(data: bytes | memoryview) -> int:
    raise OSError(errno.EBADF, os.strerror(errno.EBADF))


class TakenOutbox(Outbox):
    """The outbox of a session whose peer fetches what was sent.

    oldest newest inbox (memory, whole) | backlog (memory and disk)
    """

    __slots__ = ("_has_ended", "_pressure", "inbox", "inbox_bytes")

    def __init__(self, pressure: Pressure) -> None:
        super().__init__()
        self._pressure = pressure
        self._has_ended = False
        self.inbox: deque[bytes] = deque()
        self.inbox_bytes = 0

    def flush(self, reader: Reader) -> bool:
        parts, pressure = self.said, self._pressure
        if pressure.limits_turns:
            size_bytes = sum(map(len, parts))
            if size_bytes > pressure.at_once_bytes and pressure.refuses(reader, size_bytes):
                reader.rouse()
                return False
        if self.backlog is not None:
            pressure.pile_up(reader, self.backlog, parts)
        elif not self._has_ended:
            self.inbox += parts
            for part in parts:
                self.inbox_bytes += len(part)
            unread_bytes = reader.feed.unread_bytes if reader.feed is not None else 0
            if self.inbox_bytes - unread_bytes > pressure.threshold_bytes:
                self.backlog = pressure.begin(reader)
                reader.stalled()
        parts.clear()
        if reader.closing:
            reader.close_now()
        reader.rouse()
        return False

    def take(self, reader: Reader) -> list[bytes]:
        """Return what has come, oldest first, in chunks if it is much; empty if there is nothing."""
        if not self.inbox:
            return self.take_from_backlog(reader)
        parts = list(self.inbox)
        self.inbox.clear()
        self.inbox_bytes = 0
        if self.backlog is None and reader.follows:
            reader.drained()
        return parts

    def take_one(self) -> bytes:
        """Return the oldest part of the inbox, which must hold one."""
        part = self.inbox.popleft()
        self.inbox_bytes -= len(part)
        return part

    def take_from_backlog(self, reader: Reader) -> list[bytes]:
        """Return the next of what did not go into the inbox. The inbox must be empty."""
        backlog = self.backlog
        if backlog is None:
            return []
        while backlog and not backlog.head:
            if not self._pressure.refill(reader, backlog):
                return []
        parts = [bytes(part) for part in backlog.head]
        backlog.written(backlog.head_bytes)
        if not backlog:
            self._end_backlog(self._pressure)
            reader.drained()
        return parts

    def withdraw(self, parts: set[int]) -> None:
        """Take back what was said and has not been taken: the bytes with these ids."""
        self.said[:] = [part for part in self.said if id(part) not in parts]
        self.inbox = deque([part for part in self.inbox if id(part) not in parts])
        self.inbox_bytes = sum(map(len, self.inbox))

    def end(self) -> None:
        """End it. What is in the inbox may still be read."""
        self._has_ended = True
        super().end()
        self._end_backlog(self._pressure)

    @property
    def waiting_bytes(self) -> int:
        return self.inbox_bytes + (self.backlog.total_bytes if self.backlog is not None else 0)

    @property
    def memory_bytes(self) -> int:
        return self.inbox_bytes + (self.backlog.memory_bytes if self.backlog is not None else 0)

    @property
    def parts(self) -> int:
        backlog = self.backlog
        return len(self.inbox) + (len(backlog.head) + len(backlog.tail) if backlog is not None else 0)
