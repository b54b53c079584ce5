"""Opens images of a store as the first process after a power cut does, each in a process of its own.

    python opening.py BOOT_ID < folders, one a line; `restore FOLDER`: of what can be restored from this backup

Answers a line of JSON for each: what the store holds, or why it can't be opened. Children are forked from a process
that has never opened a store, and has imported all that a child before them had to: that takes longer than an image.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import sys
import traceback
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import rlite_pubsub
import rlite_pubsub.cold.block  # noqa: F401  once, and not in each child
from rlite_pubsub.backup.errors import NothingKept
from rlite_pubsub.backup.layout import HOME
from rlite_pubsub.backup.restoring import restore
from rlite_pubsub.backup.target import BackupTarget
from rlite_pubsub.backup.verifying import verify
from rlite_pubsub.cli.doctor import proof
from rlite_pubsub.cold.places import open_place
from rlite_pubsub.protocol.rdb import envelope
from rlite_pubsub.storage import boot, store

_BOOT, _BOOT_OF_THE_MACHINE = sys.argv[1].encode(), boot.boot_id
for module in list(sys.modules.values()):
    if getattr(module, "boot_id", None) is _BOOT_OF_THE_MACHINE:
        module.boot_id = lambda: _BOOT  # type: ignore[attr-defined]
envelope.crc64 = lambda *_: 0  # a proof dumps all keys, and restores none: their checksums would take most of the time

_SHOWN_BYTES = 100
"""Of a string: all of one that is judged."""


def look(folder: str) -> dict[str, Any]:
    """All keys and what they hold; all of it is proven, and then it is written to."""
    found: dict[str, Any] = {}
    with rlite_pubsub.Redis(folder, appendfsync="no", decode_responses=True) as client:
        for key in client.keys("*"):
            kind = client.type(key)
            if kind == "stream":
                found[key] = [id for id, _ in client.xrange(key)]
            elif kind == "list":
                found[key] = client.lrange(key, 0, -1)
            elif kind == "string":
                found[key] = client.getrange(key, 0, _SHOWN_BYTES)
            elif kind == "hash":
                found[key] = client.hgetall(key)
            elif kind == "zset":
                found[key] = client.zrange(key, 0, -1, withscores=True)
            elif kind == "set":
                found[key] = list(client.smembers(key))
            else:
                raise AssertionError(f"{key} is a {kind}")
        with store.Store.open(folder) as opened:
            faults = list(proof.faults(opened, folder))
        assert not faults, faults
        client.set("written", "again")
        client.xadd("written:t", {"a": "b"})
        assert client.get("written") == "again"
    return found


def restored(folder: str) -> dict[str, Any]:
    """The same of what can be restored from a backup; nothing, where nothing can be yet."""
    target, back = BackupTarget(open_place(folder, folder)), Path(folder).with_name("restored")
    wrong = [each for each in verify(target) if each.fault] if (Path(folder) / HOME).exists() else []
    assert not wrong, wrong
    shutil.rmtree(back, ignore_errors=True)
    try:
        restore(target, back)
    except NothingKept:
        return {}
    return look(str(back))


def answer_of(folder: str) -> dict[str, Any]:
    """By a child, which says what it had to import, too."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.dup2(write, 1)
        known = set(sys.modules)
        try:
            order, _, rest = folder.rpartition(" ")
            answer: dict[str, Any] = {"holds": restored(rest) if order else look(folder)}
        except BaseException as failure:
            answer = {"failure": f"{type(failure).__name__}: {failure}", "where": traceback.format_exc()[-1500:]}
        answer["imported"] = [name for name in sys.modules if name not in known]
        os.write(write, json.dumps(answer).encode())
        os._exit(0)
    os.close(write)
    with open(read, "rb") as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    found: dict[str, Any] = json.loads(said or json.dumps({"failure": f"ended by {status}"}))
    return found


def main() -> None:
    for line in sys.stdin:
        answer = answer_of(line.strip())
        for name in answer.pop("imported", ()):
            with suppress(ImportError):
                import_module(name)
        gc.freeze()
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
