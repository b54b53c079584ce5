"""`--stat`: a line of figures of the server every second, as redis-cli prints them, until interrupted."""

from __future__ import annotations

import re
import time

from rlite_pubsub.cli.ending import CommandFailed
from rlite_pubsub.cli.prompt.dialogue import Dialogue
from rlite_pubsub.engine.stats.process import human
from rlite_pubsub.protocol.replies import Error

_HEAD_EVERY = 20
_HEAD = """\
------- data ------ --------------------- load -------------------- - child -
keys       mem      clients blocked requests            connections          """
_KEYS = re.compile(rb"^db\d+:keys=(\d+)", re.MULTILINE)
_CHILDREN = (b"rdb_bgsave_in_progress", "SAVE"), (b"aof_rewrite_in_progress", "AOF")


def roll(dialogue: Dialogue, interval_s: float) -> None:
    """Print until interrupted. Raises CommandFailed, OSError and ConnectionLost."""
    number, requests_before = 0, 0
    while True:
        [info] = dialogue.ask_all([[b"INFO"]])
        if isinstance(info, Error) or not isinstance(info, bytes):
            raise CommandFailed(f"INFO failed: {bytes(info or b'').decode(errors='backslashreplace')}")
        if number % _HEAD_EVERY == 0:
            print(_HEAD)
        number += 1
        requests = _figure(info, b"total_commands_processed")
        print(_line(info, requests, requests - requests_before if requests_before else 0), flush=True)
        requests_before = requests
        time.sleep(interval_s)


def _line(info: bytes, requests: int, more: int) -> str:
    children = " + ".join([what for name, what in _CHILDREN if _figure(info, name)])
    return (
        f"{sum(map(int, _KEYS.findall(info))):<11}{human(_figure(info, b'used_memory')):<8}"
        f"{' ' + str(_figure(info, b'connected_clients')):<8} {_figure(info, b'blocked_clients'):<8}"
        f"{f'{requests} (+{more})':<19} {' ' + str(_figure(info, b'total_connections_received')):<12}{children}"
    )


def _figure(info: bytes, name: bytes) -> int:
    found = re.search(rb"^%b:(\d+)" % name, info, re.MULTILINE)
    return int(found[1]) if found else 0
