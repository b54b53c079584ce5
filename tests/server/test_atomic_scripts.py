"""A script is one step for all processes of the store: nobody writes between what it reads and what it writes."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from patience import PATIENCE_S
from peer import Peer
from server_process import Serve

RUNS = 150
_ADD = """
local before = tonumber(redis.call('GET', KEYS[1]) or 0)
for spin = 1, 20000 do end
redis.call('SET', KEYS[1], before + 1)
return before + 1
"""


@pytest.mark.parametrize("way", ["EVAL", "FCALL"])
def test_what_a_script_has_read_is_so_when_it_writes(serve: Serve, way: str) -> None:
    here = serve()
    there = serve(store_folder=here.store_folder)
    with here.connect() as scripts, there.connect() as other:
        words: tuple[str, ...] = ("EVAL", _ADD, "1", "counter")
        if way == "FCALL":
            code = f"#!lua name=adding\nredis.register_function('add', function(KEYS) {_ADD} end)"
            assert scripts.do("FUNCTION", "LOAD", code) == b"adding"
            words = ("FCALL", "add", "1", "counter")
        stop = threading.Event()
        with ThreadPoolExecutor(1) as threads:
            added = threads.submit(_add_until, stop, other)
            answered = [scripts.do(*words) for _ in range(RUNS)]
            stop.set()
            assert len(set(answered)) == RUNS
            others = added.result(PATIENCE_S)  # its last one may still be under way
            assert int(scripts.do("GET", "counter")) == RUNS + others


def _add_until(stop: threading.Event, peer: Peer) -> int:
    """How many additions it has made."""
    count = 0
    while not stop.is_set():
        assert isinstance(peer.do("INCR", "counter"), int)
        count += 1
    return count
