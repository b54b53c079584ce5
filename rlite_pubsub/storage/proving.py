"""Whether LMDB can read a file to its end: found out by a process of its own, which a damaged page may end.

    python -m rlite_pubsub.storage.proving FILE ALONE|SHARED

It reads every record, and every record of the free list, and says what it has read; whoever started it says the rest: a
page that LMDB does not understand ends a process by SIGABRT or SIGSEGV, a file that is too short by SIGBUS.

A server notes such an end in `crash.txt`, in the store's folder: until the store was proved, whoever opens it next, and
is alone, proves it first.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from struct import error as StructError
from typing import IO, TYPE_CHECKING

from rlite_pubsub import permissions

if TYPE_CHECKING:
    import lmdb

_NOTE = "crash.txt"
_EVERY = 4096
_SHOWN_BYTES = 24
_ALONE, _SHARED = "alone", "shared"


# -- the note


def note_crashes(folder: Path) -> IO[bytes]:
    """Have Python note in this store's folder if LMDB, or whatever else is not Python, ends this process. It does so as
    long as the file that is returned is open. Raises OSError."""
    descriptor = permissions.opened(folder / _NOTE, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    file = os.fdopen(descriptor, "ab", buffering=0)
    faulthandler.enable(file, all_threads=False)
    return file


def noted_crash(folder: Path) -> str:
    """What ended the last process, if that was noted and the store was not proved since; else nothing."""
    try:
        with open(folder / _NOTE, "rb") as file:
            return file.readline(200).decode(errors="backslashreplace").strip()
    except OSError:
        return ""


def forget_crash(folder: Path) -> None:
    """The store was proved. Raises OSError."""
    if noted_crash(folder):
        os.truncate(folder / _NOTE, 0)


# -- the proof


def fault_in(path: Path, *, is_shared: bool = False) -> str:
    """What is wrong with the file; nothing, if all of it can be read. `is_shared`: others may have it open."""
    words = [sys.executable, "-m", "rlite_pubsub.storage.proving", os.fspath(path), _SHARED if is_shared else _ALONE]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True)
    *_, last = [b"", *done.stdout.splitlines()]
    if done.returncode == 0 and last == b"whole":
        return ""
    if last.startswith(b"fault "):
        return last[6:].decode(errors="backslashreplace")
    read = last.decode(errors="backslashreplace") or "nothing"
    if done.returncode < 0:
        name = signal.Signals(-done.returncode).name
        return f"a page of it is damaged: reading it ended a process by {name}, which had read {read}"
    said = done.stderr.decode(errors="backslashreplace").strip().splitlines()
    return f"it can't be read: {said[-1] if said else f'exit code {done.returncode}'}"


def _read_all(path: str, is_shared: bool) -> str:
    """What is wrong; nothing, if all of it can be read."""
    environment = opened(path, is_shared)
    before, count = b"", 0
    with begun(environment) as txn:
        for key, value in txn.cursor():
            name = bytes(key)
            if count and name <= before:
                return f"its records are not in order behind {before[:_SHOWN_BYTES]!r}"
            before = name
            sum(value[:: os.sysconf("SC_PAGE_SIZE")])  # every page of a long value is looked at
            count += 1
            if count % _EVERY == 0:
                print(f"{count} records, the last one {before[:_SHOWN_BYTES]!r}", flush=True)
        entries = environment.stat()["entries"]
    if is_shared:
        return ""  # others change the list of free pages, and the number of records, meanwhile
    if entries != count:
        return f"it has {count} records, and says that there are {entries}"
    return _fault_in_free_list(path)


def opened(path: str, is_shared: bool) -> lmdb.Environment:
    """The file's environment. To open it is to begin a transaction, too, behind the look at how large it is."""
    import lmdb

    while True:
        with suppress(lmdb.MapResizedError):
            return lmdb.open(path, subdir=False, readonly=True, lock=is_shared, max_readers=1)


def begun(environment: lmdb.Environment) -> lmdb.Transaction[memoryview]:
    """A transaction that reads, also if others have made the file larger since it was opened."""
    import lmdb

    while True:
        try:
            return environment.begin(buffers=True)
        except lmdb.MapResizedError:
            environment.set_mapsize(0)  # as large as it is now


def _fault_in_free_list(path: str) -> str:
    from rlite_pubsub.storage.pages import free_list, meta

    with open(path, "rb", buffering=0) as file:
        found = meta.read(file.fileno())
        if found is None:
            return "it has no commit"
        freed = 0
        try:
            for record in free_list.records(file.fileno(), found):
                freed += record.size
                if freed > found.last_page + 1:
                    return "its list of free pages has more of them than there are pages"
        except (StructError, ValueError, LookupError) as failure:
            return f"its list of free pages can't be read ({failure})"
    return ""


def main() -> int:
    """See above."""
    path, how = sys.argv[1:]
    try:
        fault = _read_all(path, how == _SHARED)
    except Exception as failure:
        fault = f"it can't be read: {failure or type(failure).__name__}"
    print(f"fault {' '.join(fault.split())}" if fault else "whole", flush=True)
    return 1 if fault else 0


if __name__ == "__main__":
    sys.exit(main())
