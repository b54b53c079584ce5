"""A client at a socket. What it says: bytes in, requests executed. What is said to it leaves by its outbox
(pubsub/outbox.py), which waits for no socket (law 7): one that is full is watched until it is writable.

The way of a PUBLISH, and of a plain XADD, is short on purpose: see `_execute_all`. What goes that way is counted and
timed by the turn. Whatever could make it observable or different (`CommandSession.plain`, `Engine.quiet`) sends it
through dispatch like any other command.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter_ns
from typing import TYPE_CHECKING, Final

from rlite_pubsub.engine.dispatch import execute, execute_plainly
from rlite_pubsub.engine.refusal import answers, replace, unwritten
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.stats.footprint import Footprint, Traffic
from rlite_pubsub.engine.table import TABLE
from rlite_pubsub.engine.table import Command as Description
from rlite_pubsub.engine.topics.short_append import append_run
from rlite_pubsub.protocol.batch import Run
from rlite_pubsub.protocol.encoder import LENGTHS, error
from rlite_pubsub.protocol.errors import CommandError, ProtocolError
from rlite_pubsub.protocol.parser import Command, Parser
from rlite_pubsub.pubsub.kinds import CHANNELS
from rlite_pubsub.pubsub.outbox import PushedOutbox
from rlite_pubsub.pubsub.publish import publish, send, unsent
from rlite_pubsub.pubsub.route import NOBODY, Route
from rlite_pubsub.server.connections import PUBLISH, XADD, Connections
from rlite_pubsub.server.peer_socket import PeerSocket
from rlite_pubsub.server.sockets import (
    NOBODY_KNOWS,
    OUTPUT_QUEUE_IS_KNOWN,
    has_failed,
    is_loopback,
    local_address,
    shut,
    traffic_of,
    unacknowledged_bytes,
)
from rlite_pubsub.server.turns import PEER_CLOSED, READABLE, WRITABLE
from rlite_pubsub.server.wires import FAILED, READ_BYTES, sender
from rlite_pubsub.storage.agenda import COUNT, OUTBOXES
from rlite_pubsub.storage.errors import StoreError, StoreHeld

if TYPE_CHECKING:  # a server without TLS has no use for it
    from rlite_pubsub.server.secure_wire import SecureWire

SHORT_READ_BYTES: Final = 448
"""Read at first: what waits for each reply mostly says less, and Python has such small blocks at hand."""
MAX_READ_BYTES: Final = 512 * 1024
"""Read at once from a peer that had more to say than was read."""
_LAST_READS: Final = 4
"""Of a peer that is refused, and may go on forever."""
MAX_HELD_BYTES: Final = 1024 * 1024
"""A blocked session's requests are read ahead up to here; the rest waits in the peer's kernel."""

SESSION_BYTES: Final = 2048
"""What an idle session costs, by measurement; for CLIENT LIST's tot-mem."""

_SPELLINGS: Final = TABLE.spellings


