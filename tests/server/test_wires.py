"""What sockets are watched, read and written with: in C, as a compiled package has it, and without."""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from c_module import Rude, collecting_garbage, compiled
from patience import until
from peer import Peer, request
from server_process import Serve, ServerProcess
from test_busy_scripts import BUSY, answer

import rlite_pubsub.server
from rlite_pubsub.server.wires import MAX_EVENTS, READ, READ_BYTES, Poller, PurePoller, Send, sender

SOURCE = Path(rlite_pubsub.server.__file__).with_name("_wires.c")
READABLE, WRITABLE = select.EPOLLIN, select.EPOLLOUT


@pytest.fixture(scope="module")
def c() -> Any:
    """_wires.c, compiled."""
    return compiled(SOURCE)


class Wires:
    """A poller, connections of which it watches one end, and what it reads."""

    def __init__(self, poller: Poller) -> None:
        self.poller = poller
        self.read: list[tuple[int, bytes | None]] = []
        self.ready: list[tuple[int, int]] = []
        self._sockets: list[socket.socket] = []

    def pair(self, *, reads: bool = True) -> tuple[socket.socket, socket.socket]:
        with closing(socket.create_server(("127.0.0.1", 0))) as listener:
            theirs = socket.create_connection(listener.getsockname())
            ours, _ = listener.accept()
        ours.setblocking(False)
        self._sockets += [ours, theirs]
        self.poller.register(ours.fileno(), READABLE)
        if reads:
            self.reads_along(ours)
        return ours, theirs

    def reads_along(self, ours: socket.socket) -> None:
        fd = ours.fileno()

        def read(events: int, data: bytes | None) -> None:
            self.read.append((fd, data))

        self.poller.read_along(fd, read)

    def poll(self, timeout_s: float | None = 0) -> None:
        self.ready = self.poller.poll(timeout_s, MAX_EVENTS)
        read = self.poller.take()
        for reader, data in read:
            reader(READABLE, data)
        assert [fd for fd, _ in self.ready].count(READ) == (1 if read else 0)
        self.ready = [(fd, events) for fd, events in self.ready if fd != READ]

    def close(self) -> None:
        for each in self._sockets:
            each.close()
        self.poller.close()


@pytest.fixture
def wires(c: Any) -> Iterator[Wires]:
    with closing(Wires(c.Poller())) as made:
        yield made


@pytest.fixture(params=["C", "pure"])
def any_wires(request: pytest.FixtureRequest) -> Iterator[Wires]:
    poller = PurePoller() if request.param == "pure" else request.getfixturevalue("c").Poller()
    with closing(Wires(poller)) as made:
        yield made


def test_what_is_not_read_along_is_ready(any_wires: Wires) -> None:
    ours, theirs = any_wires.pair(reads=False)
    any_wires.poll()
    assert any_wires.ready == []
    theirs.sendall(b"hello")
    any_wires.poll(None)
    assert any_wires.ready == [(ours.fileno(), READABLE)]
    any_wires.poller.modify(ours.fileno(), WRITABLE)
    any_wires.poll(None)
    assert any_wires.ready == [(ours.fileno(), WRITABLE)]
    any_wires.poller.unregister(ours.fileno())
    any_wires.poll(0.01)
    assert (any_wires.ready, any_wires.read) == ([], [])
    with pytest.raises(OSError):
        any_wires.poller.unregister(ours.fileno())


def test_what_has_come_is_read_along(wires: Wires) -> None:
    (first, first_peer), (second, second_peer) = wires.pair(), wires.pair()
    first_peer.sendall(b"hello")
    second_peer.sendall(b"\0world")
    wires.poll(None)
    wires.poll(0)
    assert sorted(wires.read) == sorted([(first.fileno(), b"hello"), (second.fileno(), b"\0world")])
    wires.poller.read_along(first.fileno(), None)
    first_peer.sendall(b"x")
    wires.poll(None)
    assert wires.ready == [(first.fileno(), READABLE)]


def test_a_socket_has_its_share_and_no_more(wires: Wires) -> None:
    ours, theirs = wires.pair()
    theirs.sendall(b"x" * (READ_BYTES + 5))
    until(lambda: len(ours.recv(1 << 20, socket.MSG_PEEK)) == READ_BYTES + 5, "all of it")
    wires.poll()
    assert [len(data or b"") for _, data in wires.read] == [READ_BYTES]
    wires.poll()
    assert [len(data or b"") for _, data in wires.read] == [READ_BYTES, 5]


