"""INFO's sections on the process, its machine and its data: Server, Clients, Memory, CPU, Persistence …"""

from __future__ import annotations

import os
import resource
import select
import struct
import sys
from collections.abc import Iterator
from zlib import crc32

from rlite_pubsub.build import is_compiled
from rlite_pubsub.engine.engine import REDIS_VERSION, Engine
from rlite_pubsub.engine.replication import CONNECTED, SYNC
from rlite_pubsub.engine.settings.commons import SHARED
from rlite_pubsub.engine.stats import info_backup
from rlite_pubsub.engine.stats.process import human, private_bytes, system_bytes
from rlite_pubsub.version import __version__

# -- INFO's sections on data: Persistence, Replication, Modules, Cluster, Keyspace.

Fields = Iterator[tuple[str, object]]


def persistence(engine: Engine) -> Fields:
    """Yield Persistence: what is committed is saved, so nothing is ever loading or pending. A backup may be under
    way."""
    yield "loading", 0
    yield "async_loading", 0
    yield "current_cow_peak", 0
    yield "current_cow_size", 0
    yield "current_cow_size_age", 0
    yield "current_fork_perc", "0.00"
    yield "current_save_keys_processed", 0
    yield "current_save_keys_total", 0
    saved = info_backup.saving(engine)
    yield "rdb_changes_since_last_save", 0
    yield "rdb_bgsave_in_progress", saved.get("rdb_bgsave_in_progress", 0)
    yield "rdb_last_save_time", saved["rdb_last_save_time"]
    yield "rdb_last_bgsave_status", saved.get("rdb_last_bgsave_status", "ok")
    yield "rdb_last_bgsave_time_sec", -1
    yield "rdb_current_bgsave_time_sec", -1
    yield "rdb_saves", saved.get("rdb_saves", 0)
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
    yield "save_means", "backup" if engine.backups.are_wanted else "checkpoint"
    yield from info_backup.backup(engine)


def replication(engine: Engine) -> Fields:
    """Yield Replication: a master, or a replica, and its replicas. If there have been none lately, there is no history,
    and the run id stands for it."""
    yield "role", "master" if engine.replication.master is None else "slave"
    yield from _of_replica(engine)
    replicas = list(engine.replicas.shown())
    yield "connected_slaves", len(replicas)
    if engine.settings["min-replicas-to-write"] and engine.settings["min-replicas-max-lag"]:
        yield "min_slaves_good_slaves", engine.replicas.good_count()
    for number, one in enumerate(replicas):
        address = one.address.decode("utf-8", "replace")
        yield f"slave{number}", (
            f"ip={address},port={one.port},state={one.state},offset={one.offset},lag={one.lag_s}"
        )
    stream = engine.replicas.stream()
    yield "master_failover_state", "no-failover"
    yield "master_replid", engine.run_id if stream is None else stream.history.decode()
    yield "master_replid2", "0" * 40
    yield "master_repl_offset", max(engine.replication.offset, 0) if stream is None else stream.ends
    yield "second_repl_offset", -1
    yield "repl_backlog_active", int(stream is not None)
    yield "repl_backlog_size", engine.settings["repl-backlog-size"]
    yield "repl_backlog_first_byte_offset", 0 if stream is None else stream.begins + 1
    yield "repl_backlog_histlen", 0 if stream is None else stream.ends - stream.begins


def _of_replica(engine: Engine) -> Fields:
    replication = engine.replication
    if replication.master is None:
        return
    host, port = replication.master
    is_up = replication.link == CONNECTED
    yield "master_host", host.decode("utf-8", "replace")
    yield "master_port", port
    yield "master_link_status", "up" if is_up else "down"
    yield "master_last_io_seconds_ago", int(engine.stopwatch() - replication.heard_at) if is_up else -1
    yield "master_sync_in_progress", int(replication.is_loading or replication.link == SYNC)
    yield "slave_read_repl_offset", replication.read_offset
    yield "slave_repl_offset", replication.offset
    if not is_up:
        since = replication.down_since
        yield "master_link_down_since_seconds", int(engine.clock() - since) if since else -1
    yield "slave_priority", engine.settings["replica-priority"]
    yield "slave_read_only", int(engine.settings["replica-read-only"])
    yield "replica_announced", int(engine.settings["replica-announced"])


def modules(engine: Engine) -> Fields:
    """Yield no line: there are no modules."""
    yield from ()


def cluster(engine: Engine) -> Fields:
    """Yield whether the store is a member of a sharded store."""
    yield "cluster_enabled", int(engine.sharding.directory is not None)


def keyspace(engine: Engine) -> Fields:
    """Yield the databases that hold keys. Their average TTL is not known."""
    keys = engine.keyspace
    for database, (size, expiring) in keys.databases.sizes().items() if keys is not None else ():
        yield f"db{database}", f"keys={size},expires={expiring},avg_ttl=0"

def server(engine: Engine) -> Fields:
    """Yield the section Server."""
    settings = engine.settings
    system = os.uname()
    now = engine.clock()
    uptime = max(0, int(now - engine.started_at))  # the clock may have been set back
    yield "redis_version", REDIS_VERSION
    yield "redis_git_sha1", "00000000"
    yield "redis_git_dirty", 0
    yield "redis_build_id", f"{crc32(__version__.encode()):016x}"
    yield "redis_mode", "standalone" if engine.sharding.directory is None else "cluster"
    yield "os", f"{system.sysname} {system.release} {system.machine}"
    yield "arch_bits", struct.calcsize("P") * 8
    yield "monotonic_clock", "POSIX clock_gettime"
    yield "multiplexing_api", "epoll" if hasattr(select, "epoll") else "kqueue"
    yield "process_id", engine.pid
    yield "process_supervised", _supervisor(settings["supervised"])
    yield "run_id", engine.run_id
    yield "tcp_port", settings["port"] or settings["tls-port"]
    yield "server_time_usec", int(now * 1_000_000)
    yield "uptime_in_seconds", uptime
    yield "uptime_in_days", uptime // 86400
    yield "hz", settings["hz"]
    yield "configured_hz", settings["hz"]
    yield "lru_clock", int(now) & 0xFFFFFF
    yield "executable", os.path.abspath(sys.argv[0])
    yield "config_file", engine.config_file or ""
    yield "io_threads_active", 0
    yield "rlite_pubsub_version", __version__
    yield "shared_settings", " ".join(sorted({*SHARED, "retain"}))
    yield "rlite_pubsub_compiled", int(is_compiled())
    yield "python_version", sys.version.partition(" ")[0]


