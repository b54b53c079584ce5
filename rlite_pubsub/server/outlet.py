"""What is said to a client: its outbox goes out, what its socket does not take piles up, and the end.

Law 7. Publishers never wait for subscribers: nothing here waits. A socket that is full makes a backlog
(engine/pressure.py, pubsub/backlog.py), which goes on when the poller says that the socket is writable.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.pubsub.backlog import Backlog
from rlite_pubsub.server.sockets import is_loopback, local_address, unacknowledged_bytes
from rlite_pubsub.server.turns import PEER_CLOSED, READABLE, WRITABLE
from rlite_pubsub.storage.agenda import OUTBOXES

if TYPE_CHECKING:
    from rlite_pubsub.server.connections import Connections

DRAIN_BYTES = 1024 * 1024
"""Written of a backlog in one turn, so that one fast reader of a long backlog does not keep the others waiting."""


class Outlet(CommandSession):
    """A session at a socket."""

    __slots__ = ("_node", "_send", "_was_cut", "backlog", "fd", "peer", "socket")

    def __init__(self, node: Connections, sock: socket.socket, peer: str) -> None:
        super().__init__(node.engine)
        self._node = node
        self.socket: socket.socket = sock
        self.fd = sock.fileno()
        self.peer = peer
        self._send = sock.send
        self.backlog: Backlog | None = None
        self._was_cut = False

    def _events(self, reading: bool = True) -> int:
        events = READABLE if reading else PEER_CLOSED
        return events | WRITABLE if self.backlog is not None else events

    def flush(self) -> None:
        self.dirty = False
        parts = self.outbox
        if self.backlog is not None:
            self.outbox = []
            self._node.pressure.pile_up(self, self.backlog, parts)
            return
        data = parts[0] if len(parts) == 1 else b"".join(parts)
        if len(data) > self._node.pressure.at_once_bytes and self._node.pressure.refuses(self, len(data)):
            return  # closed with its outbox full, for a durable subscriber's feed must see what has not been sent
        parts.clear()
        if not data:
            if self.closing:
                self.close_now()
            return
        try:
            sent = self._send(data)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError:
            self.outbox.append(data)  # said, and never to arrive: a durable subscriber's feed must see it
            self._was_cut = True
            self.close_now()
            return
        stats = self._node.stats
        stats.output_bytes += sent
        stats.writes += 1
        if sent != len(data):
            self._stall(data, sent)
        elif self.closing:
            self.close_now()

    def _stall(self, data: bytes, sent: int) -> None:
        """The socket did not take all: wait until it is writable, and gather what comes meanwhile."""
        self.backlog = self._node.pressure.begin(self)
        self._node.turns.change(self.fd, self._events(reading=not self.closing))
        self._node.pressure.pile_up_rest(self, self.backlog, memoryview(data)[sent:])

    def _drain(self) -> None:
        """Write what has piled up, as much as the socket takes."""
        backlog = self.backlog
        pressure = self._node.pressure
        budget = DRAIN_BYTES
        while backlog is not None and backlog:
            if budget <= 0 or (not backlog.head and not pressure.refill(self, backlog)):
                return
            part = backlog.head[0]
            try:
                sent = self._send(part)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                self._was_cut = True
                self.close_now()
                return
            self._node.stats.output_bytes += sent
            self._node.stats.writes += 1
            backlog.written(sent)
            budget -= sent
            if sent != len(part):
                return
        if backlog is not None:
            self.backlog = None
            pressure.end(backlog)
            if self.feed is not None and self.hub.durables is not None:
                self.hub.durables.drained(self)
            if self.follows:
                self.engine.followers.drained(self)
            if self.closing:
                self.close_now()
            else:
                self._node.turns.change(self.fd, self._events())

    @property
    def takes_more(self) -> bool:
        return self.backlog is None and not self.closing

    @property
    def was_cut(self) -> bool:
        return self._was_cut

    def unacknowledged_bytes(self) -> int:
        """With what the peer's kernel has not acknowledged, where ours can tell."""
        waiting = sum(map(len, self.outbox)) + unacknowledged_bytes(self.socket)
        return waiting + self.backlog.total_bytes if self.backlog is not None else waiting

    def close_after_reply(self) -> None:
        """Execute nothing more; close once the outbox is written."""
        self.closing = True
        if not self.dirty:
            self.dirty = True
            self.hub.dirty.append(self)
            self.hub.agenda.due |= OUTBOXES

    def close_now(self) -> None:
        """Close, and leave nothing behind: names, backlog, descriptor."""
        if self.fd < 0:
            return
        self.closing = True
        if self.feed is not None:
            self.hub.forget(self)  # while the kernel can still say what has arrived
        node = self._node
        node.turns.unwatch(self.fd)
        self.fd = -1
        self.socket.close()
        self.outbox.clear()
        backlog, self.backlog = self.backlog, None
        if backlog is not None:
            node.pressure.end(backlog)
        node.forget(self)

    @property
    def address(self) -> str:
        return self.peer

    @property
    def local_address(self) -> str:
        return local_address(self.socket)

    @property
    def is_local(self) -> bool:
        return self._is_unix or is_loopback(self.peer.rpartition(":")[0].strip("[]"))

    @property
    def _is_unix(self) -> bool:
        return self.socket.family == socket.AF_UNIX
