"""Collections of processes that share a store: whoever waits is served by another's push, and fields expire for all."""

from __future__ import annotations

import pytest
from patience import until
from peer import request
from server_process import Serve, ServerProcess

import rlite_pubsub


def until_blocked(server: ServerProcess) -> None:
    with server.connect() as admin:
        until(lambda: b"blocked_clients:1\r\n" in admin.do("INFO", "clients"), "a blocked client")


@pytest.mark.parametrize("size", [1, 300])
def test_a_list_is_waited_for_in_one_process_and_pushed_in_another(serve: Serve, size: int) -> None:
    here, there = serve(), serve()
    with here.connect() as worker, there.connect() as pusher:
        pusher.do("RPUSH", "done", *range(size))
        for number in range(10):
            worker.send(request("BLMOVE", "work", "done", "LEFT", "RIGHT", 0))
            until_blocked(here)
            pusher.do("LPUSH", "work", f"task {number}")
            assert worker.reply() == b"task %d" % number
            assert pusher.do("LINDEX", "done", -1) == b"task %d" % number
            assert pusher.do("EXISTS", "work") == 0
        assert pusher.do("LLEN", "done") == size + 10


def test_several_elements_are_taken_in_another_process(serve: Serve) -> None:
    here, there = serve(), serve()
    with here.connect() as worker, there.connect() as pusher:
        worker.send(request("BLMPOP", 0, 2, "none", "work", "RIGHT", "COUNT", 2))
        until_blocked(here)
        pusher.do("RPUSH", "work", 1, 2, 3)
        assert worker.reply() == [b"work", [b"3", b"2"]]
        assert pusher.do("LRANGE", "work", 0, -1) == [b"1"]


def test_fields_expire_for_a_program_that_has_not_set_them(serve: Serve) -> None:
    server = serve()
    with server.connect() as peer, rlite_pubsub.Redis(server.store_folder) as program:
        peer.do("HSET", "h", "a", 1, "b", 2)
        assert program.hgetall("h") == {b"a": b"1", b"b": b"2"}
        peer.do("HPEXPIRE", "h", 30, "FIELDS", 1, "a")
        until(lambda: program.hgetall("h") == {b"b": b"2"}, "the field's end")
        program.execute_command("HPEXPIRE", "h", 30, "FIELDS", 1, "b")
        until(lambda: peer.do("EXISTS", "h") == 0, "the hash's end, in the background")
