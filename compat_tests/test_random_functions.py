"""Libraries of functions: the same random requests to ours and to the real server get the same replies, and leave the
same libraries behind."""

from __future__ import annotations

import os
import re

from compat_tests.function_commands import Requests
from compat_tests.seeds import in_turn
from compat_tests.servers import SocketServer
from compat_tests.transcript import Frame, frames
from compat_tests.wire import Wire

REQUESTS = 400
_ONE_OF_SEVERAL = re.compile(rb"(Function|Library) \w+ already")
SEEDS = range(int(os.environ.get("RLITE_COMPAT_EXAMPLES", 400)) // 40)


def comparable(words: list[bytes], frame: Frame) -> Frame:
    """Libraries, and functions of one, have no order: of several that are in the way any may be named."""
    if frame[0] == b"-":
        assert isinstance(frame[1], bytes)
        return b"-", _ONE_OF_SEVERAL.sub(rb"\1 X already", frame[1])
    if [word.lower() for word in words[:2]] == [b"function", b"list"]:
        return unordered(frame)
    return frame


def unordered(frame: Frame) -> Frame:
    kind, content = frame
    if not isinstance(content, list):
        return frame
    inside = [unordered(each) for each in content]
    return kind, sorted(inside, key=repr) if kind == b"*" and inside and isinstance(inside[0][1], list) else inside


def restorable(wire: Wire) -> bytes:
    """What FUNCTION DUMP answers."""
    kind, payload = frames(wire.ask(b"FUNCTION", b"DUMP"))[0]
    assert kind == b"$" and isinstance(payload, bytes)
    return payload


@in_turn(SEEDS)
def test_functions_answer_what_redis_does(ours: SocketServer, theirs: SocketServer, protocol: int, seed: int) -> None:
    servers = (ours, theirs)
    wires = [server.wire(protocol) for server in servers]
    for wire in wires:
        wire.ask(b"FUNCTION", b"FLUSH")
        wire.ask(b"FLUSHALL")
    requests = Requests(seed)
    said: list[list[bytes]] = []
    for step in range(REQUESTS):
        words = requests.next()
        said.append(words)
        if words[1:] == [b"DUMP"]:
            # Each takes what the other has dumped.
            dumps = [restorable(wire) for wire in wires]
            requests.dumps += dumps
            for wire, dump in zip(wires, reversed(dumps), strict=True):
                assert wire.ask(b"FUNCTION", b"RESTORE", dump, b"FLUSH") == b"+OK\r\n", f"after {said[-5:]}"
            continue
        mine, yours = (comparable(words, frames(wire.ask(*words))[0]) for wire in wires)
        assert mine == yours, f"after {said[-5:]}"
        if step % 20 == 0:
            listing = [b"FUNCTION", b"LIST", b"WITHCODE"]
            mine, yours = (comparable(listing, frames(wire.ask(*listing))[0]) for wire in wires)
            assert mine == yours, f"after {said[-20:]}"
