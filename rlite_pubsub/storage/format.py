"""The version of the bytes in an environment (FORMAT.md), written when it is made and checked whenever it is opened.

    key \\0 "format"   value  version u32
    key \\0 "boot"     value  the boot id during which live.mdb was made (live.mdb only)
"""

from __future__ import annotations

from pathlib import Path
from struct import Struct

from rlite_pubsub.storage.boot import boot_id
from rlite_pubsub.storage.databases import BOOT, FORMAT
from rlite_pubsub.storage.environment import Environment, Txn
from rlite_pubsub.storage.errors import StoreDamaged, StoreFormatMismatch, StoreFormatOlder

VERSION = 4
OLDEST_VERSION = 1
"""The oldest that can be upgraded (upgrade.py)."""
_VERSION = Struct(">I")


def check_or_mark(environment: Environment, boot: bytes = b"", *, was_ours: bool = False) -> None:
    """Mark a new environment as a store's. Raises StoreFormatMismatch for one of another version, and StoreDamaged for
    one without a mark that is known to have had one."""
    if environment.read(lambda txn: _is_ours(txn, environment.path, was_ours)):
        return

    def make(txn: Txn) -> None:
        mark(txn)
        if boot:
            txn.put(BOOT, boot)

    environment.write(make)


def version(environment: Environment) -> int | None:
    """Return the version it is marked with; None for a new one, or another program's."""
    found = environment.read(lambda txn: txn.get(FORMAT))
    return None if found is None else int.from_bytes(found, "big")


def mark(txn: Txn) -> None:
    """Mark it with this version."""
    txn.put(FORMAT, _VERSION.pack(VERSION))


def is_of_this_boot(environment: Environment) -> bool:
    """Return False only if it was surely made before the machine's last start."""
    recorded = environment.read(lambda txn: txn.get(BOOT))
    current = boot_id()
    return not recorded or not current or recorded == current


def _is_ours(txn: Txn, path: Path, was_ours: bool) -> bool:
    """Return False for an empty environment; raise for another program's."""
    found = txn.get(FORMAT)
    if found is None:
        if txn.stat()["entries"]:
            if was_ours:
                raise StoreDamaged(path, "its mark is missing")
            raise StoreFormatMismatch(path, "of another program", str(VERSION))
        return False
    if found != _VERSION.pack(VERSION):
        number = int.from_bytes(found, "big")
        mismatch = StoreFormatOlder if OLDEST_VERSION <= number < VERSION else StoreFormatMismatch
        raise mismatch(path, str(number), str(VERSION))
    return True
