"""Links over TLS, and to a master that Sentinel names: with real processes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import redis
from certificates import Authority
from other_server import Ear, RedisProcess, linked, open_way
from patience import until
from ports import free_port
from server_process import Serve

QUORUM = 1


def test_a_link_over_tls_checks_the_certificate(
    serve: Serve, tmp_path: Path, start_redis: Callable[..., RedisProcess]
) -> None:
    authority = Authority(tmp_path / "tls")
    certificate, key = authority.issue("server")
    tls_port = free_port()
    theirs = start_redis(
        "--tls-port", str(tls_port), "--tls-cert-file", str(certificate), "--tls-key-file", str(key),
        "--tls-ca-cert-file", str(authority.file), "--tls-auth-clients", "no",
    )  # fmt: skip
    ours = serve()
    client = redis.Redis(port=ours.port)
    stranger = Authority(tmp_path / "tls", "stranger")
    url = f"rediss://127.0.0.1:{tls_port}?ssl_ca_certs="
    client.execute_command("LINK", "CREATE", "stranger", f"{url}{stranger.file}")
    client.execute_command("LINK", "CREATE", "secure", f"{url}{authority.file}")
    until(lambda: linked(ours.port, "secure"), "the link")

    def is_refused() -> bool:
        return b"certificate verify failed" in client.execute_command("LINK", "INFO", "stranger")[b"error"]

    until(is_refused, "the refusal")
    here, there = Ear(ours.port, "news"), Ear(theirs.port, "news")
    open_way(ours.port, there, "news")
    open_way(theirs.port, here, "news")
    fields = {"n": 1}
    client.xadd("orders", fields)
    client.execute_command("LINK", "CREATE", "topics", f"{url}{authority.file}", "TOPICS", "orders")
    until(lambda: redis.Redis(port=theirs.port).xlen("orders") == 1, "the entry")


@pytest.fixture
def masters(start_redis: Callable[..., RedisProcess]) -> tuple[RedisProcess, RedisProcess, RedisProcess]:
    """(a master, its replica, the sentinel that watches them)"""
    master = start_redis("--appendonly", "yes", "--appendfsync", "always")
    replica = start_redis("--replicaof", "127.0.0.1", str(master.port), "--repl-diskless-sync-delay", "0")
    until(lambda: replica.client().info("replication")["master_link_status"] == "up", "the replica")
    file = master.folder / "sentinel.conf"
    file.write_text(
        f"sentinel monitor main 127.0.0.1 {master.port} {QUORUM}\n"
        "sentinel down-after-milliseconds main 1000\nsentinel failover-timeout main 5000\n"
    )
    sentinel = start_redis(str(file), "--sentinel")
    until(lambda: _knows_replica(sentinel), "the sentinel's knowledge")
    return master, replica, sentinel


def _knows_replica(sentinel: RedisProcess) -> bool:
    return bool(redis.Redis(port=sentinel.port, decode_responses=True).sentinel_slaves("main"))


def test_a_link_follows_the_master_when_it_is_failed_over(
    serve: Serve, masters: tuple[RedisProcess, RedisProcess, RedisProcess]
) -> None:
    master, replica, sentinel = masters
    ours = serve()
    client = redis.Redis(port=ours.port)
    url = f"redis+sentinel://127.0.0.1:{sentinel.port}/main"
    client.execute_command("LINK", "CREATE", "main", url)
    client.execute_command("LINK", "CREATE", "topics", url, "TOPICS", "orders")
    until(lambda: linked(ours.port, "main"), "the link")
    here, there = Ear(ours.port, "news"), Ear(master.port, "news")
    open_way(ours.port, there, "news")
    open_way(master.port, here, "news")
    for number in range(100):
        client.xadd("orders", {"n": number})
    until(lambda: redis.Redis(port=replica.port).xlen("orders") == 100, "the entries at the replica")
    master.kill()
    until(lambda: replica.client().info("replication")["role"] == "master", "the failover")
    for number in range(100, 200):
        client.xadd("orders", {"n": number})
    there = Ear(replica.port, "news")
    open_way(ours.port, there, "news")
    here.heard.clear()
    open_way(replica.port, here, "news")
    until(lambda: replica.client().xlen("orders") == 200, "the entries")
    assert [int(fields[b"n"]) for _, fields in replica.client().xrange("orders")] == list(range(200))
