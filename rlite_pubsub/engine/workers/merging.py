"""Merging the answers of all workers of a server to one request: each command's declaration says how (`merge`).

Each function takes the request and the answers, the first of them from the worker that was asked. A worker that is
being replaced, or that is stopped, gives no answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from rlite_pubsub.protocol.replies import Error, Reply

Merge: TypeAlias = Callable[[list[bytes], list[Reply]], Reply]


def total(_: list[bytes], replies: list[Reply]) -> Reply:
    """Return the sum of all counts."""
    counts = [reply for reply in replies if isinstance(reply, int)]
    return sum(counts) if counts else replies[0]


def by_all(_: list[bytes], replies: list[Reply]) -> Reply:
    """Return a success if all succeeded, else the first error."""
    return next((reply for reply in replies if isinstance(reply, Error)), replies[0])


def by_any(_: list[bytes], replies: list[Reply]) -> Reply:
    """Return a success if any succeeded, else the first error."""
    return next((reply for reply in replies if not isinstance(reply, Error)), replies[0])


def killed(request: list[bytes], replies: list[Reply]) -> Reply:
    """CLIENT KILL: a bare address is on one worker or none; with filters, the counts add up."""
    return by_any(request, replies) if len(request) == 3 else total(request, replies)


def lines(_: list[bytes], replies: list[Reply]) -> Reply:
    """CLIENT LIST: the first worker's lines, followed by the others'."""
    return type(replies[0])(b"".join(_listed(replies)))


def slowest(request: list[bytes], replies: list[Reply]) -> Reply:
    """SLOWLOG GET: the latest first, as many as were asked for."""
    entries = sorted(_listed(replies), key=lambda entry: int(entry[1]), reverse=True)
    count = int(request[2]) if len(request) > 2 else 10
    return entries if count < 0 else entries[:count]


def latest(_: list[bytes], replies: list[Reply]) -> Reply:
    """LATENCY LATEST: the latest sample of each event, and its worst."""
    found: dict[bytes, list[Reply]] = {}
    for event, when, duration_ms, worst_ms in _listed(replies):
        known = found.setdefault(event, [event, when, duration_ms, worst_ms])
        if when > known[1]:
            known[1:3] = [when, duration_ms]
        known[3] = max(known[3], worst_ms)
    return list(found.values())


def by_time(_: list[bytes], replies: list[Reply]) -> Reply:
    """LATENCY HISTORY: all samples, the oldest first."""
    return sorted((tuple(sample) for sample in _listed(replies)), key=lambda sample: int(sample[0]))


def denied(request: list[bytes], replies: list[Reply]) -> Reply:
    """ACL LOG: all workers' denials; RESET forgets them everywhere."""
    if not isinstance(replies[0], list):
        return by_all(request, replies)
    entries = [_pairs(entry) for entry in _listed(replies)]
    entries.sort(key=lambda entry: float(entry.get(b"age-seconds", 0)))
    return entries[: int(request[2])] if len(request) > 2 else entries[:10]


def _pairs(entry: Reply) -> dict[bytes, Reply]:
    if isinstance(entry, dict):
        return {_bytes(name): value for name, value in entry.items()}
    if entry and isinstance(entry[0], tuple):
        return {_bytes(name): value for name, value in entry}
    return dict(zip(entry[::2], entry[1::2], strict=True))


def _bytes(name: Reply) -> bytes:
    return name if isinstance(name, bytes) else str(name).encode()


def _listed(replies: Sequence[Reply]) -> list[Reply]:
    """Return the elements of all replies that are lists or texts."""
    if isinstance(replies[0], bytes):
        return [reply for reply in replies if isinstance(reply, bytes) and not isinstance(reply, Error)]
    return [each for reply in replies if isinstance(reply, (list, tuple)) for each in reply]


# -- INFO

_SUMMED = frozenset(
    """connected_clients blocked_clients tracking_clients clients_in_timeout_table used_memory used_memory_rss
    total_connections_received total_commands_processed instantaneous_ops_per_sec total_net_input_bytes
    total_net_output_bytes instantaneous_input_kbps instantaneous_output_kbps rejected_connections expired_keys
    evicted_keys keyspace_hits keyspace_misses tracking_total_keys tracking_total_items tracking_total_prefixes
    total_error_replies total_reads_processed total_writes_processed used_cpu_sys used_cpu_user""".split()
)
"""Fields of each worker; all others belong to the store, or to the worker that was asked."""


def info(_: list[bytes], replies: list[Reply]) -> Reply:
    """INFO: that of one server, with a section that tells its workers apart."""
    texts = [reply.decode("utf-8", "surrogateescape") for reply in _listed(replies)]
    tables = [_fields(text) for text in texts]
    told: list[str] = []
    for line in texts[0].split("\r\n"):
        name, separator, value = line.partition(":")
        told.append(f"{name}:{_summed(name, value, tables)}" if separator else line)
    if any("process_id" in table for table in tables):
        told += ["# Workers", f"workers:{len(tables)}"]
        for number, table in enumerate(tables):
            shown = {"pid": "process_id", "clients": "connected_clients", "ops": "instantaneous_ops_per_sec"}
            told.append(f"worker{number}:" + ",".join(f"{key}={table.get(field, '')}" for key, field in shown.items()))
        told.append("")
    return type(replies[0])("\r\n".join(told).encode("utf-8", "surrogateescape"))


def _fields(text: str) -> dict[str, str]:
    return dict(line.split(":", 1) for line in text.split("\r\n") if ":" in line and not line.startswith("#"))


def _summed(name: str, value: str, tables: list[dict[str, str]]) -> str:
    values = [table[name] for table in tables if name in table]
    if name in _SUMMED:
        asking = len(values) - 1 if name == "connected_clients" else 0  # our own connection to each of them
        return _like(value, sum(map(float, values)) - asking)
    if name.startswith(("cmdstat_", "errorstat_")):
        return _summed_stats(values)
    return value


def _summed_stats(values: list[str]) -> str:
    sums: dict[str, float] = {}
    for value in values:
        for part in value.split(","):
            name, _, number = part.partition("=")
            sums[name] = sums.get(name, 0) + float(number)
    if "usec_per_call" in sums:
        sums["usec_per_call"] = sums["usec"] / sums["calls"] if sums["calls"] else 0.0
    return ",".join(f"{name}={_like('0.00' if name == 'usec_per_call' else '0', each)}" for name, each in sums.items())


def _like(model: str, number: float) -> str:
    """Return a number with as many decimals as the model has."""
    return f"{number:.{len(model.partition('.')[2])}f}"
