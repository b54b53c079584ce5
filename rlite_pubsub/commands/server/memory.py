"""MEMORY: how much memory the process takes: its resident size, as Python does not tell more."""

from __future__ import annotations

import ctypes
import gc

from rlite_pubsub.engine.arguments.help import helps
from rlite_pubsub.engine.arguments.integers import integer
from rlite_pubsub.engine.arguments.lookup import keyspace_of
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.stats.process import human
from rlite_pubsub.engine.table import Arg, KeySpec, command, container
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.protocol.errors import SYNTAX, CommandError
from rlite_pubsub.protocol.replies import OK, Reply, Verbatim

_TIPS = ("nondeterministic_output", "request_policy:all_shards", "response_policy:special")
_LITTLE_BYTES = 64 << 20
_LARGE_OUTBOX_BYTES = 200 << 10

container(
    "memory",
    arity=-2,
    group="server",
    since="4.0.0",
    summary="A container for memory diagnostics commands",
    complexity="Depends on subcommand.",
)


@command(
    "memory|doctor",
    arity=2,
    group="server",
    since="4.0.0",
    summary="Outputs memory problems report",
    complexity="O(1)",
    tips=_TIPS,
)
def memory_doctor(session: CommandSession, args: list[bytes]) -> Reply:
    engine = session.engine
    sampler = engine.sampler
    used = sampler.measure_memory()
    waiting = sum(one.footprint().outbox_parts_memory for one in engine.sessions.values())
    findings = []
    if used > _LITTLE_BYTES and sampler.peak_bytes > used * 1.5:
        findings.append(
            f"It once took {human(sampler.peak_bytes)} and now takes {human(used)}: a peak of messages or sessions. "
            "MEMORY PURGE gives back what can be given back."
        )
    if waiting > _LARGE_OUTBOX_BYTES * len(engine.sessions):
        findings.append(
            f"{human(waiting)} wait in memory for clients that do not read: CLIENT LIST shows them (omem). A lower "
            "spill-threshold sends them to disk sooner."
        )
    if not findings:
        return Verbatim(f"Nothing is wrong with the memory: {human(used)} are in use.\n".encode())
    return Verbatim("".join(f"- {finding}\n" for finding in findings).encode())


@command(
    "memory|malloc-stats",
    arity=2,
    group="server",
    since="4.0.0",
    summary="Show allocator internal stats",
    complexity="Depends on how much memory is allocated, could be slow",
    tips=_TIPS,
)
def memory_malloc_stats(session: CommandSession, args: list[bytes]) -> Reply:
    return b"Stats not supported for the current allocator"


@command(
    "memory|purge",
    arity=2,
    group="server",
    since="4.0.0",
    summary="Ask the allocator to release memory",
    complexity="Depends on how much memory is allocated, could be slow",
    tips=("request_policy:all_shards", "response_policy:all_succeeded"),
)
def memory_purge(session: CommandSession, args: list[bytes]) -> Reply:
    """The garbage is collected, and pages that malloc keeps for later go back to the kernel, where it is glibc's."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
    return OK


@command(
    "memory|stats",
    arity=2,
    group="server",
    since="4.0.0",
    summary="Show memory usage details",
    complexity="O(1)",
    tips=_TIPS,
)
def memory_stats(session: CommandSession, args: list[bytes]) -> Reply:
    engine = session.engine
    sampler = engine.sampler
    used = sampler.measure_memory()
    startup = min(sampler.startup_bytes, used)
    return {
        b"peak.allocated": sampler.peak_bytes,
        b"total.allocated": used,
        b"startup.allocated": startup,
        b"replication.backlog": 0,
        b"clients.slaves": 0,
        b"clients.normal": sum(one.footprint().total for one in engine.sessions.values()),
        b"cluster.links": 0,
        b"aof.buffer": 0,
        b"lua.caches": 0,
        b"functions.caches": 0,
        b"overhead.total": startup,
        b"keys.count": 0,
        b"keys.bytes-per-key": 0,
        b"dataset.bytes": used - startup,
        b"dataset.percentage": 100.0 if used > startup else 0.0,
        b"peak.percentage": used * 100 / sampler.peak_bytes,
        b"allocator.allocated": used,
        b"allocator.active": used,
        b"allocator.resident": used,
        b"allocator-fragmentation.ratio": 1.0,
        b"allocator-fragmentation.bytes": 0,
        b"allocator-rss.ratio": 1.0,
        b"allocator-rss.bytes": 0,
        b"rss-overhead.ratio": 1.0,
        b"rss-overhead.bytes": 0,
        b"fragmentation": 1.0,
        b"fragmentation.bytes": 0,
    }


@command(
    "memory|usage",
    arity=-3,
    flags="readonly",
    group="server",
    since="4.0.0",
    summary="Estimate the memory usage of a key",
    complexity="O(N) where N is the number of samples.",
    arguments=(Arg("key", "key", key_spec=0), Arg("count", "integer", token="SAMPLES", optional=True)),
    key_specs=(KeySpec(("RO",), ("index", 2), ("range", 0, 1, 0)),),
)
def memory_usage(session: CommandSession, args: list[bytes]) -> Reply:
    """Answer what a key takes in the store. There are no samples: all of it is known."""
    options = iter(args[3:])
    for option in options:
        samples = next(options, None)
        if option.lower() != b"samples" or samples is None or integer(samples) < 0:
            raise CommandError(SYNTAX)
    record = keyspace_of(session).find(session.db, args[2])
    if record is None:
        return None
    return record.stored_bytes + (record.size_bytes if isinstance(record, Topic) else 0)


helps(
    "memory",
    "DOCTOR",
    "    Return memory problems reports.",
    "MALLOC-STATS",
    "    Return internal statistics report from the memory allocator.",
    "PURGE",
    "    Attempt to purge dirty pages for reclamation by the allocator.",
    "STATS",
    "    Return information about the memory usage of the server.",
    "USAGE <key> [SAMPLES <count>]",
    "    Return memory in bytes used by <key> and its value. Nested values are",
    "    sampled up to <count> times (default: 5, 0 means sample all).",
    group="server",
    since="4.0.0",
)
