"""Whether the server in this container serves: exit status 0 if it answers a PING, 1 if it does not.

A server that wants a password first is one that serves. RLITE_HEALTH_PORT is its port, by default 6379.
"""

from __future__ import annotations

import os
import socket
import sys

SECONDS = 4.0
ANSWERS = (b"+PONG", b"-NOAUTH", b"-LOADING", b"-BUSY")


def is_healthy(port: int) -> bool:
    """Whether something that speaks Redis's protocol answers on this port of the loopback."""
    try:
        with socket.create_connection(("127.0.0.1", port), SECONDS) as line:
            line.sendall(b"*1\r\n$4\r\nPING\r\n")
            return line.recv(64).startswith(ANSWERS)
    except OSError:
        return False


if __name__ == "__main__":
    sys.exit(not is_healthy(int(os.environ.get("RLITE_HEALTH_PORT", "6379"))))
