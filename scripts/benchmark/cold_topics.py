"""What a server says of the topics whose oldest entries are in its cold store, and when they are."""

from __future__ import annotations

import re
import time

from . import wire
from .client import Client, WrongAnswer

SEALED_WITHIN_S = 120.0
LOOK_AGAIN_S = 0.01
READ_BYTES = 1 << 16


def seal_from(client: Client, block_bytes: int) -> None:
    """How large a topic has to be from now on that its oldest entries are sealed."""
    client.call(wire.command(b"CONFIG", b"SET", b"cold-block-size", b"%d" % block_bytes), b"+OK\r\n")


def until_sealed(client: Client, topic: bytes, block_bytes: int) -> int:
    """Waits until no block can be made of the topic any more; how many entries are in blocks then."""
    limit = time.monotonic() + SEALED_WITHIN_S
    while hot_bytes(client, topic) >= block_bytes or not _is_whole(client, topic):
        if time.monotonic() > limit:
            raise WrongAnswer(f"{cold_entries(client, topic)} entries were sealed in {SEALED_WITHIN_S:.0f} s, not all")
        time.sleep(LOOK_AGAIN_S)
    return cold_entries(client, topic)


def cold_entries(client: Client, topic: bytes) -> int:
    return _told(client, topic)[b"cold-entries"]


def hot_bytes(client: Client, topic: bytes) -> int:
    told = _told(client, topic)
    return told[b"bytes"] - told[b"cold-bytes"]


def row_groups_read(client: Client) -> int:
    """Since the server started."""
    found = re.search(rb"cold_row_groups_read:(\d+)", client.ask(wire.command(b"INFO")))
    if found is None:
        raise WrongAnswer("INFO tells nothing of the cold store")
    return int(found[1])


def _is_whole(client: Client, topic: bytes) -> bool:
    """Whether all entries of the last block have left the hot log."""
    told = _answer(client, b"TOPIC.BLOCKS", topic)
    (sealed_to,) = re.findall(rb"\r\nsealed-to\r\n\$\d+\r\n([\d-]+)", told)
    lasts = re.findall(rb"\r\nlast\r\n\$\d+\r\n([\d-]+)", told)
    return bool(lasts) and lasts[-1] == sealed_to


def _told(client: Client, topic: bytes) -> dict[bytes, int]:
    """The numbers of TOPIC.INFO."""
    answer = _answer(client, b"TOPIC.INFO", topic)
    return {name: int(number) for name, number in re.findall(rb"\r\n([a-z-]+)\r\n:(\d+)", answer)}


def _answer(client: Client, command: bytes, topic: bytes) -> bytes:
    """Whatever is said, up to its end."""
    client.send(wire.command(command, topic) + wire.command(b"PING"))
    got = b""
    while not got.endswith(b"+PONG\r\n"):
        part = client.socket.recv(READ_BYTES)
        if not part:
            raise WrongAnswer(f"{command.decode()} was answered {got!r} and the connection was closed")
        got += part
    if got.startswith(b"-"):
        raise WrongAnswer(f"{command.decode()} was answered {got!r}")
    return got
