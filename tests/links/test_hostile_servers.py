"""What stands at the other end of a link may be anybody's: the process that has the links stays small, and goes on."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import pytest
import redis
from hostile_server import HostileServer, endless
from patience import until
from server_process import ServerProcess

from rlite_pubsub.protocol.appended import read_requests
from rlite_pubsub.protocol.bounded import ReplyLimits

HELLO = b"%1\r\n+proto\r\n:3\r\n"


def _polite(then: bytes, unit: bytes = b"", most: int = 0) -> Callable[[socket.socket], None]:
    """Answer as a server does until somebody subscribes, and then say this."""

    def answer(peer: socket.socket) -> None:
        for words, _ in read_requests(peer.makefile("rb")):
            word = words[0].upper()
            if word in (b"SUBSCRIBE", b"SSUBSCRIBE", b"PSUBSCRIBE"):
                peer.sendall(then)
                for _ in range(most):
                    peer.sendall(unit)
            elif word == b"INFO":
                peer.sendall(b"$10\r\n# Server\r\n\r\n")
            else:
                peer.sendall({b"HELLO": HELLO, b"LINK": b"-ERR unknown command\r\n"}.get(word, b"+OK\r\n"))

    return answer


SERVERS = {
    "an endless answer to HELLO": endless(b"$500000000000\r\n"),
    "an answer to HELLO with 4,294,967,295 pairs": endless(b"%4294967295\r\n", b"", 0),
    "pushes without words": _polite(b">0\r\n"),
    "pushes that are too short": _polite(b">1\r\n$7\r\nmessage\r\n>3\r\n:1\r\n:2\r\n:3\r\n"),
    "pushes of nulls": _polite(b">4\r\n$8\r\npmessage\r\n_\r\n_\r\n_\r\n"),
    "pushes without end": _polite(b">3\r\n$7\r\nmessage\r\n$1\r\na\r\n$500000000000\r\n", b"x" * (1 << 20), 4096),
    "400,000,000 replies": _polite(b"*400000000\r\n"),
}


def _memory_of_links(server: ServerProcess) -> int:
    """The most that the process that has the links has used."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes()
            status = (folder / "status").read_text()
        except OSError:
            continue
        if b"rlite_pubsub.links.process" in words and f"PPid:\t{server.pid}\n" in status:
            return next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmHWM"))
    return 0


@pytest.mark.parametrize("answer", SERVERS.values(), ids=list(SERVERS))
def test_a_hostile_server_ends_a_connection_and_nothing_else(
    server: ServerProcess, answer: Callable[[socket.socket], None]
) -> None:
    client = redis.Redis(port=server.port)
    with HostileServer(answer) as theirs:
        client.execute_command("LINK", "CREATE", "l", f"redis://127.0.0.1:{theirs.port}", "CHANNELS", "*")
        until(lambda: client.execute_command("LINK", "INFO", "l")[b"error"], "the end of a connection")
        until(lambda: theirs.met > 2, "another connection")
        assert _memory_of_links(server) < ReplyLimits().cost + (256 << 20)
    assert "Traceback" not in server.log() + server.output()
    assert client.ping()
