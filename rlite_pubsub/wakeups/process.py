"""The identity of a process, beyond its ID: IDs are reused, and are others in each pid namespace (container)."""

from __future__ import annotations

from pathlib import Path

_START_FIELD = 19
"""Field 22 of /proc/<pid>/stat, counted from behind the name, which may itself contain spaces and brackets."""


def start_of(pid: int) -> int:
    """Return when it started, in clock ticks since boot; 0 if there is no such process, or no /proc."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[_START_FIELD])
    except OSError:
        return 0
