"""The contestants: real processes on free ports with folders of their own, and fakeredis inside this process.

A contestant is a fresh one for each session of pytest; `reset` makes it as good as new between tests.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import fakeredis
import redis
import redis.asyncio
from patience import PATIENCE_S, until
from ports import free_port

from compat_tests.wire import Wire


def find_program(variable: str, name: str) -> str | None:
    """The program that `variable` names; where the variable is not set, the one on PATH. Empty means: there is none."""
    chosen = os.environ.get(variable)
    return shutil.which(name) if chosen is None else chosen or None


REDIS_SERVER = find_program("RLITE_TEST_REDIS_SERVER", "redis-server")
REDIS_CLI = find_program("RLITE_TEST_REDIS_CLI", "redis-cli")
VALKEY_SERVER = find_program("RLITE_TEST_VALKEY_SERVER", "valkey-server")


class SocketServer:
    """A server process that clients reach over TCP."""

    def __init__(self, name: str, command: list[str], folder: Path) -> None:
        self.name = name
        self.port = free_port()
        self._log = (folder / "server.log").open("wb")
        words = [*command, "--port", str(self.port), "--dir", str(folder), "--enable-debug-command", "yes"]
        self._process = subprocess.Popen(words, stdout=self._log, stderr=subprocess.STDOUT, cwd=folder)
        self._await_start(folder)
        self._control = self.client()

    def _await_start(self, folder: Path) -> None:
        until(lambda: self._answers() or self._process.poll() is not None, self.name)
        assert self._process.poll() is None, (folder / "server.log").read_text(errors="replace")

    def _answers(self) -> bool:
        try:
            with self.wire() as wire:
                wire.ask(b"PING")
            return True
        except OSError:
            return False

    def wire(self, protocol: int = 2) -> Wire:
        """A bare connection."""
        return Wire(self.port, protocol)

    def client(self, **options: Any) -> redis.Redis:
        """A redis-py client."""
        return redis.Redis(port=self.port, **options)

    def async_client(self, **options: Any) -> redis.asyncio.Redis:
        """An asyncio client of redis-py."""
        return redis.asyncio.Redis(port=self.port, **options)

    def reset(self) -> None:
        """Nobody connected, nothing kept, nothing counted."""
        control = self._control
        control.client_unpause()
        control.execute_command("CLIENT", "KILL", "SKIPME", "yes")
        control.flushall()
        control.config_resetstat()
        control.slowlog_reset()

    def stop(self) -> None:
        self._control.close()
        self._process.terminate()
        self._process.wait(PATIENCE_S)
        self._log.close()


def start_ours(folder: Path, *flags: str) -> SocketServer:
    program = str(Path(sys.executable).with_name("rlite-pubsub"))
    command = [program, "serve"] if os.path.exists(program) else [sys.executable, "-m", "rlite_pubsub", "serve"]
    return SocketServer("ours", [*command, *flags], folder)


def start_redis(folder: Path, *flags: str) -> SocketServer:
    assert REDIS_SERVER is not None
    words = [REDIS_SERVER, "--save", "", "--enable-module-command", "no", *flags]
    return SocketServer("redis", words, folder)


class FakeServer:
    """fakeredis, which has no socket: only what redis-py asks of it."""

    name = "fakeredis"

    def __init__(self) -> None:
        self._server = fakeredis.FakeServer(version=(7,))

    def client(self, **options: Any) -> redis.Redis:
        return fakeredis.FakeRedis(server=self._server, **options)

    def async_client(self, **options: Any) -> redis.asyncio.Redis:
        return fakeredis.FakeAsyncRedis(server=self._server, **options)

    def reset(self) -> None:
        self._server = fakeredis.FakeServer(version=(7,))

    def stop(self) -> None:
        """Nothing runs."""
