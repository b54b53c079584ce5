"""Replication over TLS: a redis-server that is our replica, a store that is a redis-server's, and redis-cli --rdb."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from certificates import Authority
from patience import until
from ports import free_port

from compat_tests.servers import REDIS_CLI, SocketServer
from compat_tests.test_master import has_caught_up, start_ours, start_redis
from compat_tests.test_moving import digest, fill


class Secure:
    """A server with a port for TLS, too, and what a client of it needs."""

    def __init__(self, start: Callable[..., SocketServer], folder: Path, authority: Authority, name: str) -> None:
        certificate, key = authority.issue(name)
        self.tls_port = free_port()
        self.files = ["--cacert", str(authority.file), "--cert", str(certificate), "--key", str(key)]
        options = [
            *("--tls-port", str(self.tls_port), "--tls-cert-file", str(certificate), "--tls-key-file", str(key)),
            *("--tls-ca-cert-file", str(authority.file), "--tls-replication", "yes"),
        ]
        self.server = start(folder, *options)

    def follow(self, master: Secure) -> None:
        with self.server.client() as here, master.server.client() as there:
            here.execute_command("REPLICAOF", "127.0.0.1", master.tls_port)
            until(lambda: has_caught_up(there, here), "the replica has caught up")


@pytest.fixture
def ours_and_theirs(tmp_path: Path) -> Iterator[tuple[Secure, Secure]]:
    authority = Authority(tmp_path / "certificates")
    theirs = Secure(start_redis, tmp_path / "redis", authority, "redis")
    ours = Secure(start_ours, tmp_path / "store", authority, "ours")
    yield ours, theirs
    ours.server.stop()
    theirs.server.stop()


@pytest.mark.parametrize("is_diskless", ["yes", "no"])
@pytest.mark.parametrize("is_master", [True, False])
def test_a_replica_has_all_over_tls_and_goes_on_behind_a_cut(
    ours_and_theirs: tuple[Secure, Secure], is_diskless: str, is_master: bool
) -> None:
    master, replica = ours_and_theirs if is_master else ours_and_theirs[::-1]
    with master.server.client() as here, replica.server.client() as there:
        here.config_set("repl-diskless-sync", is_diskless)
        here.config_set("repl-backlog-size", "64mb")
        fill(here)
        for number in range(40):
            here.set(f"large{number}", bytes([number]) * 500_000)  # more than sockets and pipes hold
        replica.follow(master)
        for number in range(3):
            assert digest(here) == digest(there)
            here.client_kill_filter(_type="replica")
            for _ in range(100):
                here.incr("a", number)
                here.set("large0", bytes([number]) * 100_000)
            until(lambda: has_caught_up(here, there), "it goes on")
        assert digest(here) == digest(there)
        assert here.info("stats")["sync_full"] == 1
        assert there.info("replication")["master_port"] == master.tls_port
        assert here.info("replication")["slave0"]["port"] == replica.tls_port


def test_a_replica_that_cannot_verify_its_master_does_not_follow(tmp_path: Path) -> None:
    theirs = Secure(start_redis, tmp_path / "redis", Authority(tmp_path / "one", "one"), "redis")
    ours = Secure(start_ours, tmp_path / "store", Authority(tmp_path / "other", "other"), "ours")
    try:
        with ours.server.client() as here, theirs.server.client() as there:
            here.set("kept", 1)
            here.execute_command("REPLICAOF", "127.0.0.1", theirs.tls_port)
            log = tmp_path / "store" / "server.log"
            until(lambda: "the link to" in log.read_text(errors="replace"), "it says why")
            assert "certificate verify failed" in log.read_text(errors="replace")
            assert there.info("replication")["connected_slaves"] == 0
            assert here.get("kept") == b"1"
    finally:
        ours.server.stop()
        theirs.server.stop()


def test_redis_cli_takes_a_file_over_tls(ours_and_theirs: tuple[Secure, Secure], tmp_path: Path) -> None:
    if REDIS_CLI is None:
        pytest.skip("there is no redis-cli")
    ours, _ = ours_and_theirs
    target = tmp_path / "dump.rdb"
    with ours.server.client() as here:
        fill(here)
        here.set("large", b"x" * 5_000_000)
        expected = digest(here)
    words = [REDIS_CLI, "-p", str(ours.tls_port), "--tls", *ours.files, "--rdb", str(target)]
    done = subprocess.run(words, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr
    loaded = start_redis(tmp_path, "--dbfilename", "dump.rdb")
    try:
        with loaded.client() as client:
            until(lambda: digest(client) == expected, "it is loaded")
    finally:
        loaded.stop()
