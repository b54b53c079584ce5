"""What a disk has changed in a record is said to be damage, to whoever meets it; the others are served."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import lmdb
import pytest
from patience import until
from server_process import Serve, ServerProcess

Change = Callable[[bytes], bytes]


@contextlib.contextmanager
def changed(server: ServerProcess, database: bytes, change: Change) -> Iterator[None]:
    """The first record of a database of data.mdb is another one meanwhile."""
    with contextlib.closing(
        lmdb.open(str(server.store_folder / "data.mdb"), subdir=False, map_size=1 << 30, max_readers=2048)
    ) as data:
        with data.begin(write=True) as txn, txn.cursor() as cursor:
            assert cursor.set_range(database)
            key, value = bytes(cursor.key()), bytes(cursor.value())
            assert key.startswith(database)
            txn.put(key, change(value))
        try:
            yield
        finally:
            with data.begin(write=True) as txn:
                txn.put(key, value)


@pytest.mark.parametrize(
    ("fill", "database", "change", "ask"),
    [
        (["SET", "k", "v"], b"D", lambda value: value[:5], ["DBSIZE"]),
        (["SET", "k", "v"], b"K", lambda value: value[:7], ["GET", "k"]),
        (["HSET", "k", "f", "v"], b"K", lambda value: value[:-20], ["HGETALL", "k"]),
        (["XADD", "k", "1-1", "f", "v"], b"t", lambda value: value[:3], ["XRANGE", "k", "-", "+"]),
        (["XGROUP", "CREATE", "k", "g", "0", "MKSTREAM"], b"G", lambda value: value[:9], ["XINFO", "GROUPS", "k"]),
    ],
)
def test_record_that_cannot_be_read_is_said_to_be_damaged(
    server: ServerProcess, fill: list[str], database: bytes, change: Change, ask: list[str]
) -> None:
    with server.connect() as peer, server.connect() as other:
        assert not isinstance(peer.do(*fill), Exception)
        whole = peer.do(*ask)
        with changed(server, database, change):
            reply = peer.do(*ask)
            assert "MISCONF" in str(reply) and "the store is damaged (a record cannot be read" in str(reply)
            assert other.do("PING") == b"PONG"
        until(lambda: peer.do(*ask) == whole, "what was there before")
    assert "met what cannot be read" in server.log()


def test_server_that_cannot_read_what_it_begins_with_says_that_the_store_is_damaged(serve: Serve) -> None:
    server = serve()
    with server.connect() as peer:
        peer.do("CONFIG", "SET", "retain", "events.* 1000 entries")
    assert server.end() == 0
    with changed(server, b"S" + bytes(8) + b"r", lambda value: value[:9]):
        again = serve(wait=False)
        assert again.exit_code() == 1
        assert "the store is damaged (a record cannot be read" in again.output()
        assert "Traceback" not in again.output() + again.log()
    with serve().connect() as peer:
        assert peer.do("CONFIG", "GET", "retain")[1] == b"events.* 1000 entries"
