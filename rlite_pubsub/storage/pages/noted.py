"""How long old readers have been there, for processes that come later, and have not seen them begin: in live.mdb.

    key   \\0 "reader" file u8 number u32 commit u64 thread (text)     value  since, ms u64

A server that sees one writes it down, and removes it once it is gone. Readers that are not in LMDB's table are ignored.
"""

from __future__ import annotations

from struct import Struct

from rlite_pubsub.storage import databases
from rlite_pubsub.storage.environment import Environment, Txn
from rlite_pubsub.storage.pages.readers import TableLine

_KEY = Struct(">cIQ")
_TIME = Struct(">Q")


def all(txn: Txn, environment: Environment) -> dict[TableLine, int]:
    """Return the old readers of one of the two files, and since when each has been there."""
    prefix = databases.OLD_READERS + _file(environment)
    found = {}
    for key, value in databases.items(txn, prefix):
        _, number, commit = _KEY.unpack_from(key, len(databases.OLD_READERS))
        thread = key[len(databases.OLD_READERS) + _KEY.size :].decode()
        found[TableLine(number, thread, commit)] = _TIME.unpack(value)[0]
    return found


def put(txn: Txn, environment: Environment, readers: dict[TableLine, int]) -> None:
    """Replace the old readers of a file."""
    databases.delete_all(txn, databases.OLD_READERS + _file(environment))
    for reader, since_ms in readers.items():
        place = _KEY.pack(_file(environment), reader.number, reader.transaction) + reader.thread.encode()
        txn.put(databases.OLD_READERS + place, _TIME.pack(since_ms))


def _file(environment: Environment) -> bytes:
    return environment.path.name[:1].encode()
