"""Making a data.mdb of rows that come in the order of their keys, and of changes that come over them: a restore."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import lmdb

from rlite_pubsub.storage.errors import DiskFull, StoreUnwritable
from rlite_pubsub.storage.handle import NO_ROOM_ON_DISK
from rlite_pubsub.storage.log.log import Position, packed_position
from rlite_pubsub.storage.log.transaction import POSITION

_MAP_BYTES = 1 << 40
_BATCH_BYTES = 16 << 20
"""In one transaction of LMDB."""


class RowsFile:
    """A new data.mdb, which has no log yet. It is whole once it is `finish`ed."""

    def __init__(self, path: Path) -> None:
        """Raises StoreUnwritable."""
        self._path = path
        try:
            self._lmdb = lmdb.open(os.fspath(path), subdir=False, map_size=_MAP_BYTES, sync=False, mode=0o600)
        except lmdb.Error as failure:
            raise StoreUnwritable(path, str(failure)) from failure

    def put(self, rows: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Put rows over what there is, each key once, and remove those that are None. Raises StoreError."""
        batch, size = list[tuple[bytes, bytes | None]](), 0
        for row in rows:
            batch.append(row)
            size += len(row[0]) + len(row[1] or b"")
            if size >= _BATCH_BYTES:
                self._commit(batch)
                batch, size = [], 0
        self._commit(batch)

    def _commit(self, batch: list[tuple[bytes, bytes | None]]) -> None:
        try:
            with self._lmdb.begin(write=True) as txn:
                for key, value in batch:
                    if value is None:
                        txn.delete(key)
                txn.cursor().putmulti([(key, value) for key, value in batch if value is not None])
        except lmdb.Error as failure:
            kind = DiskFull if failure.code in NO_ROOM_ON_DISK else StoreUnwritable
            raise kind(self._path, str(failure)) from failure

    def finish(self, commit: int) -> None:
        """Say which commit it is, and bring it to the disk. Raises StoreUnwritable."""
        try:
            with self._lmdb.begin(write=True) as txn:
                txn.put(POSITION, packed_position(Position(0, commit)))
            self._lmdb.sync(True)
        except lmdb.Error as failure:
            raise StoreUnwritable(self._path, str(failure)) from failure

    def close(self) -> None:
        self._lmdb.close()
        self._path.with_name(self._path.name + "-lock").unlink(missing_ok=True)
