"""Places where a test may kill this process: with RLITE_FAILPOINT=name it dies there as by kill -9."""

from __future__ import annotations

import os
import signal

_ARMED = os.environ.get("RLITE_FAILPOINT")


def failpoint(name: str) -> None:
    if name == _ARMED:
        os.kill(os.getpid(), signal.SIGKILL)
