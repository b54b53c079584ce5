"""Ports of loopback for servers that tests start.

They lie below those that the kernel gives to clients (32768 and up), each worker of pytest-xdist has its own, and none
comes twice until all have been given: a port that was asked for by binding to 0 can be another server's, or a client's,
by the time that a server binds it.
"""

from __future__ import annotations

import os
import socket
from itertools import cycle

FIRST, EACH = 12000, 1200
"""The bus of a cluster's node is 10,000 above its port, and stays below those of clients, too."""
_worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 8
_own = range(FIRST + _worker * EACH, FIRST + (_worker + 1) * EACH)
_start = os.getpid() * 37 % EACH
_ports = cycle([*_own[_start:], *_own[:_start]])


def free_port() -> int:
    """Return a port on which nobody listens."""
    for port in _ports:
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
    raise AssertionError("cycle ends")
