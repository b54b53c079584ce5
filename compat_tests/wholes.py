"""Three servers of ours as one sharded store, and three redis-servers as a Redis Cluster with the same slots."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import redis
from patience import PATIENCE_S, until
from ports import free_port

from compat_tests.servers import REDIS_SERVER, SocketServer

ROOT = Path(__file__).parents[1]
OURS = [sys.executable, "-m", "rlite_pubsub", "serve"]


def shard(*words: str) -> str:
    """`rlite-pubsub shard …`; what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "rlite_pubsub", "shard", *words],
        capture_output=True, text=True, cwd=ROOT, timeout=PATIENCE_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


class Members:
    """Servers that are one, in the order in which they were named."""

    def __init__(self, folder: Path, count: int, name: str) -> None:
        self.servers: list[SocketServer] = []
        self.folders = [folder / f"{name}{number}" for number in range(count)]
        for each in self.folders:
            each.mkdir()

    @property
    def ports(self) -> list[int]:
        return [server.port for server in self.servers]

    def runs(self) -> list[list[tuple[int, int]]]:
        """The slots of each, by the first one's word."""
        said = self.servers[0].client().execute_command("CLUSTER", "SLOTS")
        found: list[list[tuple[int, int]]] = [[] for _ in self.servers]
        for first, last, (_, port, *_rest) in said:
            found[self.ports.index(port)].append((first, last))
        return found

    def stop(self) -> None:
        for server in self.servers:
            server.stop()


class Ours(Members):
    """Made one by the command line. Each keeps its port when it is started again."""

    def __init__(self, folder: Path, count: int = 3, *flags: str) -> None:
        super().__init__(folder, count, "ours")
        self._flags = flags
        self.servers = [SocketServer("ours", [*OURS, *flags], each) for each in self.folders]
        shard("create", *self.addresses)

    @property
    def addresses(self) -> list[str]:
        return [f"127.0.0.1:{port}" for port in self.ports]

    def kill(self, number: int) -> None:
        """As by kill -9."""
        process = self.servers[number]._process
        process.send_signal(signal.SIGKILL)
        process.wait(PATIENCE_S)

    def is_dead(self, number: int) -> bool:
        return self.servers[number]._process.poll() is not None

    def start(self, number: int, failpoint: str = "", *flags: str) -> None:
        """Once more, on the same port and the same store. It dies at that failpoint. These flags override those of
        all."""
        server = self.servers[number]
        words = [*OURS, *self._flags, *flags, "--port", str(server.port), "--dir", str(self.folders[number])]
        environment = {**os.environ, "RLITE_FAILPOINT": failpoint}
        server._process = subprocess.Popen(
            words, stdout=server._log, stderr=subprocess.STDOUT, cwd=ROOT, env=environment
        )
        until(lambda: server._answers() or server._process.poll() is not None, "a member")
        assert failpoint or server._process.poll() is None


class Theirs(Members):
    """A Redis Cluster; each node has the slots that are said here."""

    def __init__(self, folder: Path, runs: Sequence[Sequence[tuple[int, int]]]) -> None:
        super().__init__(folder, len(runs), "redis")
        assert REDIS_SERVER is not None
        buses = [free_port() for _ in runs]
        for each, bus in zip(self.folders, buses, strict=True):
            words = [REDIS_SERVER, "--save", "", "--cluster-enabled", "yes", "--cluster-port", str(bus)]
            self.servers.append(SocketServer("redis", words, each))
        clients = [server.client() for server in self.servers]
        for number, (client, own) in enumerate(zip(clients, runs, strict=True)):
            client.execute_command("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
            client.execute_command("CLUSTER", "ADDSLOTSRANGE", *[slot for run in own for slot in run])
        for port, bus in zip(self.ports[1:], buses[1:], strict=True):
            clients[0].execute_command("CLUSTER", "MEET", "127.0.0.1", port, bus)
        until(lambda: all(_is_well(client) for client in clients), "the cluster")
        for client in clients:
            client.close()


def _is_well(client: redis.Redis) -> bool:
    said = client.execute_command("CLUSTER", "INFO")
    return b"cluster_state:ok" in said and b"cluster_known_nodes:3" in said
