"""The tables of `rlite-pubsub top`, of two readings: rows for programs, and their columns for people."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from urllib.parse import unquote

from rlite_pubsub.cli.text import escaped, mapping, raw, shown_bytes, text
from rlite_pubsub.engine.settings.retention_words import age_text, size_text

# -- One look at a server or a store: what `rlite-pubsub top` makes its rates and tables of. A server is asked with
# commands that any client may send, some topics at a time, so that nobody waits for it. A folder has no server's
# counters: for one, only what is in the store is shown.

BATCH = 100
MOST_CLIENTS = 100
MOST_CHANNELS = 100
COUNTERS = (
    "messages_published",
    "messages_delivered",
    "total_commands_processed",
    "total_net_input_bytes",
    "total_net_output_bytes",
)
GAUGES = (
    "rlite_pubsub_version",
    "process_id",
    "uptime_in_seconds",
    "connected_clients",
    "subscribed_sessions",
    "used_memory_private",
    "data_disk_bytes",
    "store_disk_bytes",
    "filesystem_free_bytes",
    "spilled_bytes",
    "gaps",
)
"""Of INFO."""


@dataclass(frozen=True)
class TopReading:
    """The state at a moment."""

    at_s: float
    info: dict[str, Any]
    """COUNTERS and GAUGES; empty for a folder."""
    topics: dict[bytes, dict[str, Any]]
    topic_count: int
    """With those that were not looked at."""
    subscribers: list[dict[str, Any]]
    processes: list[dict[str, Any]] = field(default_factory=list)
    """With their connections; empty where one may not see them."""
    channels: list[list[Any]] = field(default_factory=list)
    """The busiest: name, messages a second, subscribers."""
    warnings: list[dict[str, Any]] = field(default_factory=list)
    links: list[dict[str, Any]] = field(default_factory=list)


def read(client: Any, match: str, limit: int, *, is_server: bool) -> TopReading:
    """Look. Raises RedisError."""
    from redis.exceptions import ResponseError

    names = [raw(name) for name in client.execute_command("TOPIC.LIST", "MATCH", match)]
    topics = {}
    for some in _batches(names[:limit]):
        pipeline = client.pipeline(transaction=False)
        for name in some:
            pipeline.execute_command("TOPIC.INFO", name)
        for name, reply in zip(some, pipeline.execute(raise_on_error=False), strict=True):
            if not isinstance(reply, Exception):
                topics[name] = mapping(reply)
            elif not (isinstance(reply, ResponseError) and "no such key" in str(reply)):
                raise reply
    info = client.info() if is_server else {}
    more = _more(client, is_server=is_server)
    return TopReading(
        at_s=time.monotonic(),
        info={field: info[field] for field in (*COUNTERS, *GAUGES) if field in info},
        topics=topics,
        topic_count=len(names),
        subscribers=[mapping(entry) for entry in client.execute_command("SUBSCRIBER.LIST")],
        processes=[mapping(entry) for entry in more[0] or ()],
        channels=[list(entry) for entry in more[1] or ()],
        warnings=warnings_of(more[2] or {}),
        links=[value for value in (more[3] or {}).values() if isinstance(value, dict)],
    )


def _more(client: Any, *, is_server: bool) -> list[Any]:
    """Connections, rates, warnings and links; None for what the user may not see, or an older server does not know."""
    from redis.exceptions import ResponseError

    pipeline = client.pipeline(transaction=False)
    pipeline.execute_command("SUBSCRIBER.CLIENTS", "COUNT", MOST_CLIENTS)
    if is_server:
        pipeline.execute_command("SUBSCRIBER.RATES", "COUNT", MOST_CHANNELS)
        pipeline.execute_command("INFO", "warnings")
        pipeline.execute_command("INFO", "links")
    replies = pipeline.execute(raise_on_error=False)
    for reply in replies:
        if isinstance(reply, Exception) and not isinstance(reply, ResponseError):
            raise reply
    told = [None if isinstance(reply, Exception) else reply for reply in replies]
    return [*told, None, None, None][:4]


def warnings_of(info: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the warnings of INFO's section."""
    found = [value for name, value in info.items() if name.startswith("warning") and isinstance(value, dict)]
    return [
        {
            "code": each["code"],
            "severity": each["severity"],
            "subject": [unquote(part) for part in str(each.get("subject", "")).split("/")],
            "text": unquote(str(each.get("text", ""))),
        }
        for each in found
    ]