def test_one_look_reads_no_more_than_a_megabyte(wires: Wires) -> None:
    pairs = [wires.pair() for _ in range(70)]
    for ours, theirs in pairs:
        theirs.sendall(b"x" * READ_BYTES)
        until(lambda ours=ours: len(ours.recv(1 << 20, socket.MSG_PEEK)) == READ_BYTES, "all of it")
    wires.poll()
    assert (len(wires.read), len(wires.ready)) == (64, 6)


def test_the_end_is_told(wires: Wires) -> None:
    ours, theirs = wires.pair()
    theirs.shutdown(socket.SHUT_WR)
    wires.poll(None)
    assert wires.read == [(ours.fileno(), b"")]


def test_a_writable_socket_reads_for_itself(wires: Wires) -> None:
    ours, theirs = wires.pair()
    wires.poller.modify(ours.fileno(), READABLE | WRITABLE)
    theirs.sendall(b"x")
    until(lambda: ours.recv(1, socket.MSG_PEEK), "the byte")
    wires.poll()
    assert (wires.read, wires.ready) == ([], [(ours.fileno(), READABLE | WRITABLE)])


def test_a_failed_read_is_told(wires: Wires, tmp_path: Path) -> None:
    """A descriptor that is readable and cannot be read: a listening socket."""
    listener = socket.create_server(("127.0.0.1", 0))
    wires._sockets.append(listener)
    wires.poller.register(listener.fileno(), READABLE)
    wires.reads_along(listener)
    wires._sockets.append(socket.create_connection(listener.getsockname()))
    wires.poll(None)
    assert wires.read == [(listener.fileno(), None)]


def test_readers_are_let_go(c: Any) -> None:
    gone = []

    class Reader:
        def __call__(self, events: int, data: bytes | None) -> None:
            raise AssertionError

        def __del__(self) -> None:
            gone.append(1)

    poller = c.Poller()
    poller.read_along(3, Reader())
    poller.read_along(3, Reader())
    assert len(gone) == 1
    poller.read_along(3, None)
    assert len(gone) == 2
    poller.read_along(1000, Reader())
    poller.close()
    assert len(gone) == 3
    with pytest.raises(ValueError):
        poller.read_along(-1, Reader())
    with pytest.raises(OSError):
        poller.poll(0, MAX_EVENTS)


@pytest.fixture(params=["C", "as built"])
def new_sender(request: pytest.FixtureRequest) -> Callable[[int], Send]:
    return request.getfixturevalue("c").Sender if request.param == "C" else sender


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_what_is_sent_arrives_as_far_as_there_is_room(new_sender: Callable[[int], Send], kind: Any) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        send = new_sender(ours.fileno())
        assert send(kind(b"hello")) == 5
        assert theirs.recv(10) == b"hello"
        sent = 0
        with pytest.raises(BlockingIOError):
            while True:
                sent += send(kind(b"x" * 200_000))
        left = sent
        while left:
            left -= len(theirs.recv(1 << 20))
        theirs.close()
        with pytest.raises(BrokenPipeError):
            send(kind(b"x"))
    with pytest.raises(OSError):
        send(kind(b"x"))


# -- requests that one look finds together


@pytest.fixture
def stopped(serve: Serve) -> Iterator[tuple[ServerProcess, Callable[[], None]]]:
    """A server, and what stops it until it is let go by SIGCONT."""
    server = serve("--lua-time-limit", "10")

    def stop() -> None:
        os.kill(server.pid, signal.SIGSTOP)
        until(lambda: Path(f"/proc/{server.pid}/stat").read_text().split(") ")[1].startswith("T"), "stopped")

    yield server, stop
    os.kill(server.pid, signal.SIGCONT)


def test_who_is_killed_by_another_request_of_a_turn_is_heard_no_more(
    stopped: tuple[ServerProcess, Callable[[], None]],
) -> None:
    server, stop = stopped
    with server.connect() as killer, server.connect() as victim:
        number = victim.do("CLIENT", "ID")
        killer.do("PING")  # so that the kernel tells of this one first
        stop()
        killer.send(request("CLIENT", "KILL", "ID", number))
        victim.send(request("SET", "k", "v"))
        late = Peer(server.port)  # may get the descriptor that the victim has had
        os.kill(server.pid, signal.SIGCONT)
        assert killer.reply() == 1
        assert victim.is_closed()
        late.send(request("GET", "k"))
        assert late.reply() is None
        late.close()


