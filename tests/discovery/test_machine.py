"""Servers of this machine: who is listed, and who is not any more."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import redis
from patience import PATIENCE_S, until
from ports import free_port
from server_process import ServerProcess

from rlite_pubsub import discovery
from rlite_pubsub.cli import main
from rlite_pubsub.discovery import machine
from rlite_pubsub.discovery.card import ServerCard, card_of
from rlite_pubsub.discovery.machine import PostedCard
from rlite_pubsub.wakeups import liveness
from rlite_pubsub.wakeups.liveness import Liveness

Start = Callable[..., ServerProcess]
CARD = ServerCard("id", "host", 1, "/store", ("redis://h:1",), "1", 5, ("a", "b"), 2)


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a user who has no other servers."""
    folder = tmp_path / "runtime"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr(machine, "_USERS", folder / "users")
    return folder / machine.NAME


@pytest.fixture
def start(tmp_path: Path, runtime: Path) -> Iterator[Start]:
    servers: list[ServerProcess] = []

    def begin(name: str, *flags: str) -> ServerProcess:
        (tmp_path / name).mkdir()
        servers.append(ServerProcess(tmp_path / name, *flags))
        return servers[-1]

    yield begin
    for server in servers:
        server.clean_up()


def pids() -> list[int]:
    return [card.pid for card in discovery.on_this_machine()]


def test_servers_are_listed_with_stores_and_addresses_as_long_as_they_live(start: Start, runtime: Path) -> None:
    http_port = free_port()
    first, second = start("a", "--http-port", str(http_port), "--requirepass", "sesame-0123456789"), start("b")
    until(lambda: pids() == [first.pid, second.pid], "both servers")
    card = discovery.on_this_machine()[0]
    assert card.store == str(first.store_folder)
    assert card.addresses == (f"redis://127.0.0.1:{first.port}", f"http://127.0.0.1:{http_port}/")
    assert "sesame" not in "".join(path.read_text() for path in runtime.iterdir())
    first.process.kill()
    first.process.wait()
    until(lambda: pids() == [second.pid], "the end of who was killed")
    assert len(list(runtime.iterdir())) == 2
    second.end()
    assert pids() == [] and list(runtime.iterdir()) == []


def test_address_that_changes_is_told_and_who_does_not_want_to_be_found_is_not(start: Start) -> None:
    found, hidden = start("a"), start("b", "--discoverable", "no")
    until(lambda: pids() == [found.pid], "the server")
    port = free_port()
    redis.Redis(port=found.port).config_set("port", port)
    until(lambda: discovery.on_this_machine()[0].addresses == (f"redis://127.0.0.1:{port}",), "the other port")
    assert hidden.pid not in pids()


def test_of_several_workers_one_is_listed(start: Start) -> None:
    start("a", "--workers", "2")
    until(pids, "the server")
    assert len(pids()) == 1


def test_server_that_may_write_nowhere_serves_all_the_same(start: Start, runtime: Path) -> None:
    runtime.mkdir(mode=0o777)
    runtime.chmod(0o777)
    server = start("a")
    assert redis.Redis(port=server.port).ping()
    assert pids() == []
    until(lambda: "is not this user's alone" in server.log(), "the log")


def test_cards_of_a_folder_that_others_may_write_to_are_not_believed(runtime: Path) -> None:
    runtime.mkdir(mode=0o700)
    presence = PostedCard(runtime, CARD)
    assert discovery.on_this_machine() == [CARD]
    runtime.chmod(0o770)
    assert discovery.on_this_machine() == []
    runtime.chmod(0o700)
    presence.leave()
    assert list(runtime.iterdir()) == []


def test_card_whose_lock_somebody_is_looking_at_is_put_elsewhere(
    runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look takes the lock for a moment. A server that began in that moment ended by it."""
    runtime.mkdir(mode=0o700)
    looked_at = Liveness.hold(runtime, 5)
    numbers = iter([5, 5, 6])
    monkeypatch.setattr(liveness.secrets, "randbits", lambda bits: next(numbers))
    posted = PostedCard(runtime, CARD)
    assert discovery.on_this_machine() == [CARD]
    posted.leave()
    looked_at.remove()


def test_card_is_what_was_said_and_what_is_none_is_passed_over(runtime: Path) -> None:
    assert card_of(CARD.to_json()) == CARD
    assert card_of(CARD.to_json().replace("{", '{"later":1,', 1)) == CARD
    for text in ("", "[]", "{}", "7", '{"id":', "[" * 100_000, CARD.to_json().replace('["a","b"]', "5")):
        assert card_of(text) is None
    presence = PostedCard(runtime, CARD)
    next(runtime.glob("*.json")).write_bytes(b"\xff")
    assert discovery.on_this_machine() == []
    presence.leave()


def test_command_prints_a_table_and_json(start: Start) -> None:
    server = start("a")
    until(pids, "the server")

    def said(*words: str) -> str:
        program = [sys.executable, "-m", "rlite_pubsub", "discover", *words]
        return subprocess.run(program, capture_output=True, text=True, timeout=PATIENCE_S, check=True).stdout

    head, row = said().splitlines()
    assert head.split()[0] == "addresses" and f"redis://127.0.0.1:{server.port}" in row and row.endswith("/a/store")
    (card,) = json.loads(said("--json"))
    assert card["pid"] == server.pid and card["topics"] == []


@pytest.mark.parametrize("kind", ["fifo", "zero", "link", "large", "bad types"])
def test_what_is_no_card_is_passed_over_and_nobody_waits_for_it(runtime: Path, tmp_path: Path, kind: str) -> None:
    """root looks into the folders of others, who may have put anything there."""
    good, bad = PostedCard(runtime, replace(CARD, pid=7)), PostedCard(runtime, CARD)
    path = bad._card
    path.unlink()
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "zero":
        path.symlink_to("/dev/zero")
    elif kind == "link":
        (tmp_path / "elsewhere").write_text(CARD.to_json())
        path.symlink_to(tmp_path / "elsewhere")
    elif kind == "large":
        path.write_text(CARD.to_json() + " " * machine._MOST_BYTES)
    else:
        path.write_text(CARD.to_json().replace('"pid":1', '"pid":"x"'))
    assert pids() == [7]
    good.leave()
    bad.leave()


def test_a_card_of_another_user_shows_no_password_and_commands_no_terminal(
    runtime: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evil = "\x1b]0;pwn\x07\nforged"
    card = PostedCard(runtime, replace(CARD, host=evil, store=evil, version=evil, addresses=("redis://u:pw@h:1",)))
    try:
        assert main(["discover"]) == 0
    finally:
        card.leave()
    shown = capsys.readouterr().out
    assert "\x1b" not in shown and "\\x1b]0;pwn" in shown and len(shown.splitlines()) == 2
    assert "redis://u:***@h:1" in shown
