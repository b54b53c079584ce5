"""The subcommands on backups: `backup`, `restore`, `backups`, `verify`. They work beside servers and programs that
write to the store, and without any."""

from __future__ import annotations

import argparse
import json
import logging
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlite_pubsub import measures
from rlite_pubsub.cli.ending import CommandFailed
from rlite_pubsub.cli.target import must_exist
from rlite_pubsub.extras import missing

if TYPE_CHECKING:
    from rlite_pubsub.backup.target import BackupTarget, Chain
    from rlite_pubsub.cold.place import Place
    from rlite_pubsub.storage.store import Store


_STORE = ("store", "a store's folder")
_TARGET = ("target", "a folder, s3://…, or a URL that pyarrow or fsspec knows")


def backup(parser: argparse.ArgumentParser) -> None:
    """Declares its options."""
    _declare(parser, _backup, _STORE, _TARGET)
    parser.add_argument("--retain", type=_seconds, metavar="AGE", help="remove what only older states need")
    parser.add_argument("--follow", action="store_true", help="copy every change to the target, until interrupted")
    parser.add_argument("--interval", type=float, default=1.0, metavar="SECONDS", help="with --follow (default: 1)")


def restore(parser: argparse.ArgumentParser) -> None:
    """Declares its options."""
    _declare(parser, _restore, _TARGET, _STORE)
    parser.add_argument("--at", type=_moment, metavar="TIME", help="as it was then: a time or an age (10m)")


def backups(parser: argparse.ArgumentParser) -> None:
    """Declares its options."""
    _declare(parser, _backups, _TARGET)


def verify(parser: argparse.ArgumentParser) -> None:
    """Declares its options."""
    _declare(parser, _verify, _TARGET)


def _declare(parser: argparse.ArgumentParser, run: Callable[[argparse.Namespace], int], *of: tuple[str, str]) -> None:
    for name, what in of:
        parser.add_argument(name, metavar=name.upper(), help=what)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def _moment(word: str) -> int:
    found = measures.moment_or_ms(word, int(time.time() * 1000), None)
    if found is None:
        raise argparse.ArgumentTypeError(f"{word!r} is not a time (2026-11-18T10:00:00Z), ms since 1970 or age (10m)")
    return found


def _seconds(word: str) -> int:
    found = measures.age_ms(word)
    if found is None:
        raise argparse.ArgumentTypeError(f"{word!r} is not an age (7d, 12h, 90s)")
    return found // 1000


def place_of(url: str) -> Place:
    """A target's. Raises CommandFailed."""
    from rlite_pubsub.cold.places import open_place

    try:
        return open_place(url, os.getcwd())
    except ImportError as failure:
        raise CommandFailed(missing("a bucket", "cold")) from failure


def _existing(url: str) -> BackupTarget:
    from rlite_pubsub.backup.target import BackupTarget
    from rlite_pubsub.cold.local_place import LocalPlace

    place = place_of(url)
    if isinstance(place, LocalPlace):
        folder = place.folder
        if (folder / "live.mdb").exists():
            raise CommandFailed(f"{folder} is a store, and no backup: `rlite-pubsub backup {folder} TARGET` makes one")
        _check_folder(place)
        if not folder.is_dir():
            raise FileNotFoundError(f"there is no backup in {folder}")
    return BackupTarget(place)


def _check_folder(place: Place) -> None:
    """Check that a place on this machine is a folder, if it is there. Raises CommandFailed."""
    from rlite_pubsub.cold.local_place import LocalPlace

    if isinstance(place, LocalPlace) and place.folder.exists() and not place.folder.is_dir():
        raise CommandFailed(f"{place.folder} is a file: a backup is a folder, or in a bucket")


@contextmanager
def _naming(place: Place) -> Iterator[None]:
    """Add the place to errors of its files."""
    from rlite_pubsub.backup.errors import BackupError
    from rlite_pubsub.cold.errors import ColdError

    try:
        yield
    except (BackupError, ColdError) as failure:
        said = str(failure)
        raise CommandFailed(said if said.startswith(("/", place.shown)) else f"{place.shown}: {said}") from failure


# -- backup


