"""What happens to a store is a warning for an hour for whoever looks: INFO, top, doctor, the page, /api/warnings."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import redis
from patience import PATIENCE_S, until
from server_process import Serve, ServerProcess

import rlite_pubsub
from rlite_pubsub.storage import incidents
from rlite_pubsub.storage.incidents import KEPT_MS, MOST
from rlite_pubsub.storage.store import Store


def warnings(server: ServerProcess) -> dict[str, dict[str, str]]:
    info = redis.Redis(port=server.port).info("warnings")
    return {each["code"]: each for each in info.values() if isinstance(each, dict)}


def doctor(target: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "rlite_pubsub", "doctor", "-s", target]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)


def fill(client: redis.Redis) -> None:
    with pytest.raises(redis.ResponseError, match="full"):
        for number in range(10_000):
            client.set(f"key{number}", b"x" * 100_000)


def test_full_store_is_said_once_when_it_begins_and_once_when_it_ends(serve: Serve) -> None:
    server = serve("--store-quota", "4mb")
    client = redis.Redis(port=server.port)
    fill(client)
    until(lambda: "Writes are refused" in server.log(), "the line")
    for _ in range(20):
        with pytest.raises(redis.ResponseError):
            client.set("more", b"x" * 100_000)
    assert set(warnings(server)) == {"store_full"}
    full = doctor(f"localhost:{server.port}")
    assert full.returncode == 1
    assert full.stdout.startswith("verdict    something is wrong: 1 fault\nfault      store_full")
    client.flushall()
    until(lambda: "Writes are accepted again" in server.log(), "the other line")
    assert server.log().count("Writes are") == 2
    assert set(warnings(server)) == {"store_was_full"}
    well = doctor(f"localhost:{server.port}")
    assert well.returncode == 0 and well.stdout.startswith("verdict    it works: 1 warning\nwarning    store_was_full")


def test_subscriber_that_was_cut_off_is_a_warning_with_its_name(serve: Serve) -> None:
    server = serve("--client-output-buffer-limit", "pubsub 1mb 0 0")
    client = redis.Redis(port=server.port)
    with server.connect(receive_buffer_bytes=4096) as slow:
        slow.do("CLIENT", "SETNAME", "lazy")
        slow.do("SUBSCRIBE", "c")
        until(lambda: not client.publish("c", b"x" * 100_000), "its end")
    until(lambda: "cut_off" in warnings(server), "the warning")
    assert warnings(server)["cut_off"]["subject"] == "lazy"


def test_subscriber_that_was_cut_off_for_want_of_room_is_told_so(serve: Serve) -> None:
    server = serve("--store-quota", "2mb")
    client = redis.Redis(port=server.port)
    with server.connect(receive_buffer_bytes=4096) as slow:
        slow.do("SUBSCRIBE", "c")
        until(lambda: not client.publish("c", b"x" * 100_000), "its end")
    until(lambda: "cut_off" in warnings(server), "the warning")
    told = warnings(server)["cut_off"]
    assert "was full" in told["text"] and told["subject"] == "127.0.0.1"


def test_messages_that_a_slow_subscriber_loses_are_a_warning_with_their_number(serve: Serve) -> None:
    server = serve("--client-output-buffer-limit", "pubsub 1mb 0 0", "--slow-subscriber-policy", "drop-oldest")
    client = redis.Redis(port=server.port)
    with server.connect(receive_buffer_bytes=4096) as slow:
        slow.do("CLIENT", "SETNAME", "lazy")
        slow.do("SUBSCRIBE", "c")
        until(lambda: client.publish("c", b"x" * 100_000) and "messages_dropped" in warnings(server), "the warning")
    assert warnings(server)["messages_dropped"]["subject"] == "lazy"


def test_dead_letters_are_a_warning_with_their_group(serve: Serve) -> None:
    server = serve()
    client = redis.Redis(port=server.port)
    client.xgroup_create("jobs", "workers", "0", mkstream=True)
    client.execute_command("TOPIC.GROUP", "jobs", "workers", "TIMEOUT", "1", "MAXDELIVERIES", "1", "DEADLETTER", "dead")
    for number in range(3):
        client.xadd("jobs", {"n": number})
    client.xreadgroup("workers", "w", {"jobs": ">"})
    until(lambda: client.xreadgroup("workers", "w", {"jobs": ">"}) or client.xlen("dead") == 3, "dead letters")
    until(lambda: "dead_letters" in warnings(server), "the warning")
    told = warnings(server)["dead_letters"]
    assert told["subject"] == "jobs/workers" and "3 dead letters" in told["text"]


def test_process_beside_the_server_that_was_killed_is_a_warning(serve: Serve) -> None:
    server = serve("--cold-store", "local")
    children = Path(f"/proc/{server.pid}/task/{server.pid}/children")
    until(lambda: children.read_text().split(), "the process")
    os.kill(int(children.read_text().split()[0]), signal.SIGKILL)
    until(lambda: "companion_ended" in warnings(server), "the warning")
    assert "SIGKILL" in warnings(server)["companion_ended"]["text"]


def test_server_that_was_killed_is_a_warning_of_the_next_one_and_a_restart_a_note(serve: Serve, tmp_path: Path) -> None:
    folder = tmp_path / "store"
    first = serve(store_folder=folder)
    assert not warnings(first)
    first.end()
    second = serve(store_folder=folder)
    assert {code: each["severity"] for code, each in warnings(second).items()} == {"server_started": "note"}
    assert doctor(f"localhost:{second.port}").stdout.startswith("verdict    well")
    second.end(signal.SIGKILL)
    third = serve(store_folder=folder)
    assert {code: each["severity"] for code, each in warnings(third).items()} == {
        "server_died": "warning", "server_started": "note"
    }  # fmt: skip
    assert warnings(third)["server_died"]["subject"] == second.pid
    third.end()
    looked = doctor(str(folder))
    assert looked.returncode == 0 and looked.stdout.startswith("verdict    it works: 1 warning\nwarning    server_died")


def test_program_notes_what_a_server_tells(serve: Serve) -> None:
    server = serve("--client-output-buffer-limit", "pubsub 1mb 0 0")
    with server.connect() as listener:
        listener.do("SUBSCRIBE", "c")
        os.kill(server.pid, signal.SIGSTOP)
        try:
            with rlite_pubsub.Redis(str(server.store_folder)) as program:
                log = Store.open(server.store_folder)
                until(lambda: program.publish("c", b"x" * 100_000) and log.incidents.recent(), "its limit")
                program.set("a", "b")
                log.incidents.write()
                log.close()
        finally:
            os.kill(server.pid, signal.SIGCONT)
        until(lambda: "cut_off" in warnings(server), "the warning")


def test_incidents_are_one_record_for_each_subject_and_few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Store.open(tmp_path / "store") as store:
        for number in range(3 * MOST):
            store.incidents.note("cut_off", f"text {number}", (b"name\xff%d" % (number % (2 * MOST)),))
        store.incidents.note("dead_letters", "first", (b"t", b"g"), 2)
        store.incidents.write()
        store.incidents.note("dead_letters", "second", (b"t", b"g"), 3)
        store.incidents.write()
        found = store.incidents.recent()
        assert len(found) == MOST
        (letters,) = [each for each in found if each.code == "dead_letters"]
        assert (letters.times, letters.text, letters.subject) == (5, "second", (b"t", b"g"))
        later = incidents.time() + KEPT_MS / 1000 + 1
        monkeypatch.setattr(incidents, "time", lambda: later)
        assert store.incidents.recent() == []
        store.incidents.note("cut_off", "new")
        store.incidents.write()
        assert len(store.live.read(incidents._all)) == 1


def test_incidents_that_cannot_be_written_are_told_by_those_who_noted_them(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store") as store:
        store.incidents.note("cut_off", "text", (b"name",))
        assert [each.code for each in store.incidents.recent()] == ["cut_off"]
        store.incidents.write()
        store.incidents.note("cut_off", "text", (b"name",))
        assert [each.times for each in store.incidents.recent()] == [2]
