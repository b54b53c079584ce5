"""`rlite-pubsub import` of what may be anybody's: only what changes keys is executed, and what a thing is, is said."""

from __future__ import annotations

from pathlib import Path

import pytest
from lying_master import LyingMaster, rdb, strings, whole
from peer import request

import rlite_pubsub
from rlite_pubsub.cli.command_line import main
from rlite_pubsub.protocol.rdb import envelope

SELECT = request("SELECT", 0)


def imported(source: Path | str, folder: Path) -> int:
    return main(["import", str(source), str(folder)])


def test_only_what_changes_keys_is_executed_and_the_rest_is_named(
    tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    requests = [
        SELECT,
        request("SET", "a", 1),
        request("ACL", "SETUSER", "evil", "on", "nopass", "+@all", "~*"),
        request("CONFIG", "SET", "requirepass", "pwned"),
        request("CONFIG", "SET", "maxclients", 1),
        request("LINK", "CREATE", "evil", "redis://127.0.0.1:1"),
        request("REPLICAOF", "127.0.0.1", 1),
        request("MIGRATE", "127.0.0.1", 1, "a", 0, 1000),
        request("PUBLISH", "news", "x"),
        request("BLPOP", "nolist", 0),
        request("SUBSCRIBE", "news"),
        request("MULTI"),
        request("INCR", "a"),
        request("ACL", "DELUSER", "default"),
        request("RPUSH", "l", "x"),
        request("EXEC"),
        request("EVAL", "return redis.call('APPEND', KEYS[1], 'y')", 1, "b"),
    ]
    file = tmp_path / "appendonly.aof"
    file.write_bytes(b"".join(requests))
    assert imported(file, folder) == 0
    said = capsys.readouterr().err
    assert "10 requests change no keys, and were not executed" in said
    for name in ("ACL DELUSER (1)", "ACL SETUSER (1)", "BLPOP (1)", "CONFIG SET (2)", "LINK CREATE (1)", "MIGRATE (1)"):
        assert name in said
    with rlite_pubsub.Redis(folder) as client:
        assert client.mget("a", "b") == [b"2", b"y"] and client.lrange("l", 0, -1) == [b"x"]
        assert client.acl_users() == ["default"]
        assert client.config_get("requirepass")["requirepass"] == ""
        assert client.execute_command("LINK", "LIST") == []
        assert client.execute_command("ROLE")[0] == b"master"


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("/etc/hosts", "neither an RDB file nor an append-only file"),
        ("/dev/zero", "neither a file, a pipe nor a folder"),
        ("{}/none", "No such file or directory"),
        ("{}/a store", "it is a store already"),
        ("{}/redis", "import {}/redis/dump.rdb"),
        ("{}/empty", "without Redis's append-only files"),
    ],
)
def test_what_is_not_redis_s_is_named(
    tmp_path: Path, folder: Path, source: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "redis").mkdir()
    (tmp_path / "redis" / "dump.rdb").write_bytes(rdb())
    (tmp_path / "empty").mkdir()
    with rlite_pubsub.Redis(tmp_path / "a store") as client:
        client.set("a", 1)
    assert imported(source.format(tmp_path), folder) == 1
    said = capsys.readouterr().err
    assert why.format(tmp_path) in said and said.count("\n") == 1
    assert not folder.exists()


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"\xfe" + envelope.length(1 << 40) + strings(1), "database 1099511627776"),
        (b"\x00" + envelope.length(1 << 62), "a string of 4611686018427387904"),
        (b"\x00\x01k" + envelope.length((1 << 32) - 1), "a string of 4294967295"),
        (b"\x12\x01k" + envelope.length((1 << 32) - 1) + b"\x01\x01a" * 100, "too early|unknown kind"),
    ],
)
def test_lengths_beyond_all_memory_are_a_sentence(
    tmp_path: Path, folder: Path, body: bytes, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    import re

    file = tmp_path / "dump.rdb"
    file.write_bytes(rdb(body))
    assert imported(file, folder) == 1
    assert re.search(why, capsys.readouterr().err)
    with LyingMaster(whole(rdb(body))) as master:
        assert imported(f"redis://127.0.0.1:{master.port}", folder) == 1
    assert re.search(why, capsys.readouterr().err)
    assert not folder.exists()