def _batches(names: list[bytes]) -> list[list[bytes]]:
    return [names[at : at + BATCH] for at in range(0, len(names), BATCH)]


Row: TypeAlias = dict[str, Any]
SORTS = ("lag", "bytes", "rate", "age", "name")
"""What a table can be sorted by; one that has no such column is sorted by what waits in it."""


@dataclass(frozen=True)
class Column:
    """A column: its head, what a row has for it, and how that is written."""

    head: str
    key: str
    show: Callable[[Any], str] = str
    is_number: bool = True


def count_text(value: float | None) -> str:
    """1,234"""
    return "-" if value is None else f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.1f}"


def bytes_text(value: float | None) -> str:
    """12.3 MB"""
    return "-" if value is None else shown_bytes(value)


def seconds_text(value: float | None) -> str:
    """Return a span of time in short, such as 5.0s, 3m, 4h or 9d; - if it is not known."""
    if value is None:
        return "-"
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if value >= 2 * size:
            return f"{value // size:.0f}{unit}"
    return f"{value:.1f}s"


@dataclass(frozen=True)
class TopTable:
    """A table of one kind of thing."""

    title: str
    columns: tuple[Column, ...]
    sort_keys: dict[str, str]
    """By the word of SORTS: the key."""
    rows: list[Row] = field(default_factory=list)
    left_out: int = 0
    """Rows that are there, and not in `rows`."""
    is_optional: bool = False
    """It is not shown while it has no rows."""

    def sorted_by(self, sort: str, *, is_reversed: bool) -> TopTable:
        """Numbers fall, names rise; or the other way round."""
        key = self.sort_keys.get(sort, self.sort_keys["lag"])
        falls = key not in _RISING

        def rank(row: Row) -> tuple[bool, Any]:
            return (row[key] is not None) if falls else False, row[key] if row[key] is not None else 0

        rows = sorted(sorted(self.rows, key=lambda row: str(row["name"])), key=rank, reverse=falls != is_reversed)
        return self.with_rows(rows, self.left_out)

    def with_rows(self, rows: list[Row], left_out: int) -> TopTable:
        return TopTable(self.title, self.columns, self.sort_keys, rows, left_out, self.is_optional)


_RISING = ("name",)
_TOPICS = TopTable(
    "topics",
    (
        Column("topic", "name", is_number=False),
        Column("entries", "entries", count_text),
        Column("bytes", "bytes", bytes_text),
        Column("added/s", "rate", count_text),
        Column("groups", "groups", count_text),
        Column("retention", "retention", is_number=False),
        Column("state", "state", is_number=False),
    ),
    {"lag": "entries", "bytes": "bytes", "rate": "rate", "name": "name"},
)
_GROUPS = TopTable(
    "groups",
    (
        Column("topic", "name", is_number=False),
        Column("group", "group", is_number=False),
        Column("lag", "lag", count_text),
        Column("pending", "pending", count_text),
        Column("delayed", "delayed", count_text),
        Column("dead", "dead_lettered", count_text),
        Column("consumers", "consumers", count_text),
        Column("state", "state", is_number=False),
    ),
    {"lag": "lag", "name": "name"},
)
_SUBSCRIBERS = TopTable(
    "subscribers",
    (
        Column("subscriber", "name", is_number=False),
        Column("kind", "kind", is_number=False),
        Column("pid", "pid", lambda pid: "-" if pid is None else str(pid)),
        Column("state", "state", is_number=False),
        Column("subs", "names", count_text),
        Column("waiting", "waiting", count_text),
        Column("bytes", "bytes", bytes_text),
        Column("oldest", "oldest_s", seconds_text),
        Column("on disk", "spilled_bytes", bytes_text),
    ),
    {"lag": "waiting", "bytes": "bytes", "age": "oldest_s", "name": "name"},
)


