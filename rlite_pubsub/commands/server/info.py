"""INFO: what is known of the server, in sections of `field:value` lines.

The sections and their fields are those of redis-server 7.0.15, in its order, where they can be said truthfully here;
what does not exist here (a fork, an append-only file, a replica) is 0 as it is there when unused. Ours come last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rlite_pubsub.engine.engine import Engine
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.stats.info_links import links
from rlite_pubsub.engine.stats.info_machine import (
    clients,
    cluster,
    cpu,
    keyspace,
    memory,
    modules,
    persistence,
    replication,
    server,
)
from rlite_pubsub.engine.stats.info_store import store
from rlite_pubsub.engine.stats.info_subscribers import subscribers
from rlite_pubsub.engine.stats.info_topics import topics
from rlite_pubsub.engine.stats.info_warnings import warnings
from rlite_pubsub.engine.table import Arg, command
from rlite_pubsub.engine.workers import merging
from rlite_pubsub.protocol.replies import Reply, Verbatim
from rlite_pubsub.pubsub.kinds import CHANNELS, PATTERNS, SHARDS

# -- INFO's section Stats: what has been done since the start, or since CONFIG RESETSTAT.

def activity(engine: Engine) -> Iterator[tuple[str, object]]:
    """Counters and rates."""
    stats = engine.stats
    sampler = engine.sampler
    yield "total_connections_received", stats.connections_received
    yield "total_commands_processed", stats.commands_processed
    yield "instantaneous_ops_per_sec", round(sampler.commands.per_second)
    yield "total_net_input_bytes", stats.input_bytes
    yield "total_net_output_bytes", stats.outboxes.output_bytes
    yield "total_net_repl_input_bytes", 0
    yield "total_net_repl_output_bytes", 0
    yield "instantaneous_input_kbps", f"{sampler.input_bytes.per_second / 1024:.2f}"
    yield "instantaneous_output_kbps", f"{sampler.output_bytes.per_second / 1024:.2f}"
    yield "instantaneous_input_repl_kbps", "0.00"
    yield "instantaneous_output_repl_kbps", "0.00"
    yield "rejected_connections", stats.rejected_connections
    yield "sync_full", stats.sync_full
    yield "sync_partial_ok", stats.sync_partial_ok
    yield "sync_partial_err", stats.sync_partial_err
    yield "expired_keys", stats.expired_keys
    yield "expired_stale_perc", "0.00"
    yield "expired_time_cap_reached_count", 0
    yield "expire_cycle_cpu_milliseconds", 0
    exceeded_s = engine.memory_limit.exceeded_s
    yield "evicted_keys", stats.evicted_keys
    yield "evicted_clients", 0
    yield "total_eviction_exceeded_time", int((stats.eviction_exceeded_s + exceeded_s) * 1000)
    yield "current_eviction_exceeded_time", int(exceeded_s * 1000)
    yield "keyspace_hits", stats.keyspace_hits
    yield "keyspace_misses", stats.keyspace_misses
    for field, kind in (("pubsub_channels", CHANNELS), ("pubsub_patterns", PATTERNS), ("pubsubshard_channels", SHARDS)):
        yield field, len(engine.hub.holders[kind.index])
    yield "latest_fork_usec", 0
    yield "total_forks", 0
    yield "migrate_cached_sockets", 0
    yield "slave_expires_tracked_keys", len(engine.keyspace.stored.expiring_here)
    yield "active_defrag_hits", 0
    yield "active_defrag_misses", 0
    yield "active_defrag_key_hits", 0
    yield "active_defrag_key_misses", 0
    yield "total_active_defrag_time", 0
    yield "current_active_defrag_time", 0
    yield "tracking_total_keys", engine.tracked.key_count
    yield "tracking_total_items", engine.tracked.item_count
    yield "tracking_total_prefixes", engine.tracked.prefix_count
    yield "unexpected_error_replies", stats.unexpected_error_replies
    yield "total_error_replies", stats.total_errors
    yield "dump_payload_sanitizations", 0
    yield "total_reads_processed", stats.reads
    yield "total_writes_processed", stats.outboxes.writes
    yield "io_threaded_reads_processed", 0
    yield "io_threaded_writes_processed", 0
    yield "reply_buffer_shrinks", 0
    yield "reply_buffer_expands", 0


# -- INFO's sections on single commands and errors: Commandstats, Errorstats, Latencystats.

Fields = Iterator[tuple[str, object]]

_UNSAFE = str.maketrans("#:\n\r", "____")
"""What would look like a field or a section in a name that a client has made up."""


def command_stats(engine: Engine) -> Fields:
    """Calls of each command, and how many were refused or failed."""
    for each, stat in engine.stats.commands.items():
        if stat.calls or stat.failed or stat.rejected:
            mean_us = stat.microseconds / stat.calls if stat.calls else 0
            yield (
                f"cmdstat_{_safe(each.name)}",
                f"calls={stat.calls},usec={stat.microseconds},usec_per_call={mean_us:.2f},"
                f"rejected_calls={stat.rejected},failed_calls={stat.failed}",
            )


def error_stats(engine: Engine) -> Fields:
    """Error replies by their first word."""
    for prefix, count in sorted(engine.stats.errors.items()):
        yield f"errorstat_{_safe(prefix)}", f"count={count}"


def latency_stats(engine: Engine) -> Fields:
    """Percentiles of the times of each command, in microseconds."""
    if not engine.settings["latency-tracking"]:
        return
    percentiles = engine.settings["latency-tracking-info-percentiles"]
    for each, stat in engine.stats.commands.items():
        histogram = stat.histogram
        if histogram is not None:
            values = (f"p{_trimmed(percent)}={histogram.percentile(percent):.3f}" for percent in percentiles)
            yield f"latency_percentiles_usec_{_safe(each.name)}", ",".join(values)


def _trimmed(number: float) -> str:
    return f"{number:f}".rstrip("0").rstrip(".")


def _safe(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape").translate(_UNSAFE)


_SECTIONS: dict[str, Callable[[Engine], Fields]] = {
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
    "Store": store,
    "Links": links,
    "Warnings": warnings,
}
_ONLY_WHEN_ASKED_FOR = frozenset(("Commandstats", "Latencystats", "Warnings"))
_ALIASES = {b"module_list": b"modules"}


@command(
    "info",
    merge=merging.info,
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
    return Verbatim(report(session.engine, args[1:]))


def report(engine: Engine, wanted: list[bytes]) -> bytes:
    """The sections that are asked for by name, `default`, `all` or `everything`; the default ones without any name."""
    words = {_ALIASES.get(word.lower(), word.lower()) for word in wanted} or {b"default"}
    everything = not words.isdisjoint((b"all", b"everything"))
    sections = []
    for title, fields in _SECTIONS.items():
        default = b"default" in words and title not in _ONLY_WHEN_ASKED_FOR
        if everything or default or title.lower().encode() in words:
            lines = [f"{name}:{value}\r\n" for name, value in fields(engine)]
            sections.append(f"# {title}\r\n{''.join(lines)}")
    return "\r\n".join(sections).encode("utf-8", "surrogateescape")
