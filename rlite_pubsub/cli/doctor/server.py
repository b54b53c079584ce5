"""A server's own report on itself and its store: INFO, and the list of subscribers. Looking changes nothing. A server
that is no rlite-pubsub is asked as well, and says less."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import redis

from rlite_pubsub.cli.doctor.report import Finding, sizes_line, told
from rlite_pubsub.cli.text import mapping, shown_bytes, text
from rlite_pubsub.cli.top_tables import warnings_of
from rlite_pubsub.engine.stats.warnings import CRITICAL

_FILES = ("live", "data")
_STATES = ("alive", "dead", "unknown")
_SIZES = ("used", "live", "free", "held", "disk")


def look(client: Any) -> int:
    """Print it; 1 if something is wrong. Raises RedisError."""
    info = client.info("everything")
    findings = [
        Finding(each["code"], each["severity"], tuple(part.encode() for part in each["subject"]), each["text"])
        for each in warnings_of(info)
    ]
    faults = [] if any(each.severity == CRITICAL for each in findings) else list(_faults(info))
    return told(faults, findings, _lines(client, info))


def _lines(client: Any, info: Mapping[str, Any]) -> Iterator[str]:
    ours = info.get("rlite_pubsub_version")
    name = f"rlite-pubsub {ours}" if ours else "not rlite-pubsub, but Redis"
    version = f"redis_version {info['redis_version']}"
    yield f"server     {name} ({version}), pid {info['process_id']}, up {info['uptime_in_seconds']} s"
    folder = _folder(client)
    if folder is not None:
        yield f"store      {folder}"
    if ours:
        for name in _FILES:
            sizes = (info.get(f"{name}_{word}_bytes", "?") for word in _SIZES)
            yield f"{name + '.mdb':10} {sizes_line(*sizes)}"
        states = [text(mapping(entry)["state"]) for entry in client.execute_command("SUBSCRIBER.LIST")]
        for state in _STATES:
            yield f"{state:10} {states.count(state)} subscriber(s)"
    yield f"clients    {info['connected_clients']} connected, {info['blocked_clients']} blocked"
    if info.get("backlog_messages"):
        waiting = shown_bytes(info["backlog_bytes"])
        yield f"backlog    {info['backlog_messages']:,} messages with {waiting} wait for subscribers"
    for number in range(info.get("old_readers", 0)):
        reader = info.get(f"old_reader{number}")
        if isinstance(reader, dict):
            yield (
                f"reader     pid {reader['pid']} ({reader['state']}) reads {reader['file']} for "
                f"{reader['age_ms'] // 1000} s, and keeps {shown_bytes(reader['held_bytes'])} from being reused"
            )


def _faults(info: Mapping[str, Any]) -> Iterator[str]:
    if info.get("store_full"):
        yield "the store is full: writes are refused"
    if "store_unread" in info:
        yield f"the store can't be read: {info['store_unread']}"
    for name in ("rdb_last_bgsave_status", "aof_last_write_status"):
        if info.get(name, "ok") != "ok":
            yield f"{name} is {info[name]}"


def _folder(client: Any) -> str | None:
    """Return the store's folder; None if the server does not show it to everybody."""
    try:
        found = client.config_get("dir")
    except redis.ResponseError:
        return None
    return next((text(value) for value in found.values()), None)
