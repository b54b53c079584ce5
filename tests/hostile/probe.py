"""A client in a process of its own that does nothing but PING, and measures how long the server's loop was held.

What counts is the processor time that the loop's thread took between a PING and its answer: it is the same on a machine
whose processors are busy with other things. The time on the wall is noted beside it.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from ctypes import c_double, c_long
from pathlib import Path
from typing import Any

from peer import Peer

PAUSE_S = 0.002


def processor_ms(pid: int) -> float:
    """What the main thread of a process has had of the processors so far."""
    return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0]) / 1e6


class Probe:
    """Pings from now on, until it is ended."""

    def __init__(self, port: int, pid: int) -> None:
        context = multiprocessing.get_context("fork")
        self._worst_cpu: Any = context.Value(c_double, 0.0)
        self._worst_wall: Any = context.Value(c_double, 0.0)
        self._pings: Any = context.Value(c_long, 0)
        self._process = context.Process(target=self._ping, args=(port, pid), daemon=True)
        self._process.start()

    def _ping(self, port: int, pid: int) -> None:
        parent = os.getppid()
        try:
            with Peer(port) as peer:
                peer.do("CLIENT", "SETNAME", "probe")
                while os.getppid() == parent:
                    cpu, wall = processor_ms(pid), time.monotonic()
                    peer.do("PING")
                    self._worst_cpu.value = max(self._worst_cpu.value, processor_ms(pid) - cpu)
                    self._worst_wall.value = max(self._worst_wall.value, (time.monotonic() - wall) * 1000)
                    self._pings.value += 1
                    time.sleep(PAUSE_S)
        except (OSError, ValueError, IndexError):
            return  # the server is gone: whoever attacks it finds out by himself

    @property
    def pings(self) -> int:
        return int(self._pings.value)

    @property
    def is_alive(self) -> bool:
        return self._process.is_alive()

    def take(self) -> tuple[float, float]:
        """The longest answer since the last call: ms of the loop's processor time, ms on the wall. A PING
        that is on its way is waited for."""
        seen = self.pings
        while self.pings < seen + 2 and self.is_alive:
            time.sleep(PAUSE_S)
        worst = self._worst_cpu.value, self._worst_wall.value
        self._worst_cpu.value = self._worst_wall.value = 0.0
        return worst

    def end(self) -> None:
        self._process.terminate()
        self._process.join()
