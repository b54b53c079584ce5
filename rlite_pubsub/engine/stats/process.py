"""The operating system's figures for this process and for the machine's memory."""

from __future__ import annotations

import os
import resource
import sys
from functools import cache

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_UNITS = (("P", 1 << 50), ("T", 1 << 40), ("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10))


def resident_bytes() -> int:
    """Return how much memory of this process is in RAM."""
    try:
        with open("/proc/self/statm", "rb") as statm:
            return int(statm.read().split()[1]) * _PAGE_BYTES
    except OSError:  # no /proc: the peak is the best figure available
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def private_bytes() -> int:
    """Return how much of that memory is private: without the store's mapped pages, which the kernel takes back at
    will."""
    try:
        with open("/proc/self/statm", "rb") as statm:
            resident, shared = statm.read().split()[1:3]
            return (int(resident) - int(shared)) * _PAGE_BYTES
    except OSError:
        return resident_bytes()


@cache
def system_bytes() -> int:
    """Return the RAM of this machine."""
    return os.sysconf("SC_PHYS_PAGES") * _PAGE_BYTES


def human(size: int) -> str:
    """Return a count of bytes for people: 512B, 1.50K, 3.00G."""
    for unit, unit_bytes in _UNITS:
        if size >= unit_bytes:
            return f"{size / unit_bytes:.2f}{unit}"
    return f"{size}B"
