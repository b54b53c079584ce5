"""`rlite-pubsub import` and `export`: a store's keys out of what Redis keeps or a running Redis, and into an RDB file.

Promises:
 - Where the store is new, an import that fails, or is killed, leaves none.
 - An export has one consistent state, and stands under its name when it is whole.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import secrets
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rlite_pubsub import permissions
from rlite_pubsub.cli.ending import CommandFailed, say
from rlite_pubsub.cli.secrets import without_password
from rlite_pubsub.cli.target import folder_of, is_server, must_be_readable, must_exist, target_of
from rlite_pubsub.cli.whole_file import whole_file

if TYPE_CHECKING:
    from rlite_pubsub.replication.importing import Imported


def importing(parser: argparse.ArgumentParser) -> None:
    """Declare `import`."""
    parser.description = (
        "Make a store from Redis's keys: an RDB file, an append-only file or folder, or a running server (redis://, "
        "rediss:// or unix://, which is asked for everything, as by a replica)."
    )
    parser.add_argument("source", metavar="dump.rdb|appendonlydir|redis://...")
    parser.add_argument("store", metavar="STORE", help="a folder, which must be new unless you say --merge")
    parser.add_argument("--merge", action="store_true", help="into an existing store; replace keys of the same name")
    parser.set_defaults(run=_import)


def exporting(parser: argparse.ArgumentParser) -> None:
    """Declare `export`."""
    parser.description = "Write a store's keys, with topics' cold entries, into an RDB file that redis-server 7 loads."
    parser.add_argument("store", metavar="STORE", help="a folder")
    parser.add_argument("file", metavar="dump.rdb", help="- for standard output")
    parser.set_defaults(run=_export)


# -- import


def _import(arguments: argparse.Namespace) -> int:
    from rlite_pubsub.replication.importing import ImportFailed, import_into

    folder = Path(folder_of(arguments.store))
    source = target_of(arguments.source)
    if not is_server(source):
        must_be_readable(source)  # before a store is made for it
    with _place(folder, merge=arguments.merge) as place:
        try:
            imported = import_into(place, source)
        except ImportFailed as failure:
            raise CommandFailed(f"{without_password(source)}: {failure}") from failure
    _tell(imported, folder)
    return 0


@contextmanager
def _place(folder: Path, *, merge: bool) -> Iterator[Path]:
    """Yield the folder in which to make the store, which is moved to its own place if all went well."""
    if merge:
        must_exist(os.fspath(folder))
        yield folder
        return
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CommandFailed(f"{folder} exists: --merge adds to an existing store")
    whole = folder.absolute()
    whole.parent.mkdir(parents=True, exist_ok=True)
    _sweep(whole)
    place = whole.with_name(f".{whole.name}.importing-{secrets.token_hex(8)}")
    lock = os.open(_lock_of(place), os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, permissions.OWNERS_FILE)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield place
        os.replace(place, folder)
    finally:
        shutil.rmtree(place, ignore_errors=True)
        _lock_of(place).unlink(missing_ok=True)
        os.close(lock)


def _lock_of(place: Path) -> Path:
    """Return the file that an import keeps locked as long as it lives."""
    return place.with_name(place.name + ".lock")


def _sweep(whole: Path) -> None:
    """Remove what imports that were killed have left."""
    for place in whole.parent.glob(f".{whole.name}.importing-*"):
        if place.suffix == ".lock":
            continue
        try:
            lock = os.open(_lock_of(place), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, permissions.OWNERS_FILE)
        except OSError:
            continue  # another user's
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(place, ignore_errors=True)
            _lock_of(place).unlink(missing_ok=True)
        except BlockingIOError:
            pass  # it is under way
        finally:
            os.close(lock)


def _tell(imported: Imported, folder: Path) -> None:
    print(f"{folder}: {imported.keys} keys and {imported.libraries} libraries of functions")
    if imported.requests:
        print(f"{imported.requests} requests of append-only files were executed")
    if imported.over:
        print(f"{imported.over} keys had expired, and are left out")
    if imported.of_modules:
        say(f"{imported.of_modules} keys are of modules, and are left out")
    if imported.not_executed:
        names = ", ".join(f"{name} ({count})" for name, count in sorted(imported.not_executed.items()))
        say(f"{imported.not_executed.total()} requests change no keys, and were not executed: {names}")
    for warning in imported.warnings:
        say(warning)


# -- export


def _export(arguments: argparse.Namespace) -> int:
    from rlite_pubsub.replication.exporting import export_from

    folder = folder_of(arguments.store)
    must_exist(folder)
    if arguments.file == "-":
        export_from(folder, sys.stdout.buffer.write)
        return 0
    path = Path(arguments.file)
    with whole_file(path) as write:
        exported = export_from(folder, write)
    print(f"{path}: {exported.keys} keys and {exported.libraries} libraries of functions")
    return 0
