"""A store whose state is known at every moment: a program writes one transaction after the other, and notes when.

    python diary.py TARGET NOTES COUNT      TARGET: a store's folder, or a server's URL; COUNT 0: until it is killed

State N is that of the transactions 1 to N. A note is `N BEGAN_MS ENDED_MS`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import redis

import rlite_pubsub
from rlite_pubsub.server.background import Server

FIELDS, TRIMMED_TO, SPREAD = 100, 100, 300
PAUSE_S = 0.004
"""Between two: each is replayed."""


def client_of(target: str) -> redis.Redis:
    return redis.from_url(target) if "://" in target else rlite_pubsub.Redis(target)


def write(client: redis.Redis, number: int) -> None:
    """Transaction `number`."""
    with client.pipeline(transaction=True) as changes:
        changes.set("n", number)
        changes.xadd("t", {"n": number, "x": "x" * (number * 37 % 900)}, id=f"{number}-1")
        changes.hset("h", f"f{number % FIELDS}", str(number))
        changes.zadd("z", {f"m{number % SPREAD}": number})
        changes.set(f"k{number * 7919 % SPREAD}", "v" * (number % 300))
        if number % 50 == 0:
            changes.xtrim("t", maxlen=TRIMMED_TO, approximate=False)
            changes.set("large", str(number) * 5000)
        changes.execute()


class Note(NamedTuple):
    """Of one transaction."""

    number: int
    began_ms: int
    ended_ms: int


def notes(path: Path) -> list[Note]:
    lines = path.read_text().splitlines() if path.exists() else []
    return [Note(*map(int, line.split())) for line in lines if len(line.split()) == 3]


def start(target: str, path: Path, count: int = 0, **options: Any) -> subprocess.Popen[bytes]:
    """The program."""
    return subprocess.Popen([sys.executable, __file__, target, str(path), str(count)], **options)


def digest(folder: Path) -> tuple[int, bytes]:
    """(N, DEBUG DIGEST) of a store that nobody else has open."""
    with Server(dir=str(folder), enable_debug_command="yes") as server, redis.Redis(port=server.port) as client:
        number = int(client.get("n") or 0)  # type: ignore[arg-type]
        return number, bytes(client.execute_command("DEBUG", "DIGEST"))


class Replay:
    """State after state, from the beginning: what a restored one must be."""

    def __init__(self, folder: Path) -> None:
        self._server = Server(dir=str(folder), enable_debug_command="yes").start()
        self._client: redis.Redis = redis.Redis(port=self._server.port)
        self._number = 0

    def digest(self, number: int) -> bytes:
        """Of state N; no earlier one may follow."""
        assert number >= self._number, "ask in order"
        while self._number < number:
            self._number += 1
            write(self._client, self._number)
        return bytes(self._client.execute_command("DEBUG", "DIGEST"))

    def close(self) -> None:
        self._client.close()
        self._server.stop()


def main(target: str, path: str, count: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    with client_of(target) as client:
        number = int(client.get("n") or 0)  # type: ignore[arg-type]
        last = number + int(count) if int(count) else sys.maxsize
        while number < last:
            number += 1
            began_ms = int(time.time() * 1000)
            write(client, number)
            os.write(descriptor, f"{number} {began_ms} {int(time.time() * 1000)}\n".encode())
            time.sleep(PAUSE_S)


if __name__ == "__main__":
    main(*sys.argv[1:])
