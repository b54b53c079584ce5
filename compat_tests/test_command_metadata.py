"""COMMAND INFO and COMMAND DOCS of every command that Redis has, too, are Redis's, byte for byte.

Redis lists subcommands in the order of a hash table with a random seed, and may have some that we have not: a
container's are sorted, and only ours are compared.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing
from io import BufferedReader
from pathlib import Path
from typing import Any

import pytest
from patience import PATIENCE_S

import rlite_pubsub.commands.all  # noqa: F401  fills the command table
from rlite_pubsub import Server
from rlite_pubsub.engine.table import TABLE

pytestmark = pytest.mark.skipif(shutil.which("redis-server") is None, reason="redis-server is not installed")

PARENTS = list(TABLE.commands.values())
CHILDREN = [child for parent in PARENTS for child in parent.subcommands.values()]
LATER_THAN_REDIS_7_0 = {b"client|setinfo", b"client|no-touch"}
"""Commands of later Redis versions that clients send: 7.0.15 does not know them."""
NIL_OF_RESP2, NIL_OF_RESP3 = (b"$", b"-1"), (b"_", b"")


class Asking:
    """A connection that gives back replies with their type bytes."""

    def __init__(self, stream: socket.socket, protocol: int) -> None:
        self._stream = stream
        self._file: BufferedReader = stream.makefile("rb")
        self.protocol = protocol
        self.ask(b"HELLO", b"%d" % protocol)

    def ask(self, *words: bytes) -> Any:
        self._stream.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(w), w) for w in words))
        return self._read()

    def _read(self) -> Any:
        line = self._file.readline()
        kind, rest = line[:1], line[1:-2]
        if kind in b"*~":
            return kind, [self._read() for _ in range(int(rest))]
        if kind == b"%":
            return kind, [self._read() for _ in range(2 * int(rest))]
        if kind == b"$" and rest != b"-1":
            return kind, self._file.read(int(rest) + 2)[:-2]
        return kind, rest


@pytest.fixture(scope="module")
def redis_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A redis-server of our own."""
    folder: Path = tmp_path_factory.mktemp("redis")
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    command = ["redis-server", "--port", str(port), "--save", "", "--dir", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    ready = any("Ready to accept connections" in line for line in process.stdout)
    assert ready, "redis-server did not start"
    yield port
    process.terminate()
    process.wait(PATIENCE_S)
    process.stdout.close()


@pytest.fixture(scope="module", params=[2, 3], ids=["RESP2", "RESP3"])
def both(request: pytest.FixtureRequest, redis_port: int) -> Iterator[tuple[Asking, Asking]]:
    with Server() as server:
        with (
            socket.create_connection(("127.0.0.1", server.port)) as ours,
            socket.create_connection(("127.0.0.1", redis_port)) as theirs,
        ):
            yield Asking(ours, request.param), Asking(theirs, request.param)


@pytest.mark.parametrize(
    "name", [one.name for one in CHILDREN if one.name not in LATER_THAN_REDIS_7_0], ids=bytes.decode
)
def test_subcommand_is_told_of_as_redis_does(both: tuple[Asking, Asking], name: bytes) -> None:
    ours, theirs = both
    if theirs.ask(b"COMMAND", b"INFO", name)[1][0] in (NIL_OF_RESP2, NIL_OF_RESP3):
        pytest.skip("a command of ours")
    assert ours.ask(b"COMMAND", b"INFO", name) == theirs.ask(b"COMMAND", b"INFO", name)
    assert ours.ask(b"COMMAND", b"DOCS", name) == theirs.ask(b"COMMAND", b"DOCS", name)


@pytest.mark.parametrize("name", [one.name for one in PARENTS], ids=bytes.decode)
def test_command_is_told_of_as_redis_does(both: tuple[Asking, Asking], name: bytes) -> None:
    ours, theirs = both
    our_info, their_info = (one.ask(b"COMMAND", b"INFO", name)[1][0] for one in both)
    if not isinstance(their_info[1], list):
        pytest.skip("a command of ours")
    assert our_info[1][:9] == their_info[1][:9]
    shared = _names(our_info) & _names(their_info)
    assert _subcommands(our_info, shared) == _subcommands(their_info, shared)
    assert not shared or our_info[1][9][0] == their_info[1][9][0]
    our_docs, their_docs = (one.ask(b"COMMAND", b"DOCS", name)[1][1][1] for one in both)
    assert _without_subcommands(our_docs) == _without_subcommands(their_docs)


def _subcommands(info: Any, names: set[bytes]) -> list[Any]:
    return sorted((sub for sub in info[1][9][1] if sub[1][0][1] in names), key=lambda sub: bytes(sub[1][0][1]))


def _names(info: Any) -> set[bytes]:
    return {sub[1][0][1] for sub in info[1][9][1]}


def _without_subcommands(docs: list[Any]) -> list[Any]:
    return docs[: docs.index((b"$", b"subcommands"))] if (b"$", b"subcommands") in docs else docs
