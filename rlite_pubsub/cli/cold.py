"""The subcommands of `rlite-pubsub cold`: what is in a cold store, whether it is whole, and how entries and manifests
come back. They work without a server, beside one, and without the store that the blocks came from.

Promise of `restore`: what the target already has it does not get again, so that a restore that was cut short goes on
where it was.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlite_pubsub.cli.ending import CommandFailed, say
from rlite_pubsub.cli.target import client_of, target_of
from rlite_pubsub.cli.text import escaped, for_json, mapping
from rlite_pubsub.extras import missing

if TYPE_CHECKING:
    from rlite_pubsub.cold.checking import Checked
    from rlite_pubsub.cold.manifest import Manifest
    from rlite_pubsub.cold.place import Place
    from rlite_pubsub.cold.restoring import RestoredEntries
    from rlite_pubsub.storage.cold.cold_blocks import BlockInfo
    from rlite_pubsub.storage.topics.entry_ids import Id

_AT_ONCE_ENTRIES = 1000
_AT_ONCE_BYTES = 4 << 20


def cold(parser: argparse.ArgumentParser) -> None:
    """Declares its commands."""
    words = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(word: str, action: Any, summary: str) -> argparse.ArgumentParser:
        command = words.add_parser(word, help=summary, description=summary)
        command.add_argument(
            "-s", "--store", "--dir", dest="store", default="./store", help="a store folder (default: ./store)"
        )
        command.add_argument(
            "--cold", metavar="URL", help="the cold store: a folder, s3://… (default: the store's own)"
        )
        command.add_argument("--topic", type=os.fsencode, help="only this topic")
        command.add_argument("--json", action="store_true", help="print JSON")
        command.set_defaults(run=lambda arguments: action(_place_of(arguments), arguments))
        return command

    listing = add("list", _list, "List the topics of a cold store, with what their blocks hold.")
    listing.add_argument("--blocks", action="store_true", help="each block, too")
    add("verify", _verify, "Read every manifest and every block, and report what is wrong.")
    _add_restore(add)
    rebuilding = add("rebuild", _rebuild, "Make lost or damaged manifests again, from the blocks alone.")
    rebuilding.add_argument("--force", action="store_true", help="rebuild intact ones too; dropped blocks come back")


def _place_of(arguments: argparse.Namespace) -> Place:
    """The place, and that it is there."""
    from rlite_pubsub.cold.reader import is_installed

    if not is_installed():
        raise CommandFailed(missing("the cold store", "cold"))
    from rlite_pubsub.cold.local_place import LocalPlace
    from rlite_pubsub.cold.places import open_place

    url = _url_of(Path(arguments.store)) if arguments.cold is None else str(Path(arguments.cold).absolute())
    if arguments.cold is not None and "://" in arguments.cold:
        url = arguments.cold
    place = open_place(url, arguments.store)
    if isinstance(place, LocalPlace) and not place.folder.is_dir():
        raise FileNotFoundError(f"there is no cold store in {place.folder}")
    return place


def _url_of(folder: Path) -> str:
    """Return where a store has its blocks."""
    if not (folder / "live.mdb").exists():
        return ""
    from rlite_pubsub.storage.cold import cold_home
    from rlite_pubsub.storage.store import Store

    with Store.open(folder) as store:
        home = store.data.read(cold_home.get)
    return "" if home is None else home.url


# -- list


def _list(place: Place, arguments: argparse.Namespace) -> int:
    from rlite_pubsub.cold.survey import is_in, survey

    found = survey(place)
    manifests = [each for each in found.manifests if arguments.topic in (None, each.origin.topic)]
    damaged = [each for each in found.damaged if is_in(each.path, arguments.topic)]
    if arguments.json:
        topics = [_topic_words(each, with_blocks=arguments.blocks) for each in manifests]
        said = {"cold": place.shown, "topics": topics, "problems": list(map(str, damaged))}
        print(json.dumps(said, indent=2))
    else:
        print(place.shown)
        for line in _list_lines(manifests, with_blocks=arguments.blocks):
            print(line)
    for failure in damaged:
        say(str(failure))
    return 1 if damaged else 0


def _list_lines(manifests: list[Manifest], *, with_blocks: bool) -> Iterator[str]:
    row = "{:24}  {:>8}  {:>8}  {:>12}  {:>14}  {:>14}  {:>24}  {:>24}".format
    yield row("topic", "number", "blocks", "entries", "bytes", "file bytes", "first", "last").rstrip()
    for each in manifests:
        said = _topic_words(each, with_blocks=False)
        numbers = [said[word] for word in ("number", "blocks", "entries", "bytes", "file_bytes")]
        yield row(escaped(each.origin.topic), *numbers, said["first"] or "-", said["last"] or "-")
        for block in each.blocks if with_blocks else ():
            own = _block_words(block)
            yield row("  block", "", "", block.count, block.wire_bytes, block.file_bytes, own["first"], own["last"])
            yield f"    {block.path}"


def _topic_words(manifest: Manifest, *, with_blocks: bool) -> dict[str, Any]:
    from rlite_pubsub.cold.id_words import id_text

    blocks = manifest.blocks
    return {
        "topic": for_json(manifest.origin.topic),
        "number": manifest.origin.number,
        "store": manifest.origin.store,
        "manifest": manifest.path,
        "blocks": list(map(_block_words, blocks)) if with_blocks else len(blocks),
        "entries": sum(block.count for block in blocks),
        "bytes": sum(block.wire_bytes for block in blocks),
        "file_bytes": sum(block.file_bytes for block in blocks),
        "first": id_text(blocks[0].first) if blocks else None,
        "last": id_text(blocks[-1].last) if blocks else None,
    }


def _block_words(block: BlockInfo) -> dict[str, Any]:
    from rlite_pubsub.cold.id_words import id_text

    return {
        "path": block.path,
        "first": id_text(block.first),
        "last": id_text(block.last),
        "entries": block.count,
        "bytes": block.wire_bytes,
        "file_bytes": block.file_bytes,
        "sha256": block.sha256.hex(),
        "sealed_ms": block.sealed_ms,
    }


# -- verify, rebuild


def _verify(place: Place, arguments: argparse.Namespace) -> int:
    from rlite_pubsub.cold import checking

    files = entries = wrong = 0
    for each in checking.verify(place, arguments.topic):
        files += 1
        entries += each.entries
        wrong += each.is_wrong
        if arguments.json:
            print(json.dumps(_checked_words(each)))
        elif each.kind != checking.OK:
            print(f"{each.kind:11}  {each.path}: {each.reason}")
    if arguments.json:
        print(json.dumps({"files": files, "entries": entries, "wrong": wrong}))
    else:
        print(f"{files} files with {entries} entries, {wrong or 'nothing'} wrong")
    return 1 if wrong else 0


def _checked_words(checked: Checked) -> dict[str, Any]:
    return {
        "path": checked.path,
        "state": checked.kind,
        "reason": checked.reason,
        "topic": None if checked.origin is None else for_json(checked.origin.topic),
        "entries": checked.entries,
        "file_bytes": checked.file_bytes,
    }


def _rebuild(place: Place, arguments: argparse.Namespace) -> int:
    from rlite_pubsub.cold import checking

    made = checking.rebuild(place, arguments.topic, is_forced=arguments.force)
    if arguments.json:
        said = {
            "manifests": [_topic_words(each, with_blocks=False) for each in made.manifests],
            "left_out": list(map(_checked_words, made.left_out)),
            "problems": list(map(_checked_words, made.problems)),
        }
        print(json.dumps(said, indent=2))
    else:
        for each in made.manifests:
            print(f"rebuilt      {each.path}: {len(each.blocks)} blocks")
        for other in (*made.left_out, *made.problems):
            print(f"{other.kind:11}  {other.path}: {other.reason}")
        if not made.manifests:
            print("no manifest was rebuilt")
    return 1 if made.problems else 0


# -- restore: entries as JSON lines, or into a store or server, with the ids they had


def _add_restore(add: Callable[[str, Any, str], argparse.ArgumentParser]) -> None:
    """The subcommand's options."""
    command = add("restore", _restore, "Bring entries back from blocks: as JSON lines, or into a store or server.")
    command.add_argument(
        "--to",
        type=target_of,
        metavar="STORE",
        help="a store's folder or a server (default: standard output, a JSON object each)",
    )
    command.add_argument("--create", action="store_true", help="make the store of --to if the folder has none")
    command.add_argument("--as", dest="name", type=os.fsencode, metavar="NAME", help="as this topic; needs --topic")
    command.add_argument("--from", dest="start", type=_id, metavar="ID", help="from this id on")
    command.add_argument("--until", dest="end", type=_id, metavar="ID", help="up to this id")