_CONNECTIONS = TopTable(
    "connections",
    (
        Column("connection", "name", is_number=False),
        Column("address", "address", is_number=False),
        Column("user", "user", is_number=False),
        Column("pid", "pid", str),
        Column("subs", "names", count_text),
        Column("buffered", "buffered_bytes", bytes_text),
        Column("unsent", "unsent_bytes", bytes_text),
        Column("on disk", "disk_bytes", bytes_text),
        Column("oldest", "oldest_s", seconds_text),
        Column("in/s", "input_rate", bytes_text),
        Column("out/s", "output_rate", bytes_text),
    ),
    {"lag": "lag_bytes", "bytes": "lag_bytes", "rate": "output_rate", "age": "oldest_s", "name": "name"},
    is_optional=True,
)
_CHANNELS = TopTable(
    "channels",
    (
        Column("channel", "name", is_number=False),
        Column("messages/s", "rate", count_text),
        Column("subscribers", "subscribers", count_text),
    ),
    {"lag": "rate", "rate": "rate", "name": "name"},
    is_optional=True,
)
_LINKS = TopTable(
    "links",
    (
        Column("link", "name", is_number=False),
        Column("to", "url", is_number=False),
        Column("state", "state", is_number=False),
        Column("lag", "lag", count_text),
        Column("behind", "oldest_s", seconds_text),
        Column("dropped", "dropped", count_text),
        Column("in/s", "input_rate", bytes_text),
        Column("out/s", "output_rate", bytes_text),
        Column("error", "error", is_number=False),
    ),
    {"lag": "lag", "rate": "output_rate", "age": "oldest_s", "name": "name"},
    is_optional=True,
)
TITLES = ("topics", "groups", "subscribers", "connections", "channels", "links")


@dataclass(frozen=True)
class TopPage:
    """All that is shown at once."""

    summary: dict[str, Any]
    tables: list[TopTable]

    def about(self) -> dict[str, Any]:
        """Return it for programs."""
        return self.summary | dict.fromkeys(TITLES, []) | {table.title: table.rows for table in self.tables}


def page(
    before: TopReading | None, now: TopReading, sort: str, *, is_reversed: bool = False, wanted: str = ""
) -> TopPage:
    """`wanted` is a part of the names that are shown; rates are of what has come since `before`."""
    tables = []
    for table, rows, left_out in (
        (_TOPICS, _topics(before, now), now.topic_count - len(now.topics)),
        (_GROUPS, _groups(now), 0),
        (_SUBSCRIBERS, [_subscriber(entry) for entry in now.subscribers], 0),
        (_CONNECTIONS, _connections(before, now), _untold(now)),
        (_CHANNELS, [_channel(entry) for entry in now.channels], 0),
        (_LINKS, _links(before, now), 0),
    ):
        shown = [row for row in rows if wanted in row["name"] or wanted in row.get("group", "")]
        tables.append(table.with_rows(shown, left_out).sorted_by(sort, is_reversed=is_reversed))
    return TopPage(_summary(before, now), [table for table in tables if table.rows or not table.is_optional])


def _summary(before: TopReading | None, now: TopReading) -> dict[str, Any]:
    found: dict[str, Any] = {name: now.info.get(name) for name in GAUGES}
    for name in COUNTERS:
        found[name + "_per_s"] = _rate(before, now, name)
    return found | {"warnings": now.warnings}


def _rate(before: TopReading | None, now: TopReading, counter: str) -> float | None:
    """Return the rate; None if it is unknown: at first, and if another process answers than before."""
    if before is None or counter not in now.info or before.info.get("process_id") != now.info.get("process_id"):
        return None
    return _per_second(now.info[counter] - before.info[counter], before, now)


def _per_second(difference: int, before: TopReading, now: TopReading) -> float | None:
    seconds = now.at_s - before.at_s
    return round(difference / seconds, 1) if difference >= 0 and seconds > 0 else None


def _topics(before: TopReading | None, now: TopReading) -> list[Row]:
    rows = []
    for name, about in now.topics.items():
        earlier = before.topics.get(name) if before is not None else None
        rate = None
        if before is not None and earlier is not None:
            rate = _per_second(about["entries-added"] - earlier["entries-added"], before, now)
        rows.append(
            {
                "name": escaped(name),
                "entries": about["length"],
                "bytes": about["bytes"],
                "rate": rate,
                "groups": about["groups"],
                "retention": _retention(about),
                "state": _states(about, "paused", "ephemeral"),
            }
        )
    return rows


def _retention(about: dict[str, Any]) -> str:
    limits = [
        age_text(about["retain-age"]).decode() if about["retain-age"] else "",
        size_text(about["retain-bytes"]).decode() if about["retain-bytes"] else "",
        f"{about['retain-length']} entries" if about["retain-length"] else "",
    ]
    return " ".join(filter(None, limits)) or "unlimited"


