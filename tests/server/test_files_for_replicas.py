"""Files for replicas: however many ask at once, one is made for all who wait, and slow readers keep nobody waiting."""

from __future__ import annotations

from pathlib import Path

from patience import until
from peer import Peer, request
from server_process import Serve, ServerProcess

ASKERS = 30


def _senders(server: ServerProcess) -> int:
    """How many processes send files by now."""
    count = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes()
            parent = f"PPid:\t{server.pid}\n" in (folder / "status").read_text()
        except OSError:
            continue
        count += parent and b"rlite_pubsub.replication.sending" in words
    return count


class Asker:
    """Asks for everything as a replica does, and takes its file."""

    def __init__(self, server: ServerProcess) -> None:
        self.peer: Peer = server.connect()
        self.peer.socket.setblocking(False)
        self.data = b""

    def ask(self) -> None:
        self.peer.send(request("REPLCONF", "capa", "eof", "capa", "psync2") + request("PSYNC", "?", -1))

    def has_file(self) -> bool:
        try:
            while piece := self.peer.socket.recv(1 << 20):
                self.data += piece
        except BlockingIOError:
            pass
        _, found, behind = self.data.partition(b"+FULLRESYNC ")
        _, dollar, file = behind.partition(b"\r\n$")
        size, _, body = file.partition(b"\r\n")
        if not found or not dollar:
            return False
        return size.startswith(b"EOF:") and body.endswith(size[4:]) or size.isdigit() and len(body) >= int(size)


def test_one_file_is_made_for_all_who_wait(server: ServerProcess) -> None:
    with server.connect() as client:
        for number in range(200):
            client.do("SET", f"k{number}", "v" * 1000)
    askers = [Asker(server) for _ in range(ASKERS)]
    most = 0
    for asker in askers:
        asker.ask()

    def all_have_it() -> bool:
        nonlocal most
        most = max(most, _senders(server))
        return all([asker.has_file() for asker in askers])

    until(all_have_it, "the files")
    assert most <= 3
    assert all(b"k199" in asker.data for asker in askers)
    with server.connect() as client:
        client.do("SET", "behind", "the files")

    def are_online() -> bool:
        for asker in askers:
            asker.peer.send(request("REPLCONF", "ACK", 1))  # which replicas say each second
        with server.connect() as client:
            return bool(client.do("INFO", "replication").count(b"state=online") == ASKERS)

    until(are_online, "the replicas")


def test_who_does_not_read_keeps_nobody_waiting(serve: Serve) -> None:
    server = serve("--repl-diskless-sync", "no")
    with server.connect() as client:
        for number in range(40):
            client.do("SET", f"k{number}", "v" * 1_000_000)
    slow = server.connect(receive_buffer_bytes=4096)
    slow.send(request("PSYNC", "?", -1))
    until(lambda: _senders(server) == 1, "its file")
    quick = Asker(server)
    quick.ask()
    until(quick.has_file, "the file of who reads")
    slow.close()


def test_who_is_gone_while_it_waits_is_forgotten(server: ServerProcess) -> None:
    for _ in range(10):
        asker = Asker(server)
        asker.ask()
        asker.peer.reset()
    last = Asker(server)
    last.ask()
    until(last.has_file, "its file")
    until(lambda: _senders(server) == 0, "the end of all")
    assert "Traceback" not in server.log() + server.output()