def test_who_was_read_when_a_script_began_hears_that_it_is_busy(
    stopped: tuple[ServerProcess, Callable[[], None]],
) -> None:
    server, stop = stopped
    with server.connect() as runner, server.connect() as other:
        other.do("SET", "k", "v")
        runner.do("EVAL", "return 1", 0)
        stop()
        runner.send(request("EVAL", "while true do redis.call('ping') end", 0) + request("GET", "k"))
        other.send(request("GET", "k"))
        os.kill(server.pid, signal.SIGCONT)
        assert str(other.reply()) == BUSY
        more = 200
        for _ in range(more):
            runner.send(request("ECHO", "x" * 1000))
        assert answer(other, "SCRIPT", "KILL") == "OK"
        assert "Script killed" in str(runner.reply())
        assert runner.reply() == b"v"
        assert runner.replies(more) == [b"x" * 1000] * more
        assert runner.do("GET", "k") == b"v"


POLLS = 4000


def test_each_of_two_pollers_in_two_threads_sees_its_own_descriptors_only(c: Any) -> None:
    """Where both write to one array, the one that waits for Python's lock with what it has found finds the other's."""
    stray: list[int] = []

    def look(poller: Any, own: set[int]) -> None:
        for _ in range(POLLS):
            stray.extend(fd for fd, _ in poller.poll(1.0, MAX_EVENTS) if fd not in own)

    pollers, threads, ends = [], [], []
    for _ in range(2):
        poller, own = c.Poller(), set()
        for _ in range(8):
            readable, writable = os.pipe()
            os.write(writable, b"x")
            poller.register(readable, READABLE)
            own.add(readable)
            ends += [readable, writable]
        pollers.append(poller)
        threads.append(threading.Thread(target=look, args=(poller, own)))
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
        for poller in pollers:
            poller.close()
        for end in ends:
            os.close(end)
    assert stray == []


def test_a_poller_is_polled_by_one_thread_at_a_time(wires: Wires) -> None:
    ours, theirs = wires.pair(reads=False)
    thread = threading.Thread(target=wires.poller.poll, args=(None, MAX_EVENTS))
    thread.start()

    def is_refused() -> bool:
        try:
            wires.poller.poll(0, MAX_EVENTS)
        except RuntimeError as error:
            assert str(error) == "poll() of a poller that another thread polls"
            return True
        return False

    until(is_refused, "the refusal")
    theirs.sendall(b"x")
    thread.join()
    wires.poll()
    assert wires.ready == [(ours.fileno(), READABLE)]


def test_no_more_is_ready_than_was_asked_for(any_wires: Wires) -> None:
    for _ in range(3):
        any_wires.pair(reads=False)[1].sendall(b"x")
    assert len(any_wires.poller.poll(None, 2)) <= 2
    until(lambda: len(any_wires.poller.poll(None, 3)) == 3, "all three")


@pytest.mark.parametrize("act", ["take", "close"])
def test_garbage_that_is_collected_while_it_looks_may_use_it(c: Any, act: str) -> None:
    for behind in range(1, 20):
        wires = Wires(c.Poller())
        for _ in range(10):
            wires.pair()[1].sendall(b"hello")
        with collecting_garbage(behind):
            Rude(getattr(wires.poller, act))
            wires.poller.poll(None, MAX_EVENTS)
        wires.close()


@pytest.mark.parametrize(
    ("use", "error", "text"),
    [
        (lambda c: c.Sender(1)("text"), TypeError, "send() takes a bytes-like object, not 'str'"),
        (lambda c: c.Sender(1)(), TypeError, "send() takes 1 positional argument (0 given)"),
        (lambda c: c.Sender(1)(b"x", x=1), TypeError, "send() takes 1 positional argument (2 given)"),
        (lambda c: c.Poller().poll(), TypeError, "poll() takes 1 or 2 arguments (0 given)"),
        (lambda c: c.Poller().poll(float("nan")), ValueError, "poll() takes a timeout in seconds, not nan"),
        (lambda c: c.Poller().poll(0, 0), ValueError, "poll() takes a number of events above zero"),
        (lambda c: c.Poller().read_along(-1, print), ValueError, "-1 is no file descriptor"),
        (lambda c: c.Poller().read_along(2**31 - 1, print), ValueError, "2147483647 is no file descriptor"),
    ],
)
def test_what_is_wrong_with_a_call_is_said(
    c: Any, use: Callable[[Any], object], error: type[Exception], text: str
) -> None:
    with pytest.raises(error) as caught:
        use(c)
    assert str(caught.value) == text
