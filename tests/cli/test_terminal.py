"""The door to the terminal: whatever others have named their things, it commands nobody's terminal."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from hypothesis import given
from hypothesis import strategies as st
from patience import until
from server_process import ServerProcess

from rlite_pubsub.cli.terminal import Door, harmless

EVIL = b"\x1b]0;pwn\x07\x1b[31mX\x9b31m\r\nforged line"
PROGRAM = [sys.executable, "-m", "rlite_pubsub"]


@given(st.text())
def test_nothing_that_commands_a_terminal_goes_through(text: str) -> None:
    shown = harmless(text)
    assert all(char in "\n\t" or char.isprintable() for char in shown)
    assert not set(shown) & {*map(chr, range(9)), *map(chr, range(11, 32)), "\x7f", *map(chr, range(0x80, 0xA0))}
    assert harmless(shown) == shown
    if text.isascii() and text.isprintable():
        assert shown == text


def test_the_door_writes_to_its_stream_and_is_one_otherwise() -> None:
    stream = io.TextIOWrapper(io.BytesIO(), "utf-8")
    door = Door(stream)
    print("a\x1bb", file=door)  # type: ignore[call-overload]
    door.flush()
    assert stream.buffer.getvalue() == b"a\\x1bb\n"  # type: ignore[attr-defined]
    assert door.encoding == "utf-8"


def on_terminal(*words: bytes | str) -> bytes:
    """What a command shows on a terminal until it ends."""
    leader, follower = pty.openpty()
    with subprocess.Popen([*PROGRAM, *words], stdout=follower, stderr=follower, stdin=subprocess.DEVNULL) as process:
        os.close(follower)
        said = b""
        try:
            while more := os.read(leader, 65536):
                said += more
        except OSError:
            pass  # the other end is closed
        os.close(leader)
        assert process.wait() in (0, 1)
    return said


@pytest.fixture
def busy(server: ServerProcess) -> Iterator[ServerProcess]:
    """A server with a channel and a durable subscriber of an evil name."""
    client = redis.Redis(port=server.port)
    client.execute_command("SUBSCRIBER.ATTACH", EVIL)
    client.connection_pool.disconnect()
    with client.pubsub() as pubsub:
        pubsub.subscribe(EVIL)
        until(lambda: EVIL in client.pubsub_channels(), "the channel")
        yield server


def test_names_of_others_are_escaped_on_a_terminal_and_raw_in_a_pipe(busy: ServerProcess) -> None:
    url = f"redis://127.0.0.1:{busy.port}"
    for command in ("channels", "subscribers"):
        said = on_terminal(command, "-s", url)
        assert b"\x1b" not in said and b"\x9b" not in said and b"\\x1b]0;pwn\\x07" in said, said
        assert b"forged line" in said and b"\nforged" not in said
    piped = subprocess.run([*PROGRAM, "channels", "-s", url], capture_output=True, check=True).stdout
    assert piped == EVIL + b" 1\n"


@pytest.mark.parametrize("command", ["subscribe", "psubscribe"])
def test_messages_of_others_are_escaped_on_a_terminal(busy: ServerProcess, command: str) -> None:
    leader, follower = pty.openpty()
    url = f"redis://127.0.0.1:{busy.port}"
    words = [*PROGRAM, command, "-s", url, "-n", "1", "news"]
    with subprocess.Popen(words, stdout=follower, stderr=follower, stdin=subprocess.DEVNULL) as process:
        os.close(follower)
        client = redis.Redis(port=busy.port)
        until(lambda: client.publish("news", EVIL), "the subscription")
        said = os.read(leader, 65536)
        process.wait()
        os.close(leader)
    assert b"\x1b" not in said and said.startswith(b"news \\x1b]0;pwn\\x07")


def test_an_error_that_names_what_others_have_named_is_escaped(tmp_path: Path) -> None:
    said = on_terminal("subscribers", "-s", b"redis://\x1b]0;pwn\x07:1")
    assert b"\x1b" not in said
