"""CLUSTER and its clients' commands. A sharded store answers those by which clients find slots (cluster_answers.py); it
has no gossip, no failover and no replicas, and what changes these is refused. Without a directory it is a standalone
Redis's answer: there is no cluster.
"""

from __future__ import annotations

from typing import Any

from rlite_pubsub.commands.shards.cluster_answers import ANSWERS
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, command, container
from rlite_pubsub.protocol.errors import CLUSTER_DISABLED, CommandError
from rlite_pubsub.protocol.replies import Reply

_NOT_HERE = b"ERR %b is not supported: SHARD.HELP shows the commands that assign slots"


def _declare(name: str, arity: int, flags: str, summary: str, complexity: str = "O(1)", **more: Any) -> None:
    more.setdefault("since", "3.0.0")
    answer = ANSWERS.get(name.removeprefix("cluster|"))

    @command(name, arity=arity, flags=flags, group="cluster", summary=summary, complexity=complexity, **more)
    def handler(session: CommandSession, args: list[bytes]) -> Reply:
        if session.engine.sharding.directory is None:
            raise CommandError(CLUSTER_DISABLED)
        if answer is None:
            raise CommandError(_NOT_HERE % name.upper().replace("|", " ").encode())
        return answer(session, args)


def _subcommand(name: str, *words: Any, **more: Any) -> None:
    _declare(f"cluster|{name}", *words, **more)


container(
    "cluster",
    arity=-2,
    group="cluster",
    since="3.0.0",
    summary="A container for cluster commands",
    complexity="Depends on subcommand.",
)

_CHANGE = "no_async_loading admin stale"
_VARIES = ("nondeterministic_output",)
_SLOTS = (Arg("slot", "integer", multiple=True),)
_PER_SLOT = "O(N) where N is the total number of hash slot arguments"
_RANGES = (
    Arg(
        "start-slot_end-slot",
        "block",
        multiple=True,
        arguments=(Arg("start-slot", "integer"), Arg("end-slot", "integer")),
    ),
)
_PER_RANGE = "O(N) where N is the total number of the slots between the start slot and end slot arguments."
_PER_NODE = "O(N) where N is the total number of Cluster nodes"
_NODE = (Arg("node-id"),)

