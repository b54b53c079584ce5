"""Readers that stall, read a little, subscribe and unsubscribe at random: each gets what a model says, in its order."""

from __future__ import annotations

from random import Random

import pytest
from patience import until
from peer import Peer, Word, request
from server_process import Serve, ServerProcess
from store_view import look

CHANNELS = ("a", "b", "c")
EVERYTHING = "*"
SIZES = (0, 10, 100, 5_000, 100_000)


class Reader:
    """A client with a small receive buffer, and what it should get."""

    def __init__(self, server: ServerProcess, protocol: int) -> None:
        self.peer = server.connect(protocol=protocol, receive_buffer_bytes=4096)
        self.channels: dict[str, None] = {}
        self.has_pattern = False
        self.expected: list[list[object]] = []

    @property
    def count(self) -> int:
        return len(self.channels) + self.has_pattern

    def toggle(self, channel: str, watcher: Peer) -> None:
        """Take or leave a channel, and wait until that is done, which cannot be read yet."""
        wanted = watcher.do("PUBSUB", "NUMSUB", channel)[1]
        if channel in self.channels:
            del self.channels[channel]
            self._ask("unsubscribe", channel)
            wanted -= 1
        else:
            self.channels[channel] = None
            self._ask("subscribe", channel)
            wanted += 1
        until(lambda: watcher.do("PUBSUB", "NUMSUB", channel)[1] == wanted)

    def take_pattern(self) -> None:
        """Before anything else, so that it can be read at once."""
        self.has_pattern = True
        self._ask("psubscribe", EVERYTHING)
        self.read(1)

    def expect(self, channel: str, payload: bytes) -> int:
        """A message was published; how many times it comes."""
        received: list[list[object]] = []
        if channel in self.channels:
            received.append([b"message", channel.encode(), payload])
        if self.has_pattern:
            received.append([b"pmessage", EVERYTHING.encode(), channel.encode(), payload])
        self.expected += received
        return len(received)

    def read(self, count: int) -> None:
        due, self.expected = self.expected[:count], self.expected[count:]
        for expected in due:
            assert self.peer.reply() == expected

    def _ask(self, command: str, name: Word) -> None:
        self.peer.send(request(command, name))
        self.expected.append([command.encode(), str(name).encode(), self.count])


@pytest.mark.parametrize("threshold", ["0", "1", "4096", "64kb", "256kb"])
@pytest.mark.parametrize("seed", [1, 2])
def test_every_reader_gets_what_it_should_in_order_however_it_reads(serve: Serve, threshold: str, seed: int) -> None:
    random = Random(f"{seed} {threshold}")
    server = serve("--spill-threshold", threshold)
    publisher = server.connect()
    readers = [Reader(server, random.choice((2, 3))) for _ in range(4)]
    readers[0].take_pattern()
    for number in range(300):
        reader, channel = random.choice(readers), random.choice(CHANNELS)
        match random.choices(("toggle", "publish", "read"), (1, 6, 2))[0]:
            case "toggle":
                reader.toggle(channel, publisher)
            case "publish":
                payload = b"%d:" % number + b"." * random.choice(SIZES)
                times = 1 if len(payload) > 10_000 else random.choice((1, 5, 40))
                publisher.send(request("PUBLISH", channel, payload) * times)
                receivers = [sum(one.expect(channel, payload) for one in readers) for _ in range(times)]
                assert publisher.replies(times) == receivers
            case "read":
                reader.read(random.randrange(60))
    for reader in readers:
        reader.read(len(reader.expected))
    until(lambda: look(server.store_folder).has_no_mail)
    assert "Traceback" not in server.log()
