"""INFO's section Stats: what has been done since the start, or since CONFIG RESETSTAT."""

from __future__ import annotations

from collections.abc import Iterator

from rlite_pubsub.commands.instance import Instance
from rlite_pubsub.delivery.kinds import CHANNELS, PATTERNS, SHARDS


def activity(instance: Instance) -> Iterator[tuple[str, object]]:
    """Counters and rates."""
    stats = instance.stats
    sampler = instance.sampler
    yield "total_connections_received", stats.connections_received
    yield "total_commands_processed", stats.commands_processed
    yield "instantaneous_ops_per_sec", round(sampler.commands.per_second)
    yield "total_net_input_bytes", stats.input_bytes
    yield "total_net_output_bytes", stats.output_bytes
    yield "total_net_repl_input_bytes", 0
    yield "total_net_repl_output_bytes", 0
    yield "instantaneous_input_kbps", f"{sampler.input_bytes.per_second / 1024:.2f}"
    yield "instantaneous_output_kbps", f"{sampler.output_bytes.per_second / 1024:.2f}"
    yield "instantaneous_input_repl_kbps", "0.00"
    yield "instantaneous_output_repl_kbps", "0.00"
    yield "rejected_connections", stats.rejected_connections
    yield "sync_full", 0
    yield "sync_partial_ok", 0
    yield "sync_partial_err", 0
    yield "expired_keys", stats.expired_keys
    yield "expired_stale_perc", "0.00"
    yield "expired_time_cap_reached_count", 0
    yield "expire_cycle_cpu_milliseconds", 0
    yield "evicted_keys", 0
    yield "evicted_clients", 0
    yield "total_eviction_exceeded_time", 0
    yield "current_eviction_exceeded_time", 0
    yield "keyspace_hits", stats.keyspace_hits
    yield "keyspace_misses", stats.keyspace_misses
    for field, kind in (("pubsub_channels", CHANNELS), ("pubsub_patterns", PATTERNS), ("pubsubshard_channels", SHARDS)):
        yield field, len(instance.hub.holders[kind.index])
    yield "latest_fork_usec", 0
    yield "total_forks", 0
    yield "migrate_cached_sockets", 0
    yield "slave_expires_tracked_keys", 0
    yield "active_defrag_hits", 0
    yield "active_defrag_misses", 0
    yield "active_defrag_key_hits", 0
    yield "active_defrag_key_misses", 0
    yield "total_active_defrag_time", 0
    yield "current_active_defrag_time", 0
    yield "tracking_total_keys", instance.tracked.key_count
    yield "tracking_total_items", instance.tracked.item_count
    yield "tracking_total_prefixes", instance.tracked.prefix_count
    yield "unexpected_error_replies", 0
    yield "total_error_replies", stats.total_errors
    yield "dump_payload_sanitizations", 0
    yield "total_reads_processed", stats.reads
    yield "total_writes_processed", stats.writes
    yield "io_threaded_reads_processed", 0
    yield "io_threaded_writes_processed", 0
    yield "reply_buffer_shrinks", 0
    yield "reply_buffer_expands", 0
