"""The answers of CLUSTER's subcommands on a member of a sharded store, from the directory, as Redis 7.0.15 gives them.

Every member is a master without replicas. There is no gossip, so whether the others are up is not known here: each is
said to be connected.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from rlite_pubsub.engine.arguments.help import help_reply
from rlite_pubsub.engine.arguments.integers import integer
from rlite_pubsub.engine.arguments.lookup import keyspace_of
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.shards.directory import Member, ShardDirectory
from rlite_pubsub.engine.shards.slots import SLOTS, slot_of
from rlite_pubsub.protocol.errors import CommandError, c_string
from rlite_pubsub.protocol.replies import OK, Reply, Verbatim

_Answer: TypeAlias = Callable[[CommandSession, list[bytes]], Reply]
_BAD_SLOT = b"ERR Invalid slot"
_BAD_SLOT_OR_COUNT = b"ERR Invalid slot or number of keys"
_NO_BUS = 0
"""Where other servers have the port of their gossip."""


def _directory(session: CommandSession) -> ShardDirectory:
    directory = session.engine.sharding.directory
    assert directory is not None
    return directory


def _info(session: CommandSession, args: list[bytes]) -> Reply:
    directory = _directory(session)
    assigned = sum(owner is not None for owner in directory.owners)
    own = directory.member(session.engine.sharding.own)
    epochs = [directory.epoch_of(member) for member in directory.members]
    fields = {
        "cluster_state": "ok" if assigned == SLOTS else "fail",
        "cluster_slots_assigned": assigned,
        "cluster_slots_ok": assigned,
        "cluster_slots_pfail": 0,
        "cluster_slots_fail": 0,
        "cluster_known_nodes": len(directory.members),
        "cluster_size": sum(epoch > 0 for epoch in epochs),
        "cluster_current_epoch": max(epochs),
        "cluster_my_epoch": 0 if own is None else directory.epoch_of(own),
        "cluster_stats_messages_sent": 0,
        "cluster_stats_messages_received": 0,
        "total_cluster_links_buffer_limit_exceeded": 0,
    }
    return Verbatim("".join(f"{name}:{value}\r\n" for name, value in fields.items()).encode())


def _my_id(session: CommandSession, args: list[bytes]) -> Reply:
    return session.engine.sharding.own


def _nodes(session: CommandSession, args: list[bytes]) -> Reply:
    directory, own = _directory(session), session.engine.sharding.own
    lines = []
    for member in directory.members:
        flags = "myself,master" if member.id == own else "master"
        runs = [f"{first}" if first == last else f"{first}-{last}" for first, last in directory.runs_of(member)]
        at = f"{member.address.decode()}@{_NO_BUS}"
        words = [member.id.decode(), at, flags, "-", "0", "0", f"{directory.epoch_of(member)}", "connected", *runs]
        lines.append(" ".join(words) + "\n")
    return Verbatim("".join(lines).encode())


def _slots(session: CommandSession, args: list[bytes]) -> Reply:
    directory = _directory(session)
    found = [(first, last, member) for member in directory.members for first, last in directory.runs_of(member)]
    return [[first, last, [member.host, member.port, member.id, {}]] for first, last, member in sorted(found)]


def _shards(session: CommandSession, args: list[bytes]) -> Reply:
    directory = _directory(session)
    return [_shard(directory, member) for member in directory.members]


def _shard(directory: ShardDirectory, member: Member) -> Reply:
    node: Reply = {
        b"id": member.id,
        b"port": member.port,
        b"ip": member.host,
        b"endpoint": member.host,
        b"role": b"master",
        b"replication-offset": 0,
        b"health": b"online",
    }
    slots: list[Reply] = [slot for run in directory.runs_of(member) for slot in run]
    return {b"slots": slots, b"nodes": [node]}


def _key_slot(session: CommandSession, args: list[bytes]) -> Reply:
    return slot_of(args[2])


def _count_keys(session: CommandSession, args: list[bytes]) -> Reply:
    slot = integer(args[2])
    if not 0 <= slot < SLOTS:
        raise CommandError(_BAD_SLOT)
    return sum(slot_of(name) == slot for name, _ in keyspace_of(session).databases.walk(0))


def _keys(session: CommandSession, args: list[bytes]) -> Reply:
    slot, count = integer(args[2]), integer(args[3])
    if not 0 <= slot < SLOTS or count < 0:
        raise CommandError(_BAD_SLOT_OR_COUNT)
    return [name for name, _ in keyspace_of(session).databases.walk(0) if slot_of(name) == slot][:count]


def _replicas(session: CommandSession, args: list[bytes]) -> Reply:
    _member(session, args[2])
    return []


def _failure_reports(session: CommandSession, args: list[bytes]) -> Reply:
    _member(session, args[2])
    return 0


def _member(session: CommandSession, id: bytes) -> Member:
    member = _directory(session).member(id)
    if member is None:
        raise CommandError(b"ERR Unknown node " + c_string(id))
    return member


def _links(session: CommandSession, args: list[bytes]) -> Reply:
    return []


def _help(session: CommandSession, args: list[bytes]) -> Reply:
    return help_reply(
        args,
        "COUNT-FAILURE-REPORTS <node-id>",
        "    Return number of failure reports for <node-id>.",
        "COUNTKEYSINSLOT <slot>",
        "    Return the number of keys in <slot>.",
        "GETKEYSINSLOT <slot> <count>",
        "    Return key names stored by current node in a slot.",
        "INFO",
        "    Return information about the cluster.",
        "KEYSLOT <key>",
        "    Return the hash slot for <key>.",
        "MYID",
        "    Return the node id.",
        "NODES",
        "    Return cluster configuration seen by node. Output format:",
        "    <id> <ip:port> <flags> <master> <pings> <pongs> <epoch> <link> <slot> ...",
        "REPLICAS <node-id>",
        "    Return <node-id> replicas.",
        "SLOTS",
        "    Return information about slots range mappings. Each range is made of:",
        "    start, end, master and replicas IP addresses, ports and ids",
        "SHARDS",
        "    Return information about slot range mappings and the nodes associated with them.",
        "LINKS",
        "    Return information about all network links between this node and its peers.",
        "    Output format is an array where each array element is a map containing attributes of a link",
    )


def _ok(session: CommandSession, args: list[bytes]) -> Reply:
    return OK


def _asking(session: CommandSession, args: list[bytes]) -> Reply:
    session.be_asked()
    return OK


ANSWERS: Final[dict[str, _Answer]] = {
    "asking": _asking,
    "count-failure-reports": _failure_reports,
    "countkeysinslot": _count_keys,
    "getkeysinslot": _keys,
    "help": _help,
    "info": _info,
    "keyslot": _key_slot,
    "links": _links,
    "myid": _my_id,
    "nodes": _nodes,
    "readonly": _ok,
    "readwrite": _ok,
    "replicas": _replicas,
    "shards": _shards,
    "slaves": _replicas,
    "slots": _slots,
}
"""By the subcommand, or the command."""