def _states(about: dict[str, Any], *names: str) -> str:
    return " ".join([name for name in names if about[name]])


def _groups(now: TopReading) -> list[Row]:
    return [
        {
            "name": escaped(name),
            "group": escaped(raw(group["name"])),
            "lag": group["lag"],
            "pending": group["pending"],
            "delayed": group["delayed"],
            "dead_lettered": group["dead-lettered"],
            "consumers": group["consumers"],
            "state": _states(group, "paused", "asleep"),
        }
        for name, about in now.topics.items()
        for group in map(mapping, about["group-list"])
    ]


def _subscriber(entry: dict[str, Any]) -> Row:
    waiting, oldest_ms = entry["backlog_messages"], entry["oldest_age_ms"]
    return {
        "name": escaped(raw(entry.get("name", entry["id"]))),
        "kind": text(entry["kind"]),
        "pid": entry["pid"] or None,
        "state": text(entry["state"]),
        "names": entry["names"],
        "waiting": waiting,
        "bytes": entry["backlog_bytes"],
        "oldest_s": oldest_ms / 1000 if waiting and oldest_ms >= 0 else None,
        "spilled_bytes": entry.get("spilled_bytes"),
    }


def _connections(before: TopReading | None, now: TopReading) -> list[Row]:
    earlier = {(process["process"], client["id"]): (process["at_ms"], client) for process, client in _told(before)}
    rows = []
    for process, client in _told(now):
        last_ms, last = earlier.get((process["process"], client["id"]), (0, None))
        seconds = (process["at_ms"] - last_ms) / 1000 if last is not None else 0.0
        waiting_ms = client["waiting_ms"]
        rows.append(
            {
                "name": escaped(raw(client["name"])) or f"#{client['id']}",
                "id": client["id"],
                "process": text(process["process"]),
                "pid": process["pid"],
                "address": escaped(raw(client["addr"])),
                "user": escaped(raw(client["user"])),
                "names": sum(client[kind] for kind in ("channels", "patterns", "shards", "topics")),
                "buffered_bytes": client["buffered_bytes"],
                "disk_bytes": client["disk_bytes"],
                "unsent_bytes": client.get("unsent_bytes", 0),
                "lag_bytes": client["buffered_bytes"] + client["disk_bytes"] + client.get("unsent_bytes", 0),
                "oldest_s": waiting_ms / 1000 if waiting_ms else None,
                "input_rate": _traffic("input_bytes", client, last, seconds),
                "output_rate": _traffic("output_bytes", client, last, seconds),
            }
        )
    return rows


def _told(reading: TopReading | None) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    processes = reading.processes if reading is not None else []
    return [(process, mapping(client)) for process in processes for client in process["clients"]]


def _untold(now: TopReading) -> int:
    return sum(process["total"] - len(process["clients"]) for process in now.processes if process["at_ms"])


def _traffic(name: str, client: dict[str, Any], last: dict[str, Any] | None, seconds: float) -> float | None:
    """Return the traffic; None if nobody counts it, or it is not known yet."""
    if last is None or seconds <= 0 or client[name] < 0 or last[name] < 0:
        return None
    growth: int = client[name] - last[name]
    return round(max(0, growth) / seconds, 1)


def _channel(entry: list[Any]) -> Row:
    name, rate, subscribers = entry
    return {"name": escaped(raw(name)), "rate": float(rate), "subscribers": subscribers}


def _links(before: TopReading | None, now: TopReading) -> list[Row]:
    earlier = {link["name"]: link for link in before.links} if before is not None else {}
    rows = []
    for link in now.links:
        last = earlier.get(link["name"])
        seconds = now.at_s - before.at_s if before is not None else 0.0
        rows.append(
            {
                "name": escaped(raw(str(link["name"]))),
                "url": escaped(raw(unquote(str(link["url"])))),
                "state": text(str(link["state"])),
                "lag": link["lag"],
                "oldest_s": link["lag_ms"] / 1000 if link["lag_ms"] else None,
                "dropped": link["dropped"],
                "input_rate": _traffic("bytes_in", link, last, seconds),
                "output_rate": _traffic("bytes_out", link, last, seconds),
                "error": escaped(raw(unquote(str(link["error"])))),
            }
        )
    return rows