def _supervisor(setting: bytes) -> str:
    if setting == b"auto":
        return "systemd" if "NOTIFY_SOCKET" in os.environ else "no"
    return setting.decode()


def clients(engine: Engine) -> Fields:
    """Yield the section Clients."""
    sessions = engine.clients
    footprints = [session.footprint() for session in sessions]
    yield "connected_clients", len(sessions)
    yield "cluster_connections", 0
    yield "maxclients", engine.settings["maxclients"]
    yield "client_recent_max_input_buffer", max((one.query for one in footprints), default=0)
    yield "client_recent_max_output_buffer", max((one.outbox_parts_memory for one in footprints), default=0)
    yield "blocked_clients", sum(session.blocked is not None for session in sessions)
    yield "tracking_clients", sum(session.tracking is not None for session in sessions)
    yield "clients_in_timeout_table", 0


def memory(engine: Engine) -> Fields:
    """Yield the section Memory. Python's allocator does not say how much of its memory is in use: all of it is taken to
    be."""
    sampler = engine.sampler
    used = sampler.measure_memory()
    startup = min(sampler.startup_bytes, used)
    dataset = used - startup
    limit = engine.settings["maxmemory"]
    yield "used_memory", used
    yield "used_memory_human", human(used)
    yield "used_memory_rss", used
    yield "used_memory_rss_human", human(used)
    yield "used_memory_peak", sampler.peak_bytes
    yield "used_memory_peak_human", human(sampler.peak_bytes)
    yield "used_memory_peak_perc", f"{used * 100 / sampler.peak_bytes:.2f}%"
    yield "used_memory_overhead", startup
    yield "used_memory_startup", startup
    yield "used_memory_dataset", dataset
    yield "used_memory_dataset_perc", f"{100.0 if dataset else 0.0:.2f}%"
    yield "used_memory_private", private_bytes()
    yield "allocator_allocated", used
    yield "allocator_active", used
    yield "allocator_resident", used
    yield "total_system_memory", system_bytes()
    yield "total_system_memory_human", human(system_bytes())
    yield from _scripts_memory(engine)
    yield "maxmemory", limit
    yield "maxmemory_human", human(limit)
    yield "maxmemory_policy", engine.settings.text("maxmemory-policy").decode()
    for ratio, excess in _OVERHEADS:
        yield ratio, "1.00"
        yield excess, 0
    yield "mem_not_counted_for_evict", 0
    yield "mem_replication_backlog", 0
    yield "mem_total_replication_buffers", 0
    yield "mem_clients_slaves", 0
    yield "mem_clients_normal", sum(session.footprint().total for session in engine.sessions.values())
    yield "mem_cluster_links", 0
    yield "mem_aof_buffer", 0
    yield "mem_allocator", "pymalloc"
    yield "active_defrag_running", 0
    yield "lazyfree_pending_objects", 0
    yield "lazyfreed_objects", 0


_OVERHEADS = (
    ("allocator_frag_ratio", "allocator_frag_bytes"),
    ("allocator_rss_ratio", "allocator_rss_bytes"),
    ("rss_overhead_ratio", "rss_overhead_bytes"),
    ("mem_fragmentation_ratio", "mem_fragmentation_bytes"),
)


def _scripts_memory(engine: Engine) -> Fields:
    scripts = engine.scripts
    lua_bytes = scripts.runner.sandbox.held_bytes if scripts.runner is not None else 0
    yield "used_memory_lua", lua_bytes
    yield "used_memory_vm_eval", lua_bytes
    yield "used_memory_lua_human", human(lua_bytes)
    yield "used_memory_scripts_eval", scripts.body_bytes
    yield "number_of_cached_scripts", len(scripts.by_sha)
    known, functions = engine.libraries.known, engine.libraries.functions
    functions_bytes = functions.held_bytes if functions is not None else 0
    code_bytes = sum(len(library.code) for library in known.libraries.values())
    total_bytes = lua_bytes + functions_bytes
    yield "number_of_functions", known.functions
    yield "number_of_libraries", len(known.libraries)
    yield "used_memory_vm_functions", functions_bytes
    yield "used_memory_vm_total", total_bytes
    yield "used_memory_vm_total_human", human(total_bytes)
    yield "used_memory_functions", code_bytes
    yield "used_memory_scripts", scripts.body_bytes + code_bytes
    yield "used_memory_scripts_human", human(scripts.body_bytes + code_bytes)


def cpu(engine: Engine) -> Fields:
    """Yield CPU time in seconds."""
    whose = {"": resource.RUSAGE_SELF, "_children": resource.RUSAGE_CHILDREN, "_main_thread": _THREAD}
    for suffix, who in whose.items():
        used = resource.getrusage(who)
        yield f"used_cpu_sys{suffix}", f"{used.ru_stime:.6f}"
        yield f"used_cpu_user{suffix}", f"{used.ru_utime:.6f}"


_THREAD = getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF)
