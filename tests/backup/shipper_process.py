"""The process that follows a store, started by hand; and what it has made."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import diary
from patience import PATIENCE_S

from rlite_pubsub.backup.restoring import restore
from rlite_pubsub.backup.target import BackupTarget
from rlite_pubsub.backup.verifying import verify
from rlite_pubsub.cold.places import open_place
from rlite_pubsub.storage.commons import backup_state
from rlite_pubsub.storage.commons.backup_state import BackupState
from rlite_pubsub.storage.store import UNLIMITED_QUOTA_BYTES


class Shipper:
    """As a server starts it."""

    def __init__(
        self, store: Path, url: str, *, interval_s: float = 0.1, retain_s: int = 0, failpoint: str = ""
    ) -> None:
        self.store = store
        own = {"RLITE_FAILPOINT": failpoint} if failpoint else {}
        command = [sys.executable, "-m", "rlite_pubsub.backup.shipper"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, env=os.environ | own)
        words = {"dir": str(store), "url": url, "base": "/", "durability": "everysec"}
        self.tell(**words, quota_bytes=UNLIMITED_QUOTA_BYTES, interval_s=interval_s, retain_s=retain_s)

    def tell(self, **words: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(words).encode() + b"\n")
        self.process.stdin.flush()

    @property
    def state(self) -> BackupState:
        found = backup_state.read(self.store)
        is_ours = found is not None and found.pid == self.process.pid
        return found if found is not None and is_ours else BackupState()

    def exit_code(self) -> int:
        """Of one that ends by itself; minus the signal if one killed it."""
        return self.process.wait(PATIENCE_S)

    def end(self) -> None:
        """As a server that ends does."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.process.wait(PATIENCE_S) == 0

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def target_of(url: str) -> BackupTarget:
    return BackupTarget(open_place(url, "/"))


def faults(url: str) -> list[str]:
    """What `rlite-pubsub verify` would print."""
    return [f"{each.path}: {each.fault}" for each in verify(target_of(url)) if each.fault]


def restored(url: str, folder: Path, at_ms: int | None = None) -> tuple[int, bytes]:
    """(N, DEBUG DIGEST) of a state of a diary."""
    restore(target_of(url), folder, at_ms)
    return diary.digest(folder)
