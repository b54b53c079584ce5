"""Topics: the same random requests to ours and to the real server get the same replies, and the same keyspace events
follow from them. Approximate trims remove as many entries, and `radix-tree-keys` is the same number of nodes.

Ours counts nodes up to 16, and of `radix-tree-nodes` it knows nothing.
"""

from __future__ import annotations

import os

from compat_tests.seeds import in_turn
from compat_tests.servers import SocketServer
from compat_tests.stream_commands import Requests
from compat_tests.transcript import Frame, frames
from compat_tests.wire import Wire

REQUESTS = 1500
COUNTED_NODES = 16
SEEDS = range(int(os.environ.get("RLITE_COMPAT_EXAMPLES", 400)) // 100)
_NODE_SETTINGS = (b"stream-node-max-entries", b"10", b"stream-node-max-bytes", b"4096")
_DEFAULTS = (b"stream-node-max-entries", b"100", b"notify-keyspace-events", b"")


def comparable(frame: Frame) -> Frame:
    """A reply, with no more of radix trees than ours knows."""
    kind, content = frame
    if not isinstance(content, list):
        return frame
    elements = list(content)
    for place, element in enumerate(elements[:-1]):
        if element == (b"$", b"radix-tree-nodes"):
            elements[place + 1] = (b":", b"")
        elif element == (b"$", b"radix-tree-keys"):
            _, count = elements[place + 1]
            assert isinstance(count, bytes)
            elements[place + 1] = (b":", b"%d" % min(int(count), COUNTED_NODES))
    return kind, elements


class Listener:
    """Hears of all that happens to keys."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        wire.say(b"PSUBSCRIBE", b"__key*", b"the end")
        wire.read(2)

    def heard_until_the_end(self) -> list[bytes]:
        heard = []
        while b"the end" not in (frame := self._wire.read()):
            heard.append(frame)
        return heard


@in_turn(SEEDS)
def test_topics_answer_what_redis_answers(ours: SocketServer, theirs: SocketServer, protocol: int, seed: int) -> None:
    wires = [server.wire(protocol) for server in (ours, theirs)]
    for wire in wires:
        assert wire.ask(b"CONFIG", b"SET", b"notify-keyspace-events", b"KEAm", *_NODE_SETTINGS) == b"+OK\r\n"
        wire.ask(b"FLUSHALL")
        wire.ask(b"SET", b"text", b"x")
    listeners = [Listener(server.wire()) for server in (ours, theirs)]
    requests, said = Requests(seed), []
    for _ in range(REQUESTS):
        words = requests.next()
        said.append(words)
        mine, yours = (comparable(frames(wire.ask(*words))[0]) for wire in wires)
        assert mine == yours, f"after {said[-10:]}"
    for wire in wires:
        wire.ask(b"PUBLISH", b"the end", b"")
        wire.ask(b"CONFIG", b"SET", *_DEFAULTS, *_NODE_SETTINGS[2:])
    heard = [listener.heard_until_the_end() for listener in listeners]
    assert len(heard[0]) > REQUESTS / 10
    assert heard[0] == heard[1]
