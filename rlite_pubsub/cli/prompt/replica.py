"""What a master sends its replicas: every write as it is executed (`--replica`), or all keys, into a file (`--rdb`).

A server answers SYNC with `$BYTES`, as many bytes of RDB, and then the commands that change its keys, without end.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rlite_pubsub.cli.ending import CommandFailed
from rlite_pubsub.cli.prompt.dialogue import ConnectionLost
from rlite_pubsub.cli.prompt.shown import csv
from rlite_pubsub.cli.prompt.wire import Wire
from rlite_pubsub.cli.whole_file import whole_file
from rlite_pubsub.protocol.decoder import told_apart
from rlite_pubsub.protocol.frames import Frames

_STANDARD_OUTPUT = "-"
_LONGEST_LINE = 1 << 16
_MOST_DIGITS = 20


def log_writes(wire: Wire) -> None:
    """Print every command of the master as a line of CSV, until interrupted. Raises CommandFailed, OSError and
    ConnectionLost."""
    total, data = _begin(wire)
    _say(f"SYNC with master, discarding {total} bytes of bulk transfer...")
    data = _pass_on(wire, data, total, lambda piece: None)
    _say("SYNC done. Logging commands from master.")
    frames = Frames()
    while True:
        try:
            heard = list(map(told_apart, frames.feed(data)))
        except (ValueError, TypeError) as failure:
            raise CommandFailed(f"the server does not say what a master says: {failure}") from failure
        for reply in heard:
            sys.stdout.buffer.write(csv(reply) + b"\n")
        sys.stdout.buffer.flush()
        data = _more(wire)


def fetch_rdb(wire: Wire, name: str) -> None:
    """Write all keys of the server into an RDB file, or to standard output (`-`). The file is there when it is whole.
    Raises CommandFailed, OSError and ConnectionLost."""
    total, data = _begin(wire)
    _say(f"SYNC sent to master, writing {total} bytes to '{name}'")
    if name == _STANDARD_OUTPUT:
        _pass_on(wire, data, total, sys.stdout.buffer.write)
        sys.stdout.buffer.flush()
    else:
        with whole_file(Path(name)) as write:
            _pass_on(wire, data, total, write)
    _say("Transfer finished with success.")


def _begin(wire: Wire) -> tuple[int, bytes]:
    """Ask for it: how many bytes of RDB there are, and what of them has come with the answer."""
    wire.send([b"SYNC"])
    data = b""
    while True:
        data = data.lstrip(b"\n")  # the server says that it is still there
        line, end, rest = data.partition(b"\r\n")
        if end:
            break
        if len(line) > _LONGEST_LINE:
            raise CommandFailed("SYNC failed: the server does not answer as Redis does")
        data += _more(wire)
    if line[:1] == b"$" and line[1:].isdigit() and len(line) < _MOST_DIGITS:
        return int(line[1:]), rest
    raise CommandFailed(f"SYNC failed: {line.removeprefix(b'-').decode(errors='backslashreplace')}")


def _pass_on(wire: Wire, data: bytes, total: int, write: Callable[[bytes], Any]) -> bytes:
    """Write so many bytes; what has come beyond them."""
    left = total
    while True:
        write(data[:left])
        if len(data) >= left:
            return data[left:]
        left -= len(data)
        data = _more(wire)


def _more(wire: Wire) -> bytes:
    data = wire.receive(None)
    if data == b"":
        raise ConnectionLost("Server closed the connection")
    return data or b""


def _say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)
