"""A redis-server as a process of its own, and what a subscriber hears."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis
from patience import until
from ports import free_port

PROGRAM = os.environ.get("RLITE_TEST_REDIS_SERVER") or shutil.which("redis-server")


class RedisProcess:
    """With its data in a folder, if it is to come back with them. Its first flag may be a file."""

    def __init__(self, folder: Path, *flags: str, port: int | None = None) -> None:
        if PROGRAM is None:
            pytest.skip("no redis-server to link to")
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.port = port or free_port()
        self._flags = flags
        self.start()

    def start(self) -> None:
        own = ["--port", str(self.port), "--dir", str(self.folder)]
        if self._flags and not self._flags[0].startswith("-"):
            words = [self._flags[0], *own, *self._flags[1:]]
        else:
            words = [*own, "--save", "", *self._flags]
        self._process = subprocess.Popen([str(PROGRAM), *words], stdout=subprocess.DEVNULL)
        until(self._answers, "redis-server")

    def _answers(self) -> bool:
        try:
            with self.client() as client:
                return bool(client.ping())
        except redis.ConnectionError:
            return False
        except redis.AuthenticationError:
            return True

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    def client(self) -> redis.Redis:
        return redis.Redis(port=self.port)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


class Ear:
    """Hears channels, and says what has come."""

    def __init__(self, port: int, *channels: str, shards: tuple[str, ...] = ()) -> None:
        self._pubsub = redis.Redis(port=port).pubsub()
        self.heard: list[bytes] = []
        for channel in channels:
            (self._pubsub.psubscribe if "*" in channel else self._pubsub.subscribe)(channel)
        for channel in shards:
            self._pubsub.ssubscribe(channel)
        for _ in (*channels, *shards):
            assert self._pubsub.get_message(timeout=30) is not None

    def all(self) -> list[bytes]:
        """What has come so far."""
        while (message := self._pubsub.get_message(ignore_subscribe_messages=True, timeout=0.01)) is not None:
            self.heard.append(message["data"])
        return self.heard

    def hears(self, word: bytes) -> bool:
        return word in self.all()


def linked(port: int, name: str) -> bool:
    """Whether this link is up."""
    client = redis.Redis(port=port)
    return bool(client.execute_command("LINK", "INFO", name)[b"state"] == b"up")


def open_way(speaker: int, ear: Ear, channel: str) -> None:
    """What is said at this port is heard."""
    client = redis.Redis(port=speaker)

    def said_and_heard() -> bool:
        client.publish(channel, "begin")
        return ear.hears(b"begin")

    until(said_and_heard, "the way")


def end_way(speakers: dict[str, int], ears: list[Ear], channel: str) -> None:
    """Everything that was said before at these ports has been heard."""
    for name, port in speakers.items():
        redis.Redis(port=port).publish(channel, f"end:{name}")
    for ear in ears:
        for name in speakers:
            until(lambda ear=ear, name=name: ear.hears(f"end:{name}".encode()), "the end")  # type: ignore[misc]


def link_process(store: Path) -> int:
    """The process with links of this store."""
    for folder in Path("/proc").iterdir():
        try:
            if b"rlite_pubsub.links.process" in (folder / "cmdline").read_bytes():
                if any(os.readlink(fd).startswith(str(store / "links")) for fd in (folder / "fd").iterdir()):
                    return int(folder.name)
        except OSError:
            continue
    return 0


@contextmanager
def redis_servers(folder: Path) -> Iterator[Callable[..., RedisProcess]]:
    """Starts any number; they are gone afterwards."""
    found: list[RedisProcess] = []

    def start(*flags: str, highest_port: int = 65535) -> RedisProcess:
        port = free_port()
        while port > highest_port:
            port = free_port()
        found.append(RedisProcess(folder / f"redis{len(found)}", *flags, port=port))
        return found[-1]

    try:
        yield start
    finally:
        for each in found:
            each.kill()
