"""The commands that list the subscribers of a store and give its free pages back: subscribers, compact."""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

from rlite_pubsub.cli.doctor.files import PAUSE_SECONDS, existing, readers_of, sizes_of
from rlite_pubsub.cli.ending import CommandFailed
from rlite_pubsub.cli.target import add_target, client_of, folder_of, is_server, target_of
from rlite_pubsub.cli.text import escaped, mapping, raw, text


def subscribers(parser: argparse.ArgumentParser) -> None:
    """Declares its options."""
    add_target(parser)
    parser.add_argument("--json", action="store_true", help="print JSON, with all details and names")
    parser.set_defaults(run=_subscribers)


def compact(parser: argparse.ArgumentParser) -> None:
    """Declares its options."""
    add_target(parser)
    parser.add_argument(
        "store",
        nargs="?",
        metavar="STORE",
        type=target_of,
        default=argparse.SUPPRESS,  # then what -s says counts
        help="a store's folder; the same as -s STORE",
    )
    parser.set_defaults(run=_compact)


_COLUMNS = {
    "subscriber": ">24",
    "kind": "8",
    "pid": ">8",
    "state": "7",
    "channels": ">8",
    "patterns": ">8",
    "shards": ">6",
    "waiting": ">8",
    "bytes": ">12",
    "oldest": ">10",
    "on disk": ">12",
    "notified": ">10",
}
"""Head and format."""


def _subscribers(arguments: argparse.Namespace) -> int:
    target: str = arguments.store
    found = _census_by_url(target) if is_server(target) else _census_of_folder(folder_of(target))
    entries = [mapping(entry) for entry in found]
    if arguments.json:
        print(json.dumps(entries, default=text, indent=2))
        return 0
    row = "  ".join(f"{{:{form}}}" for form in _COLUMNS.values()).format
    now_ms = int(time.time() * 1000)
    print(row(*_COLUMNS).rstrip())
    for entry in entries:
        bell_ms = entry["last_bell_ms"]
        print(
            row(
                escaped(raw(entry.get("name", entry["id"]))),
                text(entry["kind"]),
                entry["pid"] or "-",
                text(entry["state"]),
                entry["channel_count"],
                entry["pattern_count"],
                entry["shard_count"],
                entry["backlog_messages"],
                entry["backlog_bytes"],
                _age(entry["oldest_age_ms"]) if entry["backlog_messages"] else "-",
                entry.get("spilled_bytes", "-"),
                f"{_age(max(0, now_ms - bell_ms))} ago" if bell_ms else "-",
            )
        )
    return 0


def _census_of_folder(folder: str) -> list[dict[Any, Any]]:
    from rlite_pubsub.engine.stats.subscriber_view import view
    from rlite_pubsub.pubsub.census import census

    with existing(folder) as store:
        return [view(entry, int(time.time() * 1000)) for entry in census(store)]


def _census_by_url(url: str) -> list[Any]:
    with client_of(url) as client:
        return list(client.execute_command("SUBSCRIBER.LIST"))


def _age(age_ms: int) -> str:
    return "unknown" if age_ms < 0 else f"{age_ms / 1000:.1f} s" if age_ms < 100_000 else f"{age_ms // 1000} s"


def _compact(arguments: argparse.Namespace) -> int:
    from rlite_pubsub.storage.compaction import Compaction

    if is_server(arguments.store):
        raise CommandFailed("compact works on a folder; tell a server to do it with CONFIG SET compact-every 3600")
    with existing(folder_of(arguments.store)) as store:
        store.data.sync()  # so that what was freed last may go, too
        store.data.safety.let_go()
        compaction = Compaction(store)
        while compaction.step():
            time.sleep(PAUSE_SECONDS)  # others write
        print(f"{compaction.given_back} bytes were given back to the file system")
        for environment in (store.live, store.data):
            print(f"{environment.path.name:10} {sizes_of(environment)}")
        for line in readers_of(store):
            print(line)
    return 0
