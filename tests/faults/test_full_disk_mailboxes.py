"""A full disk without a quota: mailboxes give way to what is published, keys are refused, and what removes works."""

from __future__ import annotations

from pathlib import Path

import pytest
from patience import until

from tests.faults.program import Program, Start
from tests.server.disk import fill
from tests.server.peer import Peer, request
from tests.server.server_process import Serve, ServerProcess

ROUNDS = 100
BATCH = 20
PAYLOAD = "x" * 3000

PUBLISHER = """
client = rlite_pubsub.Redis(folder)
while True:
    first, count = map(int, told().split())
    said = []
    for number in range(first, first + count):
        try:
            said.append(client.publish("news", f"{number:06}" + "x" * 3000))
        except Exception as error:
            said.append(f"{type(error).__name__}: {error}")
    say(next((word for word in said if not isinstance(word, int)), said[-1]))
"""
SLEEPER = """
client = rlite_pubsub.Redis(folder)
client.config_set("slow-subscriber-policy", "POLICY")
pubsub = client.pubsub(ignore_subscribe_messages=True)
pubsub.subscribe("news")
pubsub.get_message(timeout=PATIENCE_S)
say("sleeps")
count = int(told())
lost = heard = 0
last = -1
try:
    while last != count - 1:
        message = pubsub.parse_response(block=True, timeout=PATIENCE_S)
        if message[0] == b"gap":
            lost += message[2]
        elif message[0] == b"message":
            assert int(message[2][:6]) > last
            heard, last = heard + 1, int(message[2][:6])
    say(heard, lost)
except rlite_pubsub.CutOff:
    say("cut off")
"""


def is_refused(reply: object) -> bool:
    return isinstance(reply, Exception) and "No space left on device" in str(reply)


def attach(server: ServerProcess) -> Peer:
    peer = server.connect()
    assert peer.do("CLIENT", "SETNAME", "durable:away") == b"OK"
    peer.send(request("SUBSCRIBE", "news"))
    return peer


def heard_by(peer: Peer, last: int) -> tuple[int, int]:
    """How many messages came, and how many are told to be lost."""
    heard = lost = 0
    before = -1
    while before != last:
        reply = peer.reply()
        if reply[0] == b"gap":
            lost += reply[2]
        elif reply[0] == b"message":
            assert int(reply[2][:6]) > before
            heard, before = heard + 1, int(reply[2][:6])
    return heard, lost


class Crowd:
    """A server and a program that publish, in turns, on a disk that is full, and keys that are removed meanwhile."""

    def __init__(self, server: ServerProcess, publisher: Program | None, disk: Path) -> None:
        self.published = 0
        self._server, self._publisher = server, publisher
        self._peer = server.connect()
        for number in range(ROUNDS):
            assert self._peer.do("SET", f"k{number}", "x" * 2000) == b"OK"
        self.publish_some()  # as it is before
        self.ballast = fill(disk)

    def publish_some(self) -> None:
        """A pipeline of the server's, and one after the other by the program."""
        first = self.published
        for number in range(first, first + BATCH):
            self._peer.send(request("PUBLISH", "news", f"{number:06}{PAYLOAD}"))
        replies = self._peer.replies(BATCH)
        assert not [reply for reply in replies if not isinstance(reply, int)], replies
        self.published += BATCH
        if self._publisher is not None:
            self._publisher.tell(f"{first + BATCH} {BATCH}")
            assert self._publisher.hear() in ("0", "1")
            self.published += BATCH

    def go_on(self, reader: Peer | None = None) -> None:
        """Nobody's publishing is refused, keys are, and what removes works. The reader hears all of it."""
        refused = 0
        for number in range(ROUNDS):
            first = self.published
            self.publish_some()
            if reader is not None:
                heard = [int(reader.reply()[2][:6]) for _ in range(first, self.published)]
                assert heard == list(range(first, self.published))
            refused += is_refused(self._peer.do("SET", "more", "x" * 20_000))
            refused += is_refused(self._peer.do("XADD", "topic", "*", "field", "x" * 20_000))
            assert self._peer.do("DEL", f"k{number}") == 1
            assert self._peer.do("PING") == b"PONG"
        assert refused

    def end(self) -> None:
        self.ballast.unlink()
        until(lambda: self._peer.do("SET", "more", "x" * 20_000) == b"OK", "room")
        self._peer.close()
        if self._publisher is not None:
            self._publisher.kill()
        assert "Traceback" not in self._server.log()


def test_the_mailbox_of_a_durable_subscriber_loses_its_oldest_and_publishers_go_on(
    serve: Serve, tiny_disk: Path, start: Start
) -> None:
    server = serve(store_folder=tiny_disk / "store")
    attach(server).close()
    crowd = Crowd(server, start(PUBLISHER, folder=server.store_folder), tiny_disk)
    crowd.go_on()
    with attach(server) as back:
        heard, lost = heard_by(back, crowd.published - 1)
    assert heard and lost
    assert heard + lost == crowd.published
    crowd.end()


@pytest.mark.parametrize("policy", ["drop-oldest", "disconnect"])
def test_the_mailbox_of_a_process_that_sleeps_gives_way_as_its_policy_says_and_publishers_go_on(
    serve: Serve, tiny_disk: Path, start: Start, policy: str
) -> None:
    server = serve(store_folder=tiny_disk / "store")
    sleeper = start(SLEEPER.replace("POLICY", policy), folder=server.store_folder)
    assert sleeper.hear() == "sleeps"
    crowd = Crowd(server, start(PUBLISHER, folder=server.store_folder), tiny_disk)
    crowd.go_on()
    sleeper.tell(str(crowd.published))
    said = sleeper.hear()
    if policy == "disconnect":
        assert said == "cut off"
    else:
        heard, lost = map(int, said.split())
        assert heard and lost
        assert heard + lost == crowd.published
    crowd.end()


def test_a_session_that_does_not_read_is_cut_off_and_publishers_go_on(
    serve: Serve, tiny_disk: Path, start: Start
) -> None:
    server = serve("--spill-threshold", "16kb", store_folder=tiny_disk / "store")
    with server.connect(receive_buffer_bytes=4096) as slow, server.connect() as quick:
        for peer in (slow, quick):
            peer.do("SUBSCRIBE", "news")
        crowd = Crowd(server, None, tiny_disk)
        quick.replies(BATCH)
        crowd.go_on(quick)
        assert slow.is_closed()
    crowd.end()
