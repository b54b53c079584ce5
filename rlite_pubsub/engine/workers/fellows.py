"""The other workers of a server, as one of them reaches them: over a private unix socket that each of them listens on.

A request that all workers answer together (`Command.merge`) is executed by the worker that got it and by all others,
and answered once, with their merged replies. The loop does not wait for that: only the session does, and no longer than
`TIMEOUT_S` for a stopped worker. In a transaction or a script only the session's own worker answers (law 9).
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from rlite_pubsub.engine.settings.directives import DIRECTIVES
from rlite_pubsub.engine.settings.settings import SettingError, split
from rlite_pubsub.engine.waits.thread_wait import ThreadWait
from rlite_pubsub.protocol.encoder import bulk_array, encode
from rlite_pubsub.protocol.errors import CommandError
from rlite_pubsub.protocol.peer import Peer
from rlite_pubsub.protocol.replies import NO_REPLY, Error, Reply

if TYPE_CHECKING:
    from rlite_pubsub.engine.engine import Engine
    from rlite_pubsub.engine.session import CommandSession
    from rlite_pubsub.engine.settings.settings import Settings
    from rlite_pubsub.engine.table import Command, Handler, Table
    from rlite_pubsub.engine.workers.merging import Merge

log = logging.getLogger("rlite_pubsub")

TIMEOUT_S = 2.0
_LOOK_S = 0.5
_AGAIN_S = 0.2
_NOT_TOLD = frozenset(("immutable", "settled", "secret"))
"""Settings that nobody can have changed, or that belong to the store."""


class Fellows:
    """The other workers, as one of them sees them."""

    def __init__(self, number: int, paths: Sequence[str]) -> None:
        self.number = number
        self.count = len(paths)
        self.own = paths[number]
        self._others = [path for path in paths if path != self.own]
        self._own_address = f"{self.own}:0"
        self._marks = [b" addr=%b:0 " % path.encode() for path in paths]
        self._watched: set[str] = set()
        self._watching = threading.Lock()

    def is_one(self, session: CommandSession) -> bool:
        """Return whether another worker speaks through this session."""
        return session.address == self._own_address

    def take_settings_over(self, settings: Settings) -> None:
        """Take over the settings that the others got after the start; one that does not answer is skipped. For a worker
        that begins, and serves nobody yet."""
        for answer in self._ask([b"CONFIG", b"GET", b"*"], everyone=False):
            if isinstance(answer, list):
                for name, text in zip(answer[::2], answer[1::2], strict=True):
                    self._take_over(settings, name.decode("latin-1"), text)

    @staticmethod
    def _take_over(settings: Settings, name: str, text: bytes) -> None:
        directive = DIRECTIVES.get(name)
        if directive is None or directive.flags & _NOT_TOLD or settings.text(name) == text:
            return
        try:
            settings.set(name, split(directive, text))
        except SettingError as refusal:
            log.warning("Another worker has %s %s, which can't be here: %s", name, text.decode("latin-1"), refusal)

    def answer_together(self, table: Table) -> None:
        """Let all workers answer the commands that declare how to merge replies."""
        table.complete()
        for command in table.commands.values():
            for each in (command, *command.subcommands.values()):
                if each.merge is not None and each.handler is not None:
                    each.handler = self._asking(each, each.handler, each.merge)
        monitor = table.commands[b"monitor"]
        assert monitor.handler is not None
        monitor.handler = self._monitoring(monitor.handler)

    def _asking(self, command: Command, execute: Handler, merge: Merge) -> Handler:
        def ask(session: CommandSession, args: list[bytes]) -> Reply:
            if session.deny_blocking or self.is_one(session):
                return execute(session, args)
            request = list(args)  # a handler may hide secrets in its own copy
            try:
                own = execute(session, args)
            except CommandError as refusal:
                own = Error(refusal.text)
                if not command.merges_refusals:
                    raise
            session.wait_for(ThreadWait(session, partial(self._ask, request), partial(finish, session, request, own)))
            return NO_REPLY

        def finish(session: CommandSession, request: list[bytes], own: Reply, others: list[Reply]) -> bytes:
            return encode(merge(request, [own, *others]), session.protocol)

        return ask

    def _ask(self, request: list[bytes], *, everyone: bool = True) -> list[Reply]:
        """Return the answers of all others that answer in time, or of one of them. Called in a thread."""
        asked: list[Peer] = []
        answers: list[Reply] = []
        for path in self._others:
            if asked and not everyone:
                break
            try:
                peer = Peer("", 0, TIMEOUT_S, path=path)
                asked.append(peer)
                peer.send(bulk_array(tuple(request)))
            except OSError as failure:
                log.debug("Another worker could not be asked: %s", failure)
        for peer in asked:
            try:
                answer = peer.answer()
                answers.append(Error(str(answer).encode()) if isinstance(answer, Exception) else self._cleared(answer))
            except OSError as failure:
                log.warning("Another worker did not answer: %s", failure)
            peer.close()
        return answers

    def _cleared(self, answer: object) -> Reply:
        """Remove the lines of CLIENT LIST that show workers asking each other."""
        if isinstance(answer, bytes) and any(mark in answer for mark in self._marks):
            kept = [line for line in answer.splitlines(True) if not any(mark in line for mark in self._marks)]
            return b"".join(kept)
        return answer

    # -- MONITOR

    def _monitoring(self, execute: Handler) -> Handler:
        def monitor(session: CommandSession, args: list[bytes]) -> Reply:
            reply = execute(session, args)
            if not self.is_one(session):
                self._show_others(session.engine)
            return reply

        return monitor

    def _show_others(self, engine: Engine) -> None:
        """Show what the others execute to MONITOR, as long as a session here uses it."""
        tell = engine.call_from_thread
        assert tell is not None
        with self._watching:
            new = [path for path in self._others if path not in self._watched]
            self._watched.update(new)
        for path in new:
            threading.Thread(target=self._watch, args=(path, engine, tell), name="rlite-monitor", daemon=True).start()

    def _watch(self, path: str, engine: Engine, tell: Callable[[Callable[[], None]], None]) -> None:
        while self._goes_on(path, engine):
            try:
                self._read(path, engine, tell)
            except OSError:  # it is being replaced
                time.sleep(_AGAIN_S)

    def _goes_on(self, path: str, engine: Engine) -> bool:
        with self._watching:
            if any(not self.is_one(monitor) for monitor in list(engine.monitors)):
                return True
            self._watched.discard(path)
            return False

    def _read(self, path: str, engine: Engine, tell: Callable[[Callable[[], None]], None]) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
            line.settimeout(_LOOK_S)
            line.connect(path)
            line.sendall(b"*1\r\n$7\r\nMONITOR\r\n")
            rest, is_greeted = b"", False
            while any(not self.is_one(monitor) for monitor in list(engine.monitors)):
                try:
                    data = line.recv(1 << 16)
                except TimeoutError:
                    continue
                if not data:
                    raise ConnectionError("the other worker has ended")
                whole, _, rest = (rest + data).rpartition(b"\r\n")
                if whole and not is_greeted:
                    whole, is_greeted = whole.partition(b"\r\n")[2], True  # +OK
                if whole:
                    tell(partial(self._show, engine, whole + b"\r\n"))

    def _show(self, engine: Engine, lines: bytes) -> None:
        for monitor in list(engine.monitors):
            if not (monitor.closing or monitor.replies_off or self.is_one(monitor)):
                monitor.send(lines)