_ASSIGN = "Assign new hash slots to receiving node"
_UNBIND = "Set hash slots as unbound in receiving node"
_subcommand("addslots", -3, _CHANGE, _ASSIGN, _PER_SLOT, arguments=_SLOTS)
_subcommand("addslotsrange", -4, _CHANGE, _ASSIGN, _PER_RANGE, since="7.0.0", arguments=_RANGES)
_subcommand("bumpepoch", 2, _CHANGE, "Advance the cluster config epoch", tips=_VARIES)
_subcommand(
    "count-failure-reports",
    3,
    "admin stale",
    "Return the number of failure reports active for a given node",
    "O(N) where N is the number of failure reports",
    arguments=_NODE,
    tips=_VARIES,
)
_subcommand(
    "countkeysinslot",
    3,
    "stale",
    "Return the number of local keys in the specified hash slot",
    arguments=(Arg("slot", "integer"),),
)
_subcommand("delslots", -3, _CHANGE, _UNBIND, _PER_SLOT, arguments=_SLOTS)
_subcommand("delslotsrange", -4, _CHANGE, _UNBIND, _PER_RANGE, since="7.0.0", arguments=_RANGES)
_subcommand(
    "failover",
    -2,
    _CHANGE,
    "Forces a replica to perform a manual failover of its master.",
    arguments=(
        Arg(
            "options",
            "oneof",
            optional=True,
            arguments=(Arg("force", "pure-token", token="FORCE"), Arg("takeover", "pure-token", token="TAKEOVER")),
        ),
    ),
)
_subcommand("flushslots", 2, _CHANGE, "Delete a node's own slots information")
_subcommand("forget", 3, _CHANGE, "Remove a node from the nodes table", arguments=_NODE)
_subcommand(
    "getkeysinslot",
    4,
    "stale",
    "Return local key names in the specified hash slot",
    "O(log(N)) where N is the number of requested keys",
    arguments=(Arg("slot", "integer"), Arg("count", "integer")),
    tips=_VARIES,
)
_subcommand("help", 2, "loading stale", "Show helpful text about the different subcommands", since="5.0.0")
_subcommand("info", 2, "stale", "Provides info about Redis Cluster node state", tips=_VARIES)
_subcommand(
    "keyslot",
    3,
    "stale",
    "Returns the hash slot of the specified key",
    "O(N) where N is the number of bytes in the key",
    arguments=(Arg("key"),),
)
_subcommand(
    "links",
    2,
    "stale",
    "Returns a list of all TCP links to and from peer nodes in cluster",
    _PER_NODE,
    since="7.0.0",
    tips=_VARIES,
)
_subcommand(
    "meet",
    -4,
    _CHANGE,
    "Force a node cluster to handshake with another node",
    arguments=(Arg("ip"), Arg("port", "integer"), Arg("cluster_bus_port", "integer", optional=True, since="4.0.0")),
    history=(("4.0.0", "Added the optional `cluster_bus_port` argument."),),
)
_subcommand("myid", 2, "stale", "Return the node id")
_subcommand("nodes", 2, "stale", "Get Cluster config for the node", _PER_NODE, tips=_VARIES)
_REPLICAS = "List replica nodes of the specified master node"
_subcommand("replicas", 3, "admin stale", _REPLICAS, since="5.0.0", arguments=_NODE, tips=_VARIES)
_subcommand(
    "replicate", 3, _CHANGE, "Reconfigure a node as a replica of the specified master node", arguments=_NODE
)
_subcommand(
    "reset",
    -2,
    "admin stale noscript",
    "Reset a Redis Cluster node",
    "O(N) where N is the number of known nodes. The command may execute a FLUSHALL as a side effect.",
    arguments=(
        Arg(
            "hard_soft",
            "oneof",
            optional=True,
            arguments=(Arg("hard", "pure-token", token="HARD"), Arg("soft", "pure-token", token="SOFT")),
        ),
    ),
)
_subcommand("saveconfig", 2, _CHANGE, "Forces the node to save cluster state on disk")
_subcommand(
    "set-config-epoch",
    3,
    _CHANGE,
    "Set the configuration epoch in a new node",
    arguments=(Arg("config-epoch", "integer"),),
)
_subcommand(
    "setslot",
    -4,
    _CHANGE,
    "Bind a hash slot to a specific node",
    arguments=(
        Arg("slot", "integer"),
        Arg(
            "subcommand",
            "oneof",
            arguments=(
                Arg("node-id", token="IMPORTING"),
                Arg("node-id", token="MIGRATING"),
                Arg("node-id", token="NODE"),
                Arg("stable", "pure-token", token="STABLE"),
            ),
        ),
    ),
)
_subcommand(
    "shards",
    2,
    "stale",
    "Get array of cluster slots to node mappings",
    "O(N) where N is the total number of cluster nodes",
    since="7.0.0",
    tips=_VARIES,
)
_subcommand(
    "slaves",
    3,
    "admin stale",
    _REPLICAS,
    arguments=_NODE,
    tips=_VARIES,
    doc_flags=("deprecated",),
    deprecated_since="5.0.0",
    replaced_by="`CLUSTER REPLICAS`",
)
_subcommand(
    "slots",
    2,
    "stale",
    "Get array of Cluster slot to node mappings",
    _PER_NODE,
    tips=_VARIES,
    history=(("4.0.0", "Added node IDs."), ("7.0.0", "Added additional networking metadata field.")),
    doc_flags=("deprecated",),
    deprecated_since="7.0.0",
    replaced_by="`CLUSTER SHARDS`",
)

_declare(
    "readonly",
    1,
    "fast loading stale",
    "Enables read queries for a connection to a cluster replica node",
    categories="connection",
)
_declare(
    "readwrite",
    1,
    "fast loading stale",
    "Disables read queries for a connection to a cluster replica node",
    categories="connection",
)
_declare("asking", 1, "fast", "Sent by cluster clients after an -ASK redirect", categories="connection")
