"""A cluster of three redis-servers, as real processes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

import redis
from other_server import RedisProcess
from patience import until

from rlite_pubsub.links.target import SLOTS, slot_of

_STEP = SLOTS // 3 + 1


class RedisCluster:
    """Node n has the n-th third of the slots."""

    def __init__(self, start_redis: Callable[..., RedisProcess]) -> None:
        flags = ("--cluster-enabled", "yes", "--cluster-node-timeout", "2000", "--appendonly", "yes")
        self.nodes = [start_redis(*flags, highest_port=55_000) for _ in range(3)]
        for number, node in enumerate(self.nodes):
            last = min((number + 1) * _STEP, SLOTS) - 1
            node.client().execute_command("CLUSTER ADDSLOTSRANGE", number * _STEP, last)
            node.client().execute_command("CLUSTER MEET", "127.0.0.1", self.nodes[0].port)
        until(self._is_whole, "the cluster")

    def _is_whole(self) -> bool:
        return all(
            self._info(node)["cluster_state"] == "ok" and self._info(node)["cluster_known_nodes"] == "3"
            for node in self.nodes
        )

    @staticmethod
    def _info(node: RedisProcess) -> dict[str, Any]:
        found: dict[str, Any] = node.client().execute_command("CLUSTER INFO")
        return found

    @property
    def url(self) -> str:
        return "redis+cluster://" + ",".join(f"127.0.0.1:{node.port}" for node in self.nodes)

    def owner(self, name: str) -> RedisProcess:
        """Whose slot this name's was at the beginning."""
        return self.nodes[slot_of(name.encode()) // _STEP]

    def move(self, name: str, to: RedisProcess) -> None:
        """Let another node have this name's slot, which has no keys."""
        with closing(to.client()) as client:
            identity = client.execute_command("CLUSTER MYID").decode()
        others = [node for node in self.nodes if node is not to]
        for node in (to, *others):
            with closing(redis.Redis(port=node.port)) as client:
                client.execute_command("CLUSTER SETSLOT", slot_of(name.encode()), "NODE", identity)
