"""A server's own report on itself and its store: INFO, and the list of subscribers. Looking changes nothing. A server
that is no rlite-pubsub is asked as well, and says less."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import redis

from rlite_pubsub.cli.text import mapping, text

_FILES = ("live", "data")
_STATES = ("alive", "dead", "unknown")
_SIZES = "{used} bytes in use: {live} live, {free} free, {held} of these held; {disk} on the disk"


def look(client: Any) -> int:
    """Print it; 1 if something is wrong. Raises RedisError."""
    info = client.info("everything")
    for line in _lines(client, info):
        print(line)
    wrong = list(_faults(info))
    for fault in wrong:
        print(f"fault      {fault}")
    return 1 if wrong else 0


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
            sizes = {word: info.get(f"{name}_{word}_bytes", "?") for word in ("used", "live", "free", "held", "disk")}
            yield f"{name + '.mdb':10} {_SIZES.format(**sizes)}"
        states = [text(mapping(entry)["state"]) for entry in client.execute_command("SUBSCRIBER.LIST")]
        for state in _STATES:
            yield f"{state:10} {states.count(state)} subscriber(s)"
    yield f"clients    {info['connected_clients']} connected, {info['blocked_clients']} blocked"
    if info.get("backlog_messages"):
        yield f"backlog    {info['backlog_messages']} messages with {info['backlog_bytes']} bytes wait for subscribers"
    for number in range(info.get("old_readers", 0)):
        reader = info.get(f"old_reader{number}")
        if isinstance(reader, dict):
            yield (
                f"reader     pid {reader['pid']} ({reader['state']}) reads {reader['file']} for "
                f"{reader['age_ms'] // 1000} s, and keeps {reader['held_bytes']} bytes from being reused"
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
