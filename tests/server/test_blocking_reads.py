"""Reads that wait, at sockets: at one server, and at servers that share a store and are killed at the worst moment."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from patience import PATIENCE_S, until
from peer import Peer, request
from server_process import Serve, ServerProcess


def add(peer: Peer, key: str, entry_id: str = "*") -> bytes:
    reply = peer.do("XADD", key, entry_id, "f", "v")
    assert isinstance(reply, bytes), reply
    return reply


def ids(reply: Any) -> list[bytes]:
    """Of the entries of the one key that was served."""
    assert isinstance(reply, list), reply
    return [entry[0] for entry in reply[0][1]]


def until_blocked(server: ServerProcess, count: int = 1) -> None:
    with server.connect() as admin:
        until(lambda: b"blocked_clients:%d\r\n" % count in admin.do("INFO", "clients"), f"{count} blocked clients")


def wait_for_new(reader: Peer, key: str, start: str = "$") -> None:
    reader.send(request("XREAD", "BLOCK", 0, "STREAMS", key, start))


# -- at one server


def test_a_thousand_readers_are_served_by_one_entry(server: ServerProcess) -> None:
    readers = [server.connect() for _ in range(1000)]
    for reader in readers:
        wait_for_new(reader, "k")
    until_blocked(server, 1000)
    with server.connect() as writer:
        new = add(writer, "k")
    for reader in readers:
        assert ids(reader.reply()) == [new]
        reader.close()


def test_of_a_thousand_consumers_those_who_came_first_are_served_first(server: ServerProcess) -> None:
    writer = server.connect()
    writer.do("XGROUP", "CREATE", "k", "g", "$", "MKSTREAM")
    consumers = [server.connect() for _ in range(1000)]
    for number, consumer in enumerate(consumers):
        consumer.send(request("XREADGROUP", "GROUP", "g", number, "BLOCK", 0, "STREAMS", "k", ">"))
        if number in (0, 1, 999):
            until_blocked(server, number + 1)
    first, second = add(writer, "k"), add(writer, "k")
    assert ids(consumers[0].reply()) == [first]
    assert ids(consumers[1].reply()) == [second]
    until_blocked(server, 998)


def test_requests_behind_a_wait_go_on_in_order_once_it_has_ended(server: ServerProcess) -> None:
    reader, writer = server.connect(), server.connect()
    waits = request("XREAD", "BLOCK", 0, "STREAMS", "k", "$")
    reader.send(waits + request("ECHO", "a") + waits + request("ECHO", "b") * 2)
    until_blocked(server)
    first = add(writer, "k")
    assert [ids(reader.reply()), reader.reply()] == [[first], b"a"]
    second = add(writer, "k")
    assert [ids(reader.reply()), reader.reply(), reader.reply()] == [[second], b"b", b"b"]


def test_a_client_that_goes_while_it_waits_takes_nothing_with_it(server: ServerProcess) -> None:
    writer, gone, stays = server.connect(), server.connect(), server.connect()
    writer.do("XGROUP", "CREATE", "k", "g", "$", "MKSTREAM")
    gone.send(request("XREADGROUP", "GROUP", "g", "gone", "BLOCK", 0, "STREAMS", "k", ">"))
    until_blocked(server, 1)
    stays.send(request("XREADGROUP", "GROUP", "g", "stays", "BLOCK", 0, "STREAMS", "k", ">"))
    until_blocked(server, 2)
    gone.reset()
    until_blocked(server, 1)
    new = add(writer, "k")
    assert ids(stays.reply()) == [new]
    assert writer.do("XPENDING", "k", "g")[3] == [[b"stays", b"1"]]


def test_a_wait_ends_by_itself_with_null(server: ServerProcess) -> None:
    for protocol in (2, 3):
        with server.connect(protocol=protocol) as reader:
            assert reader.do("XREAD", "BLOCK", 10, "STREAMS", "k", "$") is None


def test_a_topic_whose_time_is_over_frees_its_consumers_though_nobody_looks_at_it(server: ServerProcess) -> None:
    writer, consumer = server.connect(), server.connect()
    writer.do("XGROUP", "CREATE", "k", "g", "$", "MKSTREAM")
    consumer.send(request("XREADGROUP", "GROUP", "g", "c", "BLOCK", 0, "STREAMS", "k", ">"))
    until_blocked(server)
    writer.do("PEXPIRE", "k", 20)
    assert str(consumer.reply()).startswith("UNBLOCKED")


# -- at servers that share a store


@pytest.mark.parametrize("protocol", [2, 3])
def test_a_reader_is_served_by_what_another_server_was_sent(serve: Serve, protocol: int) -> None:
    here, there = serve(), serve()
    reader, writer = here.connect(protocol=protocol), there.connect()
    for _ in range(20):
        wait_for_new(reader, "k")
        until_blocked(here)
        new = add(writer, "k")
        reply = reader.reply()
        assert ids(reply if protocol == 2 else [[b"k", reply[b"k"]]]) == [new]


def test_workers_at_two_servers_get_each_entry_once(serve: Serve) -> None:
    servers = [serve(), serve()]
    writer = servers[0].connect()
    writer.do("XGROUP", "CREATE", "k", "g", "$", "MKSTREAM")
    added: list[bytes] = []
    got: list[bytes] = []

    def work(number: int) -> None:
        with servers[number % 2].connect() as worker:
            words = ("XREADGROUP", "GROUP", "g", f"w{number}", "COUNT", 1, "BLOCK", 0, "STREAMS", "k", ">")
            while isinstance(reply := worker.do(*words), list):
                got.extend(ids(reply))

    with ThreadPoolExecutor(6) as pool:
        workers = [pool.submit(work, number) for number in range(6)]
        for server in servers:
            until_blocked(server, 3)
        while len(added) < 500:
            added.append(add(writer, "k"))
        until(lambda: len(got) == len(added), "all entries")
        writer.do("DEL", "k")  # which frees them, with an error
        for worker in workers:
            worker.result(PATIENCE_S)
    assert sorted(got) == sorted(added)


def test_a_consumer_is_told_when_another_server_deletes_its_topic_or_group(serve: Serve) -> None:
    here, there = serve(), serve()
    consumer, writer = here.connect(), there.connect()
    for end in (("DEL", "k"), ("FLUSHDB",), ("SET", "k", "v"), ("RENAME", "k", "j"), ("XGROUP", "DESTROY", "k", "g")):
        writer.do("DEL", "k")
        writer.do("XGROUP", "CREATE", "k", "g", "$", "MKSTREAM")
        consumer.send(request("XREADGROUP", "GROUP", "g", "c", "BLOCK", 0, "STREAMS", "k", ">"))
        until_blocked(here)
        writer.do(*end)
        assert str(consumer.reply()).startswith("NOGROUP" if end[0] == "XGROUP" else "UNBLOCKED")


def test_an_entry_of_a_writer_killed_between_its_commit_and_the_bell_is_found(serve: Serve) -> None:
    here = serve()
    reader = here.connect()
    wait_for_new(reader, "k", "0")
    until_blocked(here)
    there = serve(environment={"RLITE_FAILPOINT": "change-committed"})
    with pytest.raises(ConnectionResetError), there.connect() as writer:
        writer.do("XADD", "k", "1-1", "f", "v")
    assert ids(reader.reply()) == [b"1-1"]


def test_a_waiting_server_that_is_killed_is_cleaned_up_after_and_the_others_go_on(serve: Serve) -> None:
    here, there = serve(), serve()
    dead, reader, writer = there.connect(), here.connect(), here.connect()
    wait_for_new(dead, "k")
    until_blocked(there)
    there.process.kill()
    there.process.wait()
    wait_for_new(reader, "k")
    until_blocked(here)
    new = add(writer, "k")
    assert ids(reader.reply()) == [new]
    until(lambda: "Cleaned up after subscriber" in here.log(), "the reaper")
    assert len(list((here.store_folder / "subscribers").glob("*.lock"))) == 1


def test_a_server_killed_as_soon_as_others_know_that_it_waits_leaves_nothing(serve: Serve) -> None:
    here = serve()
    there = serve(environment={"RLITE_FAILPOINT": "wait-recorded"})
    with pytest.raises(ConnectionResetError), there.connect() as reader:
        reader.do("XREAD", "BLOCK", 0, "STREAMS", "k", "$")
    with here.connect() as writer:

        def is_cleaned_up() -> bool:
            """Its bell may still be open when the first entry rings it: a process does not end in one moment."""
            add(writer, "k")
            return "Cleaned up after subscriber" in here.log()

        until(is_cleaned_up, "the reaper")
    assert len(list((here.store_folder / "subscribers").glob("*.lock"))) == 1
