"""INFO: what is known of the server, in sections of `field:value` lines.

The sections and their fields are those of redis-server 7.0.15, in its order, where they can be said truthfully here;
what does not exist here (a fork, an append-only file, a replica) is 0 as it is there when unused. Ours come last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from rlite_pubsub.commands.info_activity import activity
from rlite_pubsub.commands.info_commands import command_stats, error_stats, latency_stats
from rlite_pubsub.commands.info_machine import clients, cpu, memory, server
from rlite_pubsub.commands.info_state import cluster, keyspace, modules, persistence, replication
from rlite_pubsub.commands.info_subscribers import subscribers
from rlite_pubsub.commands.info_topics import topics
from rlite_pubsub.commands.instance import Instance
from rlite_pubsub.commands.session import CommandSession
from rlite_pubsub.commands.table import Arg, command
from rlite_pubsub.protocol.replies import Reply, Verbatim

Fields: TypeAlias = "Iterable[tuple[str, object]]"

_SECTIONS: dict[str, Callable[[Instance], Fields]] = {
    "Server": server,
    "Clients": clients,
    "Memory": memory,
    "Persistence": persistence,
    "Stats": activity,
    "Replication": replication,
    "CPU": cpu,
    "Modules": modules,
    "Commandstats": command_stats,
    "Errorstats": error_stats,
    "Latencystats": latency_stats,
    "Cluster": cluster,
    "Keyspace": keyspace,
    "Subscribers": subscribers,
    "Topics": topics,
}
_ONLY_WHEN_ASKED_FOR = frozenset(("Commandstats", "Latencystats"))
_ALIASES = {b"module_list": b"modules"}


@command(
    "info",
    arity=-1,
    flags="loading stale sentinel",
    group="server",
    since="1.0.0",
    categories="dangerous",
    summary="Get information and statistics about the server",
    complexity="O(1)",
    arguments=(Arg("section", optional=True, multiple=True),),
    tips=("nondeterministic_output", "request_policy:all_shards", "response_policy:special"),
    history=(("7.0.0", "Added support for taking multiple section arguments."),),
)
def info(session: CommandSession, args: list[bytes]) -> Reply:
    return Verbatim(report(session.instance, args[1:]))


def report(instance: Instance, wanted: list[bytes]) -> bytes:
    """The sections that are asked for by name, `default`, `all` or `everything`; the default ones without any name."""
    words = {_ALIASES.get(word.lower(), word.lower()) for word in wanted} or {b"default"}
    everything = not words.isdisjoint((b"all", b"everything"))
    sections = []
    for title, fields in _SECTIONS.items():
        default = b"default" in words and title not in _ONLY_WHEN_ASKED_FOR
        if everything or default or title.lower().encode() in words:
            lines = [f"{name}:{value}\r\n" for name, value in fields(instance)]
            sections.append(f"# {title}\r\n{''.join(lines)}")
    return "\r\n".join(sections).encode("utf-8", "surrogateescape")
