"""INFO's sections on what is kept: Persistence, Replication, Modules, Cluster, Keyspace."""

from __future__ import annotations

from collections.abc import Iterator

from rlite_pubsub.commands.instance import Instance

Fields = Iterator[tuple[str, object]]


def persistence(instance: Instance) -> Fields:
    """What is committed is saved: nothing is ever loading, pending or under way."""
    yield "loading", 0
    yield "async_loading", 0
    yield "current_cow_peak", 0
    yield "current_cow_size", 0
    yield "current_cow_size_age", 0
    yield "current_fork_perc", "0.00"
    yield "current_save_keys_processed", 0
    yield "current_save_keys_total", 0
    yield "rdb_changes_since_last_save", 0
    yield "rdb_bgsave_in_progress", 0
    yield "rdb_last_save_time", int(instance.clock())
    yield "rdb_last_bgsave_status", "ok"
    yield "rdb_last_bgsave_time_sec", -1
    yield "rdb_current_bgsave_time_sec", -1
    yield "rdb_saves", 0
    yield "rdb_last_cow_size", 0
    yield "rdb_last_load_keys_expired", 0
    yield "rdb_last_load_keys_loaded", 0
    yield "aof_enabled", 0
    yield "aof_rewrite_in_progress", 0
    yield "aof_rewrite_scheduled", 0
    yield "aof_last_rewrite_time_sec", -1
    yield "aof_current_rewrite_time_sec", -1
    yield "aof_last_bgrewrite_status", "ok"
    yield "aof_rewrites", 0
    yield "aof_rewrites_consecutive_failures", 0
    yield "aof_last_write_status", "ok"
    yield "aof_last_cow_size", 0
    yield "module_fork_in_progress", 0
    yield "module_fork_last_cow_size", 0


def replication(instance: Instance) -> Fields:
    """A master without replicas; its replication id is its run id, as it has no other life than this run."""
    yield "role", "master"
    yield "connected_slaves", 0
    yield "master_failover_state", "no-failover"
    yield "master_replid", instance.run_id
    yield "master_replid2", "0" * 40
    yield "master_repl_offset", 0
    yield "second_repl_offset", -1
    yield "repl_backlog_active", 0
    yield "repl_backlog_size", instance.settings["repl-backlog-size"]
    yield "repl_backlog_first_byte_offset", 0
    yield "repl_backlog_histlen", 0


def modules(instance: Instance) -> Fields:
    """There are none."""
    yield from ()


def cluster(instance: Instance) -> Fields:
    """There is none."""
    yield "cluster_enabled", 0


def keyspace(instance: Instance) -> Fields:
    """Databases that hold keys. The mean time that keys have left is not kept."""
    keys = instance.keyspace
    for database, (size, expiring) in keys.sizes().items() if keys is not None else ():
        yield f"db{database}", f"keys={size},expires={expiring},avg_ttl=0"
