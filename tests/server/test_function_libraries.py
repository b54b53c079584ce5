"""Libraries of functions are the store's: two servers as processes of their own, and a program."""

from __future__ import annotations

import signal
from pathlib import Path

import redis
from other_process import OtherProcess
from server_process import Serve

import rlite_pubsub
from rlite_pubsub.storage.commons import function_libraries
from rlite_pubsub.storage.store import Store

COUNTER = """#!lua name=counter
redis.register_function('add', function(keys, args) return redis.call('incrby', keys[1], args[1]) end)
"""


def test_a_library_loaded_at_one_process_is_called_at_all_and_gone_at_all_when_deleted(
    serve: Serve, folder: Path, tmp_path: Path
) -> None:
    first, second = serve(), serve(folder=tmp_path / "second", store_folder=folder)
    with (
        redis.Redis(port=first.port) as one,
        redis.Redis(port=second.port) as other,
        rlite_pubsub.Redis(folder) as program,
    ):
        clients = (one, other, program)
        for round, loader in enumerate(clients * 3):
            loader.function_load(COUNTER.replace("args[1]", f"args[1] * {round + 1}"), replace=True)
            for number, client in enumerate(clients):
                assert client.fcall("add", 1, f"key:{round}", 1) == (number + 1) * (round + 1)
        assert program.execute_command("FUNCTION", "DUMP") == one.execute_command("FUNCTION", "DUMP")
        other.function_delete("counter")
        for client in clients:
            assert client.function_list() == []


def test_a_library_that_was_acknowledged_outlives_its_server_and_works_without_one(serve: Serve, folder: Path) -> None:
    server = serve()
    with redis.Redis(port=server.port) as client:
        for number in range(30):
            client.function_load(COUNTER.replace("counter", f"lib{number}").replace("'add'", f"'add{number}'"))
        client.function_delete("lib7")
    server.end(by=signal.SIGKILL)
    with rlite_pubsub.Redis(folder) as program:
        assert len(program.function_list()) == 29
        assert program.fcall("add29", 1, "key", 5) == 5
        program.flushall()
        assert program.fcall("add0", 1, "key", 5) == 5
    program_of_its_own = "rlite_pubsub.Redis(folder).fcall('add1', 1, 'key', 7)\nsay('done')"
    with OtherProcess(folder, program_of_its_own) as other:
        assert other.hear() == "done"
        assert other.end() == 0
    with rlite_pubsub.Redis(folder) as program:
        assert program.get("key") == b"12"
    with Store.open(folder) as store:
        assert len(store.data.read(function_libraries.codes)) == 29
