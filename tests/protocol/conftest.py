"""A real redis-server on a unix socket, where there is one."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from patience import PATIENCE_S, until


class Reference:
    """What a redis-server answers to bytes, whatever they are."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def connect(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(PATIENCE_S)
        connection.connect(str(self.path))
        return connection

    def answer(self, *chunks: bytes) -> bytes:
        """All that comes back until either side has nothing more to say."""
        with self.connect() as connection:
            try:
                for chunk in chunks:
                    connection.sendall(chunk)
                connection.shutdown(socket.SHUT_WR)
            except (BrokenPipeError, ConnectionResetError):
                pass  # it has closed already; what it said first is still there to read
            answer = b""
            try:
                while data := connection.recv(65536):
                    answer += data
            except ConnectionResetError:
                pass  # it closed before it had read everything
            return answer


@pytest.fixture(scope="session")
def reference() -> Iterator[Reference]:
    program = os.environ.get("RLITE_TEST_REDIS_SERVER") or shutil.which("redis-server")
    if program is None:
        pytest.skip("no redis-server to compare with: set RLITE_TEST_REDIS_SERVER or install it")
    with tempfile.TemporaryDirectory(prefix="rlite-") as folder:
        path = Path(folder) / "s"
        arguments = [program, "--port", "0", "--unixsocket", str(path), "--save", "", "--dir", folder]
        process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL)
        try:
            found = Reference(path)
            until(lambda: listens(found) or process.poll() is not None, "redis-server")
            assert process.poll() is None, "redis-server has ended"
            yield found
        finally:
            process.kill()
            process.wait()


def listens(reference: Reference) -> bool:
    try:
        return reference.answer(b"PING\r\n") == b"+PONG\r\n"
    except OSError:
        return False
