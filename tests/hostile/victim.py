"""The server that is attacked, and what must hold after each attack: it lives, it answers others, it warns of nothing
that it did not expect, and its own memory does not grow."""

from __future__ import annotations

import re
import select
import socket
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from http_server import HttpServer
from patience import PATIENCE_S
from peer import Peer, Word, request
from probe import Probe, processor_ms

MAX_GROWTH_BYTES = 16 << 20
MAX_HELD_MS = 50.0
_LOOKED_AT_MS = 20.0
"""Of processor time: less than that nobody was held for long."""
_UNBLOCKED_AFTER_S = 0.005
_WARNING = re.compile(r"Traceback|^\S+:\S+ .* # |Error: ")
_MARK = b"--the attack is over--"

Words = Sequence[Word]
Holds = dict[str, tuple[float, float, str]]
"""By what was asked: the longest time that others waited, ms on the processor and on the wall, and for what."""


class Found(AssertionError):
    """Something that must not be."""


class Garbled(Exception):
    """A reply says that it is longer than it is, so that what comes behind it is taken for a part of it."""


class Victim:
    """A server in `folder`. `expected` tells of a line of its log whether it belongs there."""

    def __init__(self, folder: Path, *flags: str, expected: Callable[[str], bool] = lambda line: False) -> None:
        self.server = HttpServer(
            folder, "--store-quota", "256mb", "--appendfsync", "no", "--enable-debug-command", "yes", *flags
        )
        self._expected = expected
        self._log_at = len(self.server.log())
        self._control = self.server.connect()
        self.last_lines = ""
        """Of its log, from the last attack."""
        self._attacker: Peer | None = None
        self._attacker_id = 0
        self._asked = 0
        self._probe = Probe(self.server.port, self.server.pid)
        self._calm_bytes = 0
        self._probe.take()
        self.holds: Holds = {}

    # -- attacks

    def ask(self, requests: Sequence[Words]) -> list[object]:
        """The replies to these, and to whatever else was said meanwhile. A command that waits is woken. Raises
        Garbled."""
        peer = self._peer()
        self._asked += 1
        mark = _MARK + b"%d" % self._asked
        try:
            peer.send(b"".join(request(*words) for words in requests) + request("ECHO", mark))
            replies: list[object] = []
            deadline = time.monotonic() + PATIENCE_S
            peer.socket.settimeout(_UNBLOCKED_AFTER_S)
            while True:
                try:
                    reply = peer.reply()
                except TimeoutError:
                    if mark in peer.unfinished:
                        raise Garbled from None
                    self.control("CLIENT", "UNBLOCK", self._attacker_id)
                    if time.monotonic() > deadline:
                        raise Found(f"no answer in {PATIENCE_S} s") from None
                    peer.send(request("ECHO", mark))  # the first may have been refused with what was asked before it
                    continue
                if reply == mark:
                    peer.socket.settimeout(PATIENCE_S)
                    return replies
                if not isinstance(reply, bytes) or not reply.startswith(_MARK):
                    replies.append(reply)
        except OSError:
            self.forget_attacker()
            raise

    def throw(self, data: bytes) -> None:
        """Send bytes over a connection of their own, and close it when the server has read them or closed it."""
        with self.server.connect() as peer:
            try:
                peer.send(data + b"\r\n" + request("ECHO", _MARK))
                while select.select([peer.socket], [], [], _UNBLOCKED_AFTER_S)[0] and peer.socket.recv(1 << 20):
                    pass
            except OSError:
                return

    def throw_http(self, data: bytes) -> bytes:
        """What is answered to bytes that come over HTTP, up to its end, or where a stream of events begins."""
        with socket.create_connection(("127.0.0.1", self.server.http_port), PATIENCE_S) as peer:
            answer = b""
            try:
                peer.sendall(data)
                peer.shutdown(socket.SHUT_WR)
                while b"text/event-stream" not in answer and (piece := peer.recv(1 << 16)):
                    answer += piece
            except TimeoutError:
                raise Found(f"no end in {PATIENCE_S} s") from None
            except OSError:  # it has closed before we were done
                return answer
            return answer

    def control(self, *words: Word) -> object:
        """Ask as somebody who means no harm."""
        return self._control.do(*words)

    def forget_attacker(self) -> None:
        """The next attack comes over a new connection."""
        if self._attacker is not None:
            self._attacker.close()
            self._attacker = None

    def _peer(self) -> Peer:
        if self._attacker is None:
            self._attacker = self.server.connect()
            self._attacker_id = int(self._attacker.do("CLIENT", "ID"))
        return self._attacker

    # -- what must hold

    def watch(self, what: str, attack: Callable[[], object]) -> None:
        """Do it, and look at the server afterwards. Raises Found."""
        before_ms = processor_ms(self.server.pid)
        try:
            attack()
        except OSError as failure:
            self._look()
            raise Found(f"the connection was closed: {failure!r}") from failure
        self._look()
        if processor_ms(self.server.pid) - before_ms > _LOOKED_AT_MS:
            cpu_ms, wall_ms = self._probe.take()
            name = what.split(" ", 1)[0]
            if cpu_ms > self.holds.get(name, (0.0, 0.0, ""))[0]:
                self.holds[name] = cpu_ms, wall_ms, what

    def _look(self) -> None:
        if self.server.process.poll() is not None:
            code = self.server.process.returncode
            raise Found(f"the server is gone: {code}\n{self._new_lines()}{self.server.output()}")
        if self.control("PING") != b"PONG":
            raise Found("no PONG")
        lines = self.last_lines = self._new_lines()
        if any(_WARNING.search(line) and not self._expected(line) for line in lines.splitlines()):
            raise Found(lines)

    def _new_lines(self) -> str:
        with self.server.log_file.open(errors="replace") as log:
            log.seek(self._log_at)
            lines = log.read()
            self._log_at = log.tell()
        return lines

    def calm(self) -> None:
        """Empty the store, and with it what the server has cached of it."""
        self.forget_attacker()
        self.control("FLUSHALL")
        self.control("SLOWLOG", "RESET")
        self.control("LATENCY", "RESET")
        self._look()

    def check_memory(self) -> int:
        """How much it has grown since the first call. Raises Found."""
        self.control("MEMORY", "PURGE")  # what malloc keeps for later is not grown
        own = self.server.own_memory_bytes()
        if not self._calm_bytes:
            self._calm_bytes = own
        if own - self._calm_bytes > MAX_GROWTH_BYTES:
            raise Found(f"its own memory went from {self._calm_bytes >> 20} MB to {own >> 20} MB")
        return own - self._calm_bytes

    def close_gently(self) -> None:
        """As somebody does who wants all to be kept. Raises Found if it does not end so."""
        code = self.server.end()
        self.close()
        if code != 0:
            raise Found(f"its exit code is {code}\n{self.server.log()[-2000:]}")

    def close(self) -> None:
        self._probe.end()
        self.forget_attacker()
        self._control.close()
        self.server.clean_up()


class OfServer:
    """What all attacks on a server of their own have in common."""

    def __init__(self, victim: Victim) -> None:
        self.victim = victim
        self.fill()

    @property
    def holds(self) -> Holds:
        return self.victim.holds

    def fill(self) -> None:
        """What is there to be attacked."""

    def start_over(self) -> None:
        """As at first."""
        self.victim.calm()
        self.fill()

    def check_memory(self) -> int:
        self.victim.calm()
        grown = self.victim.check_memory()
        self.fill()
        return grown

    def close(self) -> None:
        self.victim.close()
