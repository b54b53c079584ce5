"""The subcommands that work on a store folder or on a Redis URL: publish, subscribe, channels, subscribers, doctor,
compact."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any

from rlite_pubsub.cli.ending import run
from rlite_pubsub.cli.target import add_target, client_of, folder_of, is_server, must_exist
from rlite_pubsub.cli.text import mapping, raw, text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlite_pubsub.storage.environment import Environment
    from rlite_pubsub.storage.store import Store


WATCHED_SECONDS = 3
"""So long a reader is looked at before it is told of: who writes keeps a checkpoint for a second or two."""
PAUSE_SECONDS = 0.003


def main(words: list[str]) -> int:
    """Run one of them; 0 if all went well."""
    return run(_parser(), words)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="rlite-pubsub")
    words = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(word: str, run: Any, summary: str, *, url: bool = True) -> argparse.ArgumentParser:
        command = words.add_parser(word, help=summary, description=summary)
        add_target(command, url=url)
        command.set_defaults(run=run)
        return command

    publish = add("publish", _publish, "Publish a message and print how many received it.")
    publish.add_argument("channel")
    publish.add_argument("message", help="- for standard input, one message a line")
    for word, what in (("subscribe", "channel"), ("psubscribe", "pattern")):
        command = add(word, _subscribe, f"Print what is published to each {what}, until interrupted.")
        command.add_argument("names", nargs="+", metavar=what)
        command.add_argument("-n", "--count", type=int, default=0, help="end after so many messages")
        command.set_defaults(patterns=word == "psubscribe")
    channels = add("channels", _channels, "List the channels that somebody subscribes to, with their subscribers.")
    channels.add_argument("pattern", nargs="?", default="*")
    subscribers = add("subscribers", _subscribers, "List the subscribers of a store: processes, names, backlogs.")
    subscribers.add_argument("--json", action="store_true", help="all that is known of them, with their names")
    doctor = add("doctor", _doctor, "Check a store and clean up after dead subscribers.", url=False)
    doctor.add_argument("--deep", action="store_true", help="read every record, and prove that they fit each other")
    add("compact", _compact, "Give free pages of a store back to the file system, while it is in use.", url=False)
    return parser


def _publish(arguments: argparse.Namespace) -> int:
    with client_of(arguments.store) as client:
        if arguments.message != "-":
            print(client.publish(arguments.channel, arguments.message))
            return 0
        for line in sys.stdin.buffer:
            print(client.publish(arguments.channel, line.removesuffix(b"\n")))
    return 0


def _subscribe(arguments: argparse.Namespace) -> int:
    left = arguments.count
    with client_of(arguments.store) as client, client.pubsub(ignore_subscribe_messages=True) as pubsub:
        (pubsub.psubscribe if arguments.patterns else pubsub.subscribe)(*arguments.names)
        for message in pubsub.listen():
            sys.stdout.buffer.write(message["channel"] + b" " + raw(message["data"]) + b"\n")
            sys.stdout.buffer.flush()
            left -= 1
            if left == 0:
                break
    return 0


def _channels(arguments: argparse.Namespace) -> int:
    with client_of(arguments.store) as client:
        names = sorted(client.pubsub_channels(arguments.pattern))
        for name, count in client.pubsub_numsub(*names) if names else []:
            sys.stdout.buffer.write(b"%b %d\n" % (name, count))
    return 0


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
    "spilled": ">12",
    "last bell": ">10",
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
                text(entry.get("name", entry["id"])),
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

    with _existing(folder) as store:
        return [view(entry, int(time.time() * 1000)) for entry in census(store)]


def _census_by_url(url: str) -> list[Any]:
    with client_of(url) as client:
        return list(client.execute_command("SUBSCRIBER.LIST"))


def _age(age_ms: int) -> str:
    return "unknown" if age_ms < 0 else f"{age_ms / 1000:.1f} s" if age_ms < 100_000 else f"{age_ms // 1000} s"


DOCTOR_PATIENCE_S = 1.0


def _doctor(arguments: argparse.Namespace) -> int:
    from rlite_pubsub.pubsub.census import census
    from rlite_pubsub.pubsub.reaping import reap_dead
    from rlite_pubsub.storage.errors import StoreHeld

    with _existing(arguments.store) as store:
        store.wait_for_writers(DOCTOR_PATIENCE_S)
        try:
            reaped = reap_dead(store)
            for environment in (store.live, store.data):
                environment.check_writer()
        except StoreHeld as held:
            print(f"held       {held}: nothing can be written until it goes on (kill -CONT) or ends")
            return 1
        entries = census(store)
        print(f"store      {store.folder}")
        for environment in (store.live, store.data):
            print(f"{environment.path.name:10} {_sizes(environment)}")
        print(f"reaped     {len(reaped)} dead subscriber(s)")
        for state in ("alive", "dead", "unknown"):
            print(f"{state:10} {sum(entry.state == state for entry in entries)} subscriber(s)")
        for line in _readers(store):
            print(line)
        if arguments.deep:
            return _proven(store, arguments.store)
    return 0


def _sizes(environment: Environment) -> str:
    sizes = environment.account.sizes(sys.maxsize)
    return (
        f"{sizes.used} bytes in use: {sizes.live} live, {sizes.free} free, {sizes.held} of these held; "
        f"{sizes.disk} on the disk"
    )


def _readers(store: Store) -> Iterator[str]:
    """Who reads for longer than one should: no transaction of ours is open for as long as we look."""
    from rlite_pubsub.storage.pages import noted, readers

    now_ms = int(time.time() * 1000)
    environments = (store.live, store.data)
    store.data.safety.let_go()
    left = {environment: set(environment.account.readers()) for environment in environments}
    end = time.monotonic() + WATCHED_SECONDS
    while any(left.values()) and time.monotonic() < end:
        time.sleep(PAUSE_SECONDS)
        left = {environment: left[environment] & set(environment.account.readers()) for environment in environments}
    for environment, readers_left in left.items():
        for reader in sorted(readers_left, key=lambda reader: reader.transaction):
            if reader.pid != os.getpid():
                since_ms = store.live.read(lambda txn: noted.all(txn, environment)).get(reader)  # noqa: B023
                age = f"for {(now_ms - since_ms) // 1000} s" if since_ms else f"for more than {WATCHED_SECONDS} s"
                held = environment.account.held_by(reader, sys.maxsize)
                yield (
                    f"reader     pid {reader.pid} ({readers.state_of(reader.pid)}) reads {environment.path.name} "
                    f"{age}, and keeps {held} bytes from being used again"
                )


def _compact(arguments: argparse.Namespace) -> int:
    from rlite_pubsub.storage.compaction import Compaction

    with _existing(arguments.store) as store:
        store.data.sync()  # so that what was freed last may go, too
        store.data.safety.let_go()
        compaction = Compaction(store)
        while compaction.step():
            time.sleep(PAUSE_SECONDS)  # others write
        print(f"{compaction.given_back} bytes were given back to the file system")
        for environment in (store.live, store.data):
            print(f"{environment.path.name:10} {_sizes(environment)}")
        for line in _readers(store):
            print(line)
    return 0


def _proven(store: Any, folder: str) -> int:
    from rlite_pubsub.cli.proof import faults

    found = 0
    for fault in faults(store, folder):
        found += 1
        print(f"fault      {fault}")
    print(f"proof      {found} fault(s)")
    return 1 if found else 0


def _existing(folder: str) -> Any:
    from rlite_pubsub.storage.store import Store

    must_exist(folder)
    return Store.open(folder)
