"""A connection as the user at the prompt sees it: commands and their replies, what comes unasked, and where one is.

Promise: what comes unasked is shown when it comes, and is never taken for a reply: pushes of RESP3, and in RESP2 the
messages of a subscriber.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from queue import SimpleQueue

from rlite_pubsub.cli.ending import CommandFailed
from rlite_pubsub.cli.prompt.place import Destination
from rlite_pubsub.cli.prompt.wire import Wire
from rlite_pubsub.protocol.decoder import told_apart
from rlite_pubsub.protocol.frames import Frames
from rlite_pubsub.protocol.replies import Error, Push, Reply
from rlite_pubsub.storage.errors import StoreError

_LOOK_S = 0.1
_MESSAGES = (b"message", b"pmessage", b"smessage")
_SUBSCRIBING = {b"subscribe": b"unsubscribe", b"psubscribe": b"punsubscribe", b"ssubscribe": b"sunsubscribe"}
_CONFIRMING = {*_SUBSCRIBING, *_SUBSCRIBING.values()}


_REDIRECTED = re.compile(rb"(MOVED|ASK) \d+ (\S*):(\d+)")
_MOST_REDIRECTIONS = 16


class ConnectionLost(Exception):
    """The connection is lost; the text says why."""


@dataclass(frozen=True)
class _Redirection:
    """Where a server of a cluster, or of a sharded store, says that a key is."""

    host: str
    """Empty: the same host."""
    port: int
    is_ask: bool


class Dialogue:
    """A dialogue with one place. `show` is given what comes unasked, perhaps by another thread."""

    def __init__(self, place: Destination, show: Callable[[Reply], None]) -> None:
        self.place = place
        self._show = show
        self._wire: Wire | None = None
        self._frames = Frames()
        self._replies: SimpleQueue[Reply | ConnectionLost] = SimpleQueue()
        self._is_awaiting = False
        self._is_lost = False
        self._listener: threading.Thread | None = None
        self._is_over = threading.Event()
        self.database = place.database
        self.is_in_transaction = False
        self._database_before = place.database
        self.protocol = place.protocol
        self._names: dict[bytes, set[bytes]] = {kind: set() for kind in _SUBSCRIBING}

    @property
    def is_connected(self) -> bool:
        """True if a command reaches somebody."""
        return self._wire is not None and not self._is_lost

    @property
    def has_subscribed(self) -> bool:
        """True if it subscribes to channels, patterns or shards."""
        return any(self._names.values())

    # -- connecting

    def connect(self, *, listens: bool) -> None:
        """Anew. `listens`: what comes unasked is shown at once, by a thread; otherwise when a reply is awaited. Raises
        CommandFailed, which names the place."""
        self.close()
        try:
            self._wire = self.place.connect()
        except (OSError, StoreError) as failure:
            if self.place.store is not None:
                raise CommandFailed(str(failure)) from failure
            why = getattr(failure, "strerror", None) or failure
            raise CommandFailed(f"Could not connect to Redis at {self.place.shown}: {why}") from failure
        self._frames, self._replies = Frames(), SimpleQueue()
        self.is_in_transaction = False
        self._names = {kind: set() for kind in _SUBSCRIBING}
        self._is_lost = False
        try:
            self._greet()
        except (OSError, ConnectionLost, CommandFailed) as failure:
            self.close()
            raise CommandFailed(f"{self.place.shown}: {failure}") from failure
        if listens:
            self._is_over = threading.Event()
            self._listener = threading.Thread(target=self._listen, args=(self._is_over,), daemon=True)
            self._listener.start()

    def go(self, place: Destination, *, listens: bool) -> None:
        """Connect to another place, and stay with it even if nobody is there. Raises as `connect` does."""
        self.close()
        self.place = place
        self.connect(listens=listens)

    def _greet(self) -> None:
        """As redis-cli, it goes on where the server refuses the password or RESP3, and says so; but not where it
        refuses the database: the commands are not meant for another one."""
        for request in self._greeting():
            for reply in self._ask_here(request):
                if isinstance(reply, Error):
                    failure = f"{request[0].decode()} failed: {reply.decode(errors='backslashreplace')}"
                    if request[0] == b"SELECT":
                        raise CommandFailed(failure)
                    print(failure, file=sys.stderr)

    def _greeting(self) -> Iterator[list[bytes]]:
        place = self.place
        if place.password is not None and place.store is None:
            user = [place.user.encode(errors="surrogateescape")] if place.user is not None else []
            yield [b"AUTH", *user, place.password.encode(errors="surrogateescape")]
        if self.protocol != 2:
            yield [b"HELLO", b"%d" % self.protocol]
        if self.database:
            yield [b"SELECT", b"%d" % self.database]

    def close(self) -> None:
        """Leave."""
        wire, self._wire = self._wire, None
        self._is_over.set()
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.join()
        if wire is not None:
            wire.close()

    # -- asking

    def ask(self, request: list[bytes]) -> Iterator[Reply]:
        """Say it; its replies: one, but as many as there are names for commands that subscribe. After MONITOR they do
        not end. Where the place says so, redirections are followed, and the other server stays the place. Raises
        OSError and ConnectionLost, but never BrokenPipeError, which is left to the output; CommandFailed if nobody is
        where a redirection leads, or if they do not end. A server that is shut down answers by closing the connection:
        SHUTDOWN has no reply then, and that is no failure."""
        for _ in range(_MOST_REDIRECTIONS):
            found = None
            for reply in self._ask_here(request):
                found = _redirection(reply) if self.place.follows else None
                if found is None:
                    yield reply
            if found is None:
                return
            self._follow(found)
        raise CommandFailed(f"redirected more than {_MOST_REDIRECTIONS} times")

    def _follow(self, found: _Redirection) -> None:
        self.place = replace(self.place, host=found.host or self.place.host, port=found.port, unix=None)
        self.connect(listens=self._listener is not None)
        if found.is_ask:
            [reply] = self.ask_all([[b"ASKING"]])
            if isinstance(reply, Error):
                raise CommandFailed(f"ASKING failed: {reply.decode(errors='backslashreplace')}")

    def _ask_here(self, request: list[bytes]) -> Iterator[Reply]:
        if self._wire is None:
            raise ConnectionLost("not connected")
        self._is_awaiting = True
        try:
            try:
                self._wire.send(request)
            except BrokenPipeError as failure:
                raise ConnectionLost(str(failure)) from failure
            word = request[0].lower()
            awaited = self._awaited(word, request)
            while awaited:
                try:
                    reply = self._next_reply()
                except ConnectionLost:
                    if word == b"shutdown":
                        return
                    raise
                is_confirming = _is_confirming(reply)
                if is_confirming:
                    self._note_name(reply)
                else:
                    self._note(word, request, reply)
                awaited = awaited - 1 if is_confirming else 0
                yield reply
            while word == b"monitor" and not isinstance(reply, Error):
                yield self._next_reply()
        finally:
            self._is_awaiting = False

    def ask_all(self, requests: list[list[bytes]]) -> list[Reply]:
        """Say all, then hear their replies. None may subscribe or change where one is. Raises as `ask` does."""
        if self._wire is None:
            raise ConnectionLost("not connected")
        self._is_awaiting = True
        try:
            for request in requests:
                self._wire.send(request)
            return [self._next_reply() for _ in requests]
        except BrokenPipeError as failure:
            raise ConnectionLost(str(failure)) from failure
        finally:
            self._is_awaiting = False

    def wire(self) -> Wire:
        """Return the connection, for code that sends and receives by itself. Raises ConnectionLost."""
        if self._wire is None:
            raise ConnectionLost("not connected")
        return self._wire

    def wait(self) -> None:
        """Show what comes, until the connection is lost. Raises OSError and ConnectionLost."""
        while True:
            self._show(self._next_reply())

    def _awaited(self, word: bytes, request: list[bytes]) -> int:
        if word not in _CONFIRMING:
            return 1
        if len(request) > 1:
            return len(request) - 1
        kind = next((kind for kind, other in _SUBSCRIBING.items() if other == word), word)
        return max(1, len(self._names[kind]))

    def _next_reply(self) -> Reply:
        while self._listener is None and self._replies.empty():
            self._look(None)
        reply = self._replies.get()
        if isinstance(reply, ConnectionLost):
            self.close()
            raise reply
        return reply

    def _note_name(self, reply: Reply) -> None:
        kind = reply[0]
        if kind in _SUBSCRIBING:
            self._names[kind].add(reply[1])
        else:
            opposite = next(one for one, other in _SUBSCRIBING.items() if other == kind)
            self._names[opposite].discard(reply[1])

    def _note(self, word: bytes, request: list[bytes], reply: Reply) -> None:
        """Note the session's state after a command: its transaction, database, protocol and subscriptions."""
        if word == b"exec" or (word == b"discard" and not isinstance(reply, Error)):
            self.is_in_transaction = False
            if reply is None or isinstance(reply, Error) or word == b"discard":
                self.database = self._database_before
        if isinstance(reply, Error):
            return
        if word == b"multi":
            self.is_in_transaction = True
            self._database_before = self.database
        elif word == b"select" and len(request) == 2 and request[1].isdigit():
            self.database = int(request[1])
        elif word == b"hello" and len(request) > 1 and request[1].isdigit():
            self.protocol = int(request[1])
        elif word == b"reset":
            self.is_in_transaction = False
            self.database, self.protocol = 0, 2
            self._names = {kind: set() for kind in _SUBSCRIBING}

    # -- listening

    def _listen(self, is_over: threading.Event) -> None:
        while not is_over.is_set():
            if not self._look(_LOOK_S):
                return

    def _look(self, timeout_s: float | None) -> bool:
        """Take what has come; False where nothing more will."""
        assert self._wire is not None
        try:
            data = self._wire.receive(timeout_s)
            replies = list(map(told_apart, self._frames.feed(data))) if data else []
        except Exception as failure:  # of sockets, TLS, the store, or of what is no RESP: it is over in any case
            self._lose(str(failure))
            return False
        for reply in replies:
            if self._was_asked_for(reply):
                self._replies.put(reply)
            else:
                self._show(reply)
        if data == b"":
            self._lose("Server closed the connection")
            return False
        return True

    def _lose(self, why: str) -> None:
        self._is_lost = True
        if self.has_subscribed and not self._is_awaiting:
            self._show(Error(b"%b: what is published now is not shown" % why.encode(errors="replace")))
        self._replies.put(ConnectionLost(why))

    def _was_asked_for(self, reply: Reply) -> bool:
        if not self._is_awaiting:
            return False
        if isinstance(reply, Push):
            return _is_confirming(reply)
        is_message = isinstance(reply, list) and len(reply) > 2 and reply[0] in _MESSAGES
        return not (is_message and self.has_subscribed)


def _redirection(reply: Reply) -> _Redirection | None:
    if not isinstance(reply, Error):
        return None
    found = _REDIRECTED.fullmatch(reply)
    return _Redirection(found[2].decode(), int(found[3]), found[1] == b"ASK") if found is not None else None


def _is_confirming(reply: Reply) -> bool:
    return isinstance(reply, list) and len(reply) == 3 and isinstance(reply[0], bytes) and reply[0] in _CONFIRMING
