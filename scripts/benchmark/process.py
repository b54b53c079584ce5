"""What /proc says of a process and of all that it started: CPU time, waiting for a CPU, resident memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

GONE = (FileNotFoundError, ProcessLookupError)
"""A process or thread has ended: before its file was opened, or between that and reading it."""

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def family(pid: int) -> Iterator[int]:
    """The process and its living descendants: work handed to a child process is the server's work, too."""
    yield pid
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
    except GONE:
        return
    for task in tasks:
        try:
            children = (task / "children").read_text().split()
        except GONE:  # the thread has ended, or this kernel does not list children
            continue
        for child in children:
            yield from family(int(child))


def cpu_seconds(pid: int) -> float:
    """User and system time so far."""
    return sum(map(own_cpu_seconds, family(pid)))


def own_cpu_seconds(pid: int) -> float:
    """The same of the process alone; 0 where it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except GONE:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND


def waited_seconds(pid: int) -> float:
    """Time so far in which its threads could have run and something else had the core."""
    waited_ns = 0
    for member in family(pid):
        for file in Path(f"/proc/{member}/task").glob("*/schedstat"):
            try:
                waited_ns += int(file.read_text().split()[1])
            except GONE:
                continue
    return waited_ns / 1e9


def resident_bytes(pid: int) -> int:
    """VmRSS now."""
    kilobytes = 0
    for member in family(pid):
        try:
            lines = Path(f"/proc/{member}/status").read_text().splitlines()
        except GONE:
            continue
        kilobytes += sum(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))
    return kilobytes * 1024
