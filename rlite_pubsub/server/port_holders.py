"""Which process listens on a port, as far as /proc shows: other users' descriptors it shows to root alone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_LISTENS: Final = "0A"
"""A socket's state in /proc/net/tcp."""
_SHOWN: Final = 80
"""Characters of a command."""


def in_use(port: int, directive: str, reason: str) -> str:
    """Return why a port can't be had, who has it, and what else can be done."""
    held = " and ".join(holders(port))
    who = f", by {held}" if held else ""
    return f"{reason}{who}; choose another port with --{directive}, or end what listens there"


def holders(port: int) -> list[str]:
    """Return the processes that listen on a TCP port of this machine; none where that can't be seen. Never fails."""
    sockets = {f"socket:[{inode}]" for inode in _inodes(port)}
    if not sockets:
        return []
    return [f"process {pid} ({_command(pid)})" for pid in _pids() if _has(pid, sockets)]


def _inodes(port: int) -> Iterator[str]:
    for table in ("tcp", "tcp6"):
        try:
            lines = Path("/proc/net", table).read_text().splitlines()[1:]
        except OSError:
            continue
        for words in map(str.split, lines):
            if words[3] == _LISTENS and int(words[1].rpartition(":")[2], 16) == port:
                yield words[9]


def _pids() -> list[int]:
    try:
        return sorted(int(name) for name in os.listdir("/proc") if name.isdecimal())
    except OSError:
        return []


def _has(pid: int, sockets: set[str]) -> bool:
    folder = f"/proc/{pid}/fd"
    try:
        descriptors = os.listdir(folder)
    except OSError:
        return False
    for descriptor in descriptors:
        try:
            if os.readlink(f"{folder}/{descriptor}") in sockets:
                return True
        except OSError:  # it was closed meanwhile
            continue
    return False


def _command(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        words = []
    said = " ".join(word.decode(errors="replace") for word in words if word)
    said = "".join(character if character.isprintable() else "?" for character in said)
    return said[:_SHOWN] or "?"
