"""A valkey-server as our master, and as our replica.

It prints scores in fewer digits than redis-server 7.0, and DEBUG DIGEST counts what is printed, so sorted sets are
compared by their members and scores.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from patience import until

from compat_tests import test_replica
from compat_tests.servers import VALKEY_SERVER, SocketServer
from compat_tests.test_master import DATABASES, KINDS, follow, has_caught_up, start_ours
from compat_tests.test_moving import fill

REQUESTS = 600
REFUSED = b"-9223372036854775808"
"""As the count of LREM, which redis-server 7.0 and its replicas take."""


@pytest.fixture
def valkey(tmp_path: Path) -> Iterator[SocketServer]:
    if VALKEY_SERVER is None:
        pytest.skip("there is no valkey-server")
    (tmp_path / "valkey").mkdir()
    quick = ["--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1"]
    server = SocketServer("valkey", [VALKEY_SERVER, "--save", "", *quick], tmp_path / "valkey")
    yield server
    server.stop()


@pytest.fixture
def ours(tmp_path: Path) -> Iterator[SocketServer]:
    server = start_ours(tmp_path / "store")
    yield server
    server.stop()


def contents(server: SocketServer) -> dict[tuple[int, bytes], Any]:
    """All keys: type, value and when it expires."""
    found: dict[tuple[int, bytes], Any] = {}
    with server.client() as client:
        for database in DATABASES:
            client.execute_command("SELECT", database)
            for key in client.keys():
                kind = client.type(key)
                value = (
                    client.zrange(key, 0, -1, withscores=True)
                    if kind == b"zset"
                    else client.execute_command("DEBUG", "DIGEST-VALUE", key)
                )
                found[database, key] = kind, value, client.pexpiretime(key)
    return found


def assert_same(master: SocketServer, replica: SocketServer) -> None:
    with master.client() as here, replica.client() as there:
        mine, theirs = {}, {(0, b""): None}
        for _ in range(5):  # a key may expire in between
            until(lambda: has_caught_up(here, there), "the replica has caught up")
            mine, theirs = contents(master), contents(replica)
            if mine == theirs:
                return
        different = {key: (mine.get(key), theirs.get(key)) for key in mine | theirs if mine.get(key) != theirs.get(key)}
        raise AssertionError(str(different)[:3000])


def test_a_valkey_has_what_random_requests_leave_goes_on_behind_a_cut_and_takes_over(
    ours: SocketServer, valkey: SocketServer
) -> None:
    with ours.client() as here, valkey.client() as there:
        fill(here)
        follow(valkey, ours)
        for kind in KINDS.values():
            requests = kind(1)
            with ours.wire() as wire:
                for _ in range(REQUESTS):
                    words = requests.next()
                    if REFUSED not in words:
                        wire.ask(*words)
            assert_same(ours, valkey)
            here.client_kill_filter(_type="replica")
        here.execute_command("SELECT", 0)
        here.set("last", 1)
        assert here.wait(1, 20_000) in (0, 1)  # it may be on its way back
        assert_same(ours, valkey)
        assert here.info("stats")["sync_full"] == 1
        assert there.execute_command("REPLICAOF", "NO", "ONE")
        assert there.incr("last") == 2


def test_a_store_follows_a_valkey_through_cuts_and_takes_over(ours: SocketServer, valkey: SocketServer) -> None:
    dice = random.Random(7)
    with ours.client() as here, valkey.client() as there:
        fill(there)
        there.xgroup_create("x", "g", "0", mkstream=True)
        test_replica.change(there, dice, 300)
        here.execute_command("REPLICAOF", "127.0.0.1", valkey.port)
        for _ in range(4):
            test_replica.change(there, dice, 300)
            assert_same(valkey, ours)
            there.client_kill_filter(_type="replica")
        until(lambda: has_caught_up(there, here), "it is back")
        assert there.info("stats")["sync_full"] == 1
        with pytest.raises(redis.ReadOnlyError):
            here.set("a", 1)
        assert here.execute_command("REPLICAOF", "NO", "ONE")
        assert here.set("a", 1)
