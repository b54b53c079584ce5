"""Which start of the machine this is."""

from __future__ import annotations

from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def boot_id() -> bytes:
    """Different after each start; empty where the system has none."""
    try:
        return _BOOT_ID.read_bytes().strip()
    except OSError:
        return b""
