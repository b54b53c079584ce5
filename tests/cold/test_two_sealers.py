"""Two servers on one store: one seals, both read; the one that seals is killed, and the other goes on."""

from __future__ import annotations

import os
import signal

from cold_server import about, said, until_sealed
from patience import until
from peer import Peer, request
from server_process import Serve, ServerProcess

BLOCK_BYTES = 64 << 10
WORDS = ("--cold-store", "local", "--cold-block-size", str(BLOCK_BYTES))


def add(peer: Peer, numbers: range) -> None:
    peer.send(b"".join([request("XADD", "t", f"{each}-0", "n", each, "v", b"v" * 200) for each in numbers]))
    assert peer.replies(len(numbers))[-1] == b"%d-0" % numbers[-1]


def numbers_of(peer: Peer) -> list[int]:
    return [int(entry[1][1]) for entry in peer.do("XRANGE", "t", "-", "+")]


def test_a_server_that_seals_nothing_reads_what_another_one_has_sealed(serve: Serve) -> None:
    plain, sealing = serve(), serve(*WORDS)
    with plain.connect() as reader, sealing.connect() as writer:
        add(writer, range(1, 1501))
        until_sealed(writer, "t", BLOCK_BYTES)
        assert numbers_of(reader) == list(range(1, 1501))
        assert reader.do("XDEL", "t", "5-0", "1499-0") == 2
        reader.do("XTRIM", "t", "MINID", "3-0")
        assert said(reader.do("XRANGE", "t", "-", "+")) == said(writer.do("XRANGE", "t", "-", "+"))
        add(reader, range(1501, 3001))
        until_sealed(writer, "t", BLOCK_BYTES)
        assert numbers_of(reader) == numbers_of(writer) == [3, 4, *range(6, 1499), *range(1500, 3001)]


def test_where_both_seal_and_one_is_killed_the_other_goes_on(serve: Serve) -> None:
    servers = [serve(*WORDS), serve(*WORDS)]
    sent = 0
    with servers[0].connect() as one, servers[1].connect() as other:
        for _ in range(5):
            for peer in (one, other):
                add(peer, range(sent + 1, sent + 501))
                sent += 500
        until_sealed(other, "t", BLOCK_BYTES)
        end(servers[0])
        before = about(other, "t")[b"cold-entries"]
        add(other, range(sent + 1, sent + 1501))
        until_sealed(other, "t", BLOCK_BYTES)
        assert about(other, "t")[b"cold-entries"] > before
        assert numbers_of(other) == list(range(1, sent + 1501))


def end(server: ServerProcess) -> None:
    assert server.end(by=signal.SIGKILL) == -signal.SIGKILL


def test_the_sealing_process_goes_with_its_server(serve: Serve) -> None:
    server = serve(*WORDS)
    with server.connect() as peer:
        add(peer, range(1, 1501))
        until_sealed(peer, "t", BLOCK_BYTES)
    sealers = children_of(server)
    assert len(sealers) == 1
    end(server)
    until(lambda: not any(is_alive(pid) for pid in sealers), "the end of the sealing process")


def children_of(server: ServerProcess) -> list[int]:
    with open(f"/proc/{server.pid}/task/{server.pid}/children") as file:
        return [int(word) for word in file.read().split()]


def is_alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def test_a_sealing_process_that_dies_is_begun_anew(serve: Serve) -> None:
    server = serve(*WORDS)
    with server.connect() as peer:
        add(peer, range(1, 1501))
        until_sealed(peer, "t", BLOCK_BYTES)
        before = children_of(server)
        os.kill(before[0], signal.SIGKILL)
        add(peer, range(1501, 3001))
        until_sealed(peer, "t", BLOCK_BYTES)
        assert children_of(server) != before
        assert numbers_of(peer) == list(range(1, 3001))