def _backup(arguments: argparse.Namespace) -> int:
    from rlite_pubsub.backup import once, room
    from rlite_pubsub.backup.moments import shown
    from rlite_pubsub.storage.store import Store

    must_exist(arguments.store)
    place = place_of(arguments.target)
    _check_folder(place)
    room.check_outside(place, Path(arguments.store))
    with Store.open(arguments.store) as store:
        if arguments.follow:
            return _follow(store, place, arguments)
        with _naming(place):
            made = once.backup(store, place, _now_ms)
            removed = None
            if arguments.retain is not None:
                removed = once.collect(store, place, _now_ms() - arguments.retain * 1000)
    if arguments.json:
        said = {"target": place.shown, "time_ms": made.name.time_ms, "chain": made.name.chain, "pieces": made.pieces}
        print(json.dumps({**said, "blocks": made.blocks, "new_bytes": made.new_bytes, "removed": removed}))
        return 1 if made.lost else 0
    print(f"{place.shown}: the state of {shown(made.name.time_ms)}")
    print(f"{made.pieces} pieces and {made.blocks} cold blocks, {made.new_bytes} bytes of which were new")
    if removed is not None:
        print(f"{removed} files were removed")
    if made.lost:
        raise CommandFailed(made.lost)
    return 0


def _follow(store: Store, place: Place, arguments: argparse.Namespace) -> int:
    from rlite_pubsub.backup.follower import BackupPlan
    from rlite_pubsub.backup.shipper import follow

    logging.basicConfig(level=logging.INFO, format="%(message)s")
    ended, end = map(open, os.pipe(), ("rb", "wb"))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: end.close())
    print(f"{place.shown}: following {store.folder} until interrupted", flush=True)
    follow(store, place, BackupPlan(max(arguments.interval, 0.05), arguments.retain or 0), ended.fileno())
    return 0


def _now_ms() -> int:
    return int(time.time() * 1000)


# -- restore


def _restore(arguments: argparse.Namespace) -> int:
    from rlite_pubsub.backup import restoring
    from rlite_pubsub.backup.moments import shown

    target = _existing(arguments.target)
    with _naming(target.place):
        done = restoring.restore(target, Path(arguments.store), arguments.at)
    if arguments.json:
        print(json.dumps({"store": arguments.store, **done._asdict()}))
        return 0
    print(f"{arguments.store}: the state of {shown(done.time_ms)}")
    print(f"commit {done.commit}, {done.changes} changes on a snapshot, {done.blocks} cold blocks")
    return 0


# -- backups, verify


def _backups(arguments: argparse.Namespace) -> int:
    target = _existing(arguments.target)
    with _naming(target.place):
        target.check()
        found = target.chains()
    chains = [_chain_words(chain) for chain in found if chain.snapshots]
    if arguments.json:
        sizes = {folder: sum(each.size for each in target.place.files(folder)) for folder in _folders()}
        print(json.dumps({"target": target.place.shown, "bytes": sizes, "chains": chains}, indent=2))
        return 0
    row = "{:24}  {:24}  {:>8}  {:>9}".format
    print(row("from", "to", "states", "snapshots"))
    for chain in chains:
        print(row(chain["from"], chain["to"], chain["states"], chain["snapshots"]))
    return 0


def _folders() -> tuple[str, ...]:
    from rlite_pubsub.backup import layout

    return layout.PIECES, layout.CHANGES, layout.SNAPSHOTS, layout.BLOCKS


def _chain_words(chain: Chain) -> dict[str, Any]:
    from rlite_pubsub.backup.moments import shown

    times = [time_ms for time_ms, _ in chain.states()]
    return {
        "chain": chain.name,
        "from": shown(min(times)),
        "to": shown(max(times)),
        "from_ms": min(times),
        "to_ms": max(times),
        "states": len(times),
        "snapshots": len(chain.snapshots),
    }


def _verify(arguments: argparse.Namespace) -> int:
    from rlite_pubsub.backup import verifying

    files = wrong = 0
    target = _existing(arguments.target)
    with _naming(target.place):
        for each in verifying.verify(target):
            files += 1
            wrong += bool(each.fault)
            if each.fault:
                print(json.dumps(each._asdict()) if arguments.json else f"{each.path}: {each.fault}")
    if arguments.json:
        print(json.dumps({"files": files, "wrong": wrong}))
    else:
        print(f"{files} files, {wrong or 'nothing'} wrong")
    return 1 if wrong else 0