def _id(word: str) -> Id:
    from rlite_pubsub.cold.id_words import id_of

    try:
        return id_of(word if "-" in word else f"{word}-0")
    except ValueError as failure:
        raise argparse.ArgumentTypeError(f"{word} is not an id") from failure


def _restore(place: Place, arguments: argparse.Namespace) -> int:
    from rlite_pubsub.cold import restoring
    from rlite_pubsub.storage.topics import entry_ids

    if arguments.name is not None and (arguments.topic is None or arguments.to is None):
        raise CommandFailed("--as needs --topic and --to")
    failures = 0

    def readable() -> Iterator[RestoredEntries]:
        nonlocal failures
        start, end = arguments.start or entry_ids.MIN, arguments.end or entry_ids.MAX
        for found in restoring.restore(place, arguments.topic, start, end):
            if isinstance(found, restoring.RestoredEntries):
                yield found
            else:
                failures += 1
                say(str(found))

    if arguments.to is None:
        _print(readable())
    else:
        with client_of(arguments.to, creates=arguments.create) as client:
            counts = _append(client, readable(), arguments.name)
        _tell(counts, is_json=arguments.json)
    return 1 if failures else 0


def _print(found: Iterator[RestoredEntries]) -> None:
    from rlite_pubsub.cold.restoring import entries_in

    for restored in found:
        for entry_id, fields in entries_in(restored):
            pairs = [[for_json(name), for_json(value)] for name, value in zip(fields[::2], fields[1::2], strict=True)]
            said = {"topic": for_json(restored.origin.topic), "id": entry_id.decode(), "fields": pairs}
            sys.stdout.write(json.dumps(said) + "\n")


def _append(client: Any, found: Iterator[RestoredEntries], name: bytes | None) -> dict[bytes, list[int]]:
    """Append; return, for each topic, how many entries were written and how many it had."""
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
    """Return the last id that a topic ever had."""
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