class Connection(CommandSession):
    """A client's connection, TCP or unix."""

    __slots__ = (
        "_chunk_bytes",
        "_held",
        "_held_bytes",
        "_least_read_bytes",
        "_peer_socket",
        "_read",
        "_read_bytes",
        "_reads_are_known",
        "_shared",
        "_was_cut",
        "_word",
        "_word_names",
        "fd",
        "parser",
        "peer",
        "socket",
    )

    def __init__(
        self, shared: Connections, sock: socket.socket, peer: str, wire: SecureWire | None = None
    ) -> None:
        """`wire` encrypts what goes through the socket."""
        fd = sock.fileno()
        send = sender(fd) if wire is None else wire.send
        super().__init__(shared.engine, PushedOutbox(shared.pressure, send))
        self._shared = shared
        self.socket: socket.socket = sock
        self.fd = fd
        self.peer = peer
        self._was_cut = False
        self._word = b""  # that its last request began with
        self._word_names: Description | None = None
        self._peer_socket: PeerSocket | None = None  # once somebody has asked for what it has read
        self._reads_are_known = False
        self._read: Callable[[int], bytes] = partial(os.read, fd) if wire is None else wire.recv
        self._read_bytes = self._least_read_bytes = SHORT_READ_BYTES if wire is None else READ_BYTES
        self.parser = Parser(shared.batch, shared.max_bulk_bytes, self.authenticated)
        self._held: list[Command] | None = None  # requests that wait for `resume`
        self._held_bytes = 0
        self._chunk_bytes = 0  # of the chunk whose requests are being executed

    def on_ready(self, events: int, data: bytes | None = None) -> None:
        """The socket is readable, writable or dead; `data` is what was read, where that was done."""
        if events & WRITABLE:
            self.outbox.drain(self)
            if not events & ~WRITABLE:
                return
        if self.closing:
            if events & ~(WRITABLE | READABLE):
                self.close_now()
            return
        if data is not None:
            if len(data) == READ_BYTES:  # there may be more, and then it is better read in larger pieces
                self._read_bytes = READ_BYTES
                self._shared.turns.leave_unread(self)
        elif events & FAILED:
            self._was_cut = True
            data = b""
        else:
            try:
                data = self._read(self._read_bytes)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                self._was_cut = True
                data = b""
            size = len(data)
            if size == self._read_bytes:
                self._read_bytes = min(2 * size, MAX_READ_BYTES) if size >= READ_BYTES else READ_BYTES
                if size == SHORT_READ_BYTES:
                    data = self._read_on(data)
            elif self._read_bytes != self._least_read_bytes:
                self._read_bytes = READ_BYTES if size > SHORT_READ_BYTES else self._least_read_bytes
                self.read_along()
        size = len(data)
        if not size:
            self.left_in_peace = not self._was_cut
            self._close(is_ended_by_peer=True)
            return
        shared = self._shared
        stats = shared.stats
        stats.reads += 1
        stats.input_bytes += size
        self.last_active = shared.now
        self._chunk_bytes = size
        parser = self.parser
        if self._held is None and self.authenticated:
            items = parser.take(data)
            if items:
                self._execute_all(items)
            elif parser.buffered_bytes > shared.max_query_bytes:
                shared.drop_for_query_buffer(self)
        elif self._held is not None:
            self._hold_back(data)
        else:
            parser.feed(data)
            self._execute_untrusted()
        if parser.failure is not None and self._held is None and not self.closing:
            self._refuse(parser.failure)

    def read_along(self) -> None:
        """Let the poller read what is said, as long as that is little."""
        if self._least_read_bytes == SHORT_READ_BYTES:
            self._shared.turns.read_along(self)

    def _read_on(self, data: bytes) -> bytes:
        """Read on, if there may be more than these few bytes."""
        try:
            return data + self._read(READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return data
        except OSError:  # the next look finds only that it has ended, not why
            self._was_cut = True
            return data

    def on_failure(self) -> None:
        """Our own fault: the peer must not wait for an answer that will not come."""
        self.close_now()

    def _execute_all(self, items: list[Command | Run]) -> None:
        """Execute requests in order. A PUBLISH or an XADD goes the short way if it may."""
        engine = self.engine
        stretches = engine.keyspace.stretches
        at, end = 0, len(items)
        while at < end:
            item = items[at]
            if self.plain:
                word = item.head[0] if isinstance(item, Run) else item[0]
                if word != self._word:  # as it seldom is: most clients say the same again and again
                    self._word, self._word_names = word, _SPELLINGS.get(word)
                command = self._word_names
                if command is not None:
                    done = at
                    if (command is PUBLISH or command is XADD) and engine.quiet:
                        done = self._go_short(command, items, at)
                    if done == at and engine.plain and command.is_plain:
                        if stretches.open:
                            stretches.take_in()  # what goes another way may change what the short way depends on
                        if isinstance(item, Run):
                            items[at : at + 1] = item.commands()
                            item, end = items[at], len(items)
                        done = execute_plainly(self, command, items, at)
                    if done > at:
                        at = done
                        continue
            if stretches.open:
                stretches.take_in()
            at += 1
            requests = item.commands() if isinstance(item, Run) else [item]
            for number, request in enumerate(requests):
                if not execute(self, request):
                    self._hold([*requests[number:], *_expanded(items[at:])])
                    return
                if self.blocked is not None:
                    self._hold([*requests[number + 1 :], *_expanded(items[at:])])
                    return
                if self.closing:
                    return

    def _go_short(self, command: Description, items: list[Command | Run], at: int) -> int:
        """Do what is at `at`, a PUBLISH or an XADD or a run of them, answer it and have it counted; where the first
        request stands that this was not done with."""
        shared = self._shared
        if not shared.publishes and not shared.appends:
            shared.short_began_ns = perf_counter_ns()
            shared.dispatched_us = shared.stats.microseconds
        item = items[at]
        count, reply = 0, b""
        if command is PUBLISH and not isinstance(item, Run):
            count, reply = self._publish_each(items, at)
        if count:
            done = at + count
        else:
            done = at + 1
            if isinstance(item, Run):
                head, tails = item.head, item.tails
            else:
                head, last = item[:-1], item[-1]
                size = len(last)
                tails = [(LENGTHS[size] if size < len(LENGTHS) else b"%d\r\n" % size) + last]
            if command is XADD:
                ids = append_run(self, head, tails)
                if ids is None:
                    return at
                reply = ids
                shared.appends += len(tails)
            elif len(head) != 2:
                return at
            else:
                count = len(tails)
                try:
                    reply = self._publish_run(head[1], tails)
                except StoreHeld:
                    return at  # the ordinary way waits
        shared.publishes += count
        self.last_command = command
        self.said.append(reply)
        hub = self.hub
        if not self.dirty:
            self.dirty = True
            hub.dirty.append(self)
        hub.agenda.due |= OUTBOXES | COUNT
        return done

    def _publish_run(self, channel: bytes, tails: list[bytes]) -> bytes:
        """Send these messages to one channel; the replies. Raises StoreHeld: nothing is done."""
        count = len(tails)
        try:
            route = publish(self.hub, CHANNELS, channel, tails)
            reply = route.reply if count == 1 else route.reply * count
            if route.topic is not None:
                reply = self._acknowledged_later(reply, count, is_heard=route.receivers > 0)
            if route.address is not None:
                self._take_back_unsent(route, reply, count)
        except CommandError as refusal:
            return error(refusal.text) * count
        except StoreHeld:
            raise
        except StoreError as failure:
            return error(unwritten(failure)) * count
        return reply

    def _publish_each(self, items: list[Command | Run], at: int) -> tuple[int, bytes]:
        """Send the message at `at` and those directly behind it, each to a channel of its own, up to the first request
        that is no such thing, or behind whose reply there is a commit. How many they are, and the replies."""
        hub = self.hub
        first, end = at, len(items)
        word = self._word
        reply = b""
        replies: list[bytes] | None = None  # of several
        is_heard: bool | None = None  # None: nobody has asked
        try:
            neighbours = hub.neighbours
            if neighbours is not None and neighbours.hint[0] != neighbours.seen:
                hub.look_around()  # all of them were sent before, so this look is enough
            while at < end:
                item = items[at]
                if isinstance(item, Run) or len(item) != 3 or item[0] != word:
                    break
                found = hub.channel_routes.get(item[1])
                if found is not None:
                    route = found
                else:
                    if is_heard is None:
                        is_heard = hub.hears_channels
                    route = hub.route(CHANNELS, item[1]) if is_heard else NOBODY
                if route is not NOBODY:
                    if route.topic is not None or route.address is not None:
                        break
                    last = item[2]
                    size = len(last)
                    tail = (LENGTHS[size] if size < len(LENGTHS) else b"%d\r\n" % size) + last
                    send(hub, route, [tail])
                if at == first:
                    reply = route.reply
                elif replies is None:
                    replies = [reply, route.reply]
                else:
                    replies.append(route.reply)
                at += 1
        except StoreError:
            pass  # the next one that sends that message meets it again, and answers it
        return at - first, reply if replies is None else b"".join(replies)

    def _acknowledged_later(self, reply: bytes, count: int, *, is_heard: bool) -> bytes:
        """The replies to what a commit stands behind: nobody else's bytes, so that they are found and taken back."""
        replies = answers(reply, count, is_heard=is_heard)
        self.engine.unacknowledged.append((self, replies))
        return replies

    def _take_back_unsent(self, route: Route, reply: bytes, count: int) -> None:
        """Law 5: if these messages cannot be put into other processes' mailboxes, their replies become errors."""

        def take_back(failure: Exception) -> None:
            replace(self.said, [(reply, error(unwritten(unsent(route, failure))) * count)])

        self.hub.on_failed_send(self, take_back)

    def _execute_untrusted(self) -> None:
        """One request at a time: each may authenticate, and so change what the next may be."""
        parser = self.parser
        try:
            while not self.closing and (request := parser.next()) is not None:
                if not execute(self, request):
                    self._hold([request])
                    break
                if self.blocked is not None:
                    self._hold([])
                    break
                parser.trusted = self.authenticated
        except ProtocolError as failure:
            parser.failure = failure
        parser.trusted = self.authenticated

    def _refuse(self, failure: ProtocolError) -> None:
        """Answer with an error without losing it: closing a socket with unread data would cost the peer this answer."""
        try:
            for _ in range(_LAST_READS):
                if len(self._read(MAX_READ_BYTES)) < MAX_READ_BYTES:
                    break
        except OSError:
            pass  # there is no more
        self.send(error(failure.text))
        self.close_after_reply()

    # -- held back

    def _hold(self, requests: list[Command]) -> None:
        self._held = requests
        self._held_bytes = sum(len(arg) for request in requests for arg in request) if requests else 0

    def _hold_back(self, data: bytes) -> None:
        """Read ahead while blocked, within limits, and notice when the peer goes."""
        assert self._held is not None
        if self.authenticated:
            self._held += _expanded(self.parser.take(data))
        else:
            self.parser.feed(data)
        self._held_bytes += len(data)
        if self._held_bytes > MAX_HELD_BYTES:
            self._shared.turns.change(self.fd, self._events(reading=False))

    def _let_go(self) -> list[Command] | None:
        held, self._held = self._held, None
        return held

    def resume(self) -> None:
        requests = self._let_go()  # a call: compiled, what follows would take `_held` for None, come what may
        if self._held_bytes > MAX_HELD_BYTES and self.fd >= 0:
            self._shared.turns.change(self.fd, self._events())
        self._held_bytes = 0
        if self.fd < 0 or requests is None:
            return
        if requests:
            self._execute_all(list(requests))
        if self._held is None and self.parser.buffered_bytes:
            self._execute_untrusted()
        if self._held is None and self.parser.failure is not None and not self.closing:
            self._refuse(self.parser.failure)

    # -- what is sent to it

    def _events(self, reading: bool = True) -> int:
        events = READABLE if reading else PEER_CLOSED
        return events | WRITABLE if self.outbox.backlog is not None else events

    def stalled(self) -> None:
        self._shared.turns.change(self.fd, self._events(reading=not self.closing))

    def drained(self) -> None:
        if self.feed is not None and self.hub.durables is not None:
            self.hub.durables.drained(self)
        if self.follows:
            self.engine.followers.drained(self)
        if self.consumes:
            self.engine.consuming.drained(self)
        if self.is_replica:
            self.engine.replicas.drained(self)
        if not self.closing:
            self._shared.turns.change(self.fd, self._events())

    def cut(self) -> None:
        self._was_cut = True
        self.close_now()

    @property
    def takes_more(self) -> bool:
        return self.outbox.backlog is None and not self.closing

    @property
    def was_cut(self) -> bool:
        if not self._was_cut:
            self._was_cut = has_failed(self.socket)
        return self._was_cut

    def unacknowledged_bytes(self) -> int:
        """Return how many bytes have not arrived, including those that the peer's kernel has not acknowledged and those
        that its program has not read, where these are known."""
        if self._peer_socket is None:
            self._peer_socket = PeerSocket(self.socket)
        unacknowledged = sum(map(len, self.said)) + self.outbox.waiting_bytes + unacknowledged_bytes(self.socket)
        unread = self._peer_socket.unread_bytes()  # asked last: what arrives meanwhile is counted twice, and not never
        self._reads_are_known = unread is not None or (self._is_unix and OUTPUT_QUEUE_IS_KNOWN)
        return unacknowledged + (unread or 0)

    @property
    def reads_are_known(self) -> bool:
        return self._reads_are_known

    def let_go(self) -> None:
        if self.fd < 0:
            self.socket.close()

    # -- its end

    def close_after_reply(self) -> None:
        """Execute nothing more; close once the outbox is written."""
        self.closing = True
        self.flush_soon()

    def close_now(self) -> None:
        """Close, and leave nothing behind: names, backlog, descriptor."""
        self._close(is_ended_by_peer=False)

    def give_socket(self) -> int | None:
        if self.fd < 0:
            return None
        given = os.dup(self.fd)
        self.close_now()
        return given

    def lend_socket(self) -> int | None:
        return None if self.fd < 0 else os.dup(self.fd)

    def _close(self, is_ended_by_peer: bool) -> None:
        self._held = None
        if self.fd < 0:
            return
        self.closing = True
        is_looked_at = self.feed is not None and self.hub.forget(self)  # while the kernel can say what has arrived
        shared = self._shared
        shared.turns.unwatch(self.fd)
        self.fd = -1
        if not is_looked_at:
            self.socket.close()
        elif not is_ended_by_peer:
            shut(self.socket)
        self.outbox.end()
        shared.forget(self)

    # -- what CLIENT LIST shows

    @property
    def address(self) -> str:
        return self.peer

    @property
    def transport(self) -> bytes:
        return b"unix" if self._is_unix else b"tcp"

    @property
    def local_address(self) -> str:
        return local_address(self.socket)

    @property
    def is_local(self) -> bool:
        return self._is_unix or is_loopback(self.peer.rpartition(":")[0].strip("[]"))

    @property
    def _is_unix(self) -> bool:
        return self.socket.family == socket.AF_UNIX

    def traffic(self) -> Traffic | None:
        return None if self._is_unix or self.fd < 0 else traffic_of(self.socket)

    def unsent_bytes(self) -> int:
        unsent = unacknowledged_bytes(self.socket) if self.fd >= 0 else 0
        return 0 if unsent >= NOBODY_KNOWS else unsent

    def footprint(self) -> Footprint:
        outbox = self.outbox
        query = self._chunk_bytes + self.parser.buffered_bytes
        return Footprint(
            descriptor=self.fd,
            unix=self._is_unix,
            awaited_events=b"rw" if outbox.backlog is not None else b"r",
            query=query,
            arguments=self._held_bytes,
            outbox=sum(map(len, self.said)),
            outbox_parts=outbox.parts,
            outbox_parts_memory=outbox.waiting_bytes,
            total=SESSION_BYTES + query + self._held_bytes + outbox.memory_bytes,
        )


def _expanded(items: Sequence[Command | Run]) -> list[Command]:
    requests: list[Command] = []
    for item in items:
        if isinstance(item, Run):
            requests += item.commands()
        else:
            requests.append(item)
    return requests
