"""`rlite-pubsub cold restore`: entries of blocks as JSON lines, or into a store or server, with the ids they had.

Promise: what the target already has it does not get again, so that a restore that was cut short goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from rlite_pubsub.cli.ending import CommandFailed, say
from rlite_pubsub.cli.target import client_of
from rlite_pubsub.cli.text import escaped, for_json, mapping

if TYPE_CHECKING:
    from rlite_pubsub.cold.place import Place
    from rlite_pubsub.cold.restoring import Restored
    from rlite_pubsub.storage.topics.entry_ids import Id

_AT_ONCE_ENTRIES = 1000
_AT_ONCE_BYTES = 4 << 20


def add_restore(add: Callable[[str, Any, str], argparse.ArgumentParser]) -> None:
    """The subcommand's options."""
    command = add("restore", _restore, "Bring entries back from blocks: as JSON lines, or into a store or server.")
    command.add_argument(
        "--to", metavar="STORE", help="a store folder or a redis:// URL (default: standard output, a JSON object each)"
    )
    command.add_argument("--as", dest="name", type=os.fsencode, metavar="NAME", help="as this topic; needs --topic")
    command.add_argument("--from", dest="start", type=_id, metavar="ID", help="from this id on")
    command.add_argument("--until", dest="end", type=_id, metavar="ID", help="up to this id")


def _id(word: str) -> Id:
    from rlite_pubsub.cold.id_words import id_of

    try:
        return id_of(word if "-" in word else f"{word}-0")
    except ValueError as failure:
        raise argparse.ArgumentTypeError(f"{word} is no id") from failure


def _restore(place: Place, arguments: argparse.Namespace) -> int:
    from rlite_pubsub.cold import restoring
    from rlite_pubsub.storage.topics import entry_ids

    if arguments.name is not None and (arguments.topic is None or arguments.to is None):
        raise CommandFailed("--as needs --topic and --to")
    failures = 0

    def readable() -> Iterator[Restored]:
        nonlocal failures
        start, end = arguments.start or entry_ids.MIN, arguments.end or entry_ids.MAX
        for found in restoring.restore(place, arguments.topic, start, end):
            if isinstance(found, restoring.Restored):
                yield found
            else:
                failures += 1
                say(str(found))

    if arguments.to is None:
        _print(readable())
    else:
        with client_of(arguments.to) as client:
            counts = _append(client, readable(), arguments.name)
        _tell(counts, is_json=arguments.json)
    return 1 if failures else 0


def _print(found: Iterator[Restored]) -> None:
    from rlite_pubsub.cold.restoring import entries_in

    for restored in found:
        for entry_id, fields in entries_in(restored):
            pairs = [[for_json(name), for_json(value)] for name, value in zip(fields[::2], fields[1::2], strict=True)]
            said = {"topic": for_json(restored.origin.topic), "id": entry_id.decode(), "fields": pairs}
            sys.stdout.write(json.dumps(said) + "\n")


def _append(client: Any, found: Iterator[Restored], name: bytes | None) -> dict[bytes, list[int]]:
    """Of each topic, how many entries were written and how many it had."""
    from rlite_pubsub.cold.id_words import id_of
    from rlite_pubsub.cold.restoring import entries_in

    counts: dict[bytes, list[int]] = {}
    lasts: dict[bytes, Id] = {}
    for restored in found:
        topic = restored.origin.topic if name is None else name
        if topic not in counts:
            counts[topic] = [0, 0]
            lasts[topic] = _last_of(client, topic)
        pipe, waiting = client.pipeline(transaction=False), 0
        for entry_id, fields in entries_in(restored):
            if id_of(entry_id.decode()) <= lasts[topic]:
                counts[topic][1] += 1
                continue
            pipe.execute_command("XADD", topic, entry_id, *fields)
            counts[topic][0] += 1
            waiting += sum(map(len, fields))
            if len(pipe) >= _AT_ONCE_ENTRIES or waiting >= _AT_ONCE_BYTES:
                pipe.execute()
                waiting = 0
        pipe.execute()
    return counts


def _last_of(client: Any, topic: bytes) -> Id:
    """The last id that a topic ever had."""
    from rlite_pubsub.cold.id_words import id_of

    if not client.exists(topic):
        return 0, 0
    last = mapping(client.execute_command("XINFO", "STREAM", topic))["last-generated-id"]
    return id_of(last.decode() if isinstance(last, bytes) else last)


def _tell(counts: dict[bytes, list[int]], *, is_json: bool) -> None:
    if is_json:
        said = [{"topic": for_json(topic), "restored": new, "there": old} for topic, (new, old) in counts.items()]
        print(json.dumps(said, indent=2))
        return
    for topic, (new, old) in counts.items():
        print(f"{escaped(topic)}: {new} entries restored, {old} were there or below the last id there")
