"""Passwords among the arguments of this process: left out of what is printed, and blotted out of what `ps` shows to
everybody on the machine.

The blot comes late: others may have seen them in the first milliseconds. A file or the environment is better, and
the docs say so.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path

_FIRST_FIELD_AFTER_NAME = 2
_IN_QUERY = re.compile(r"([?&](?:access_key|secret_key|session_token)=)([^&#]*)")
"""Of a bucket's URL."""
_ARG_START, _ARG_END = 47, 48
"""Of /proc/self/stat, counted from 0 (proc(5) counts from 1)."""


def without_password(url: str) -> str:
    """Return a URL that may be shown."""
    return _IN_QUERY.sub(r"\1***", re.sub(r"(?<=://)([^/@]*):[^/]*@", r"\1:***@", url))


def passwords_in(words: list[str]) -> list[bytes]:
    """Return the passwords in the URLs among a command's arguments."""
    found = (re.search(r"://[^/@]*:([^/]*)@", word) for word in words)
    in_queries = (match[2] for word in words for match in _IN_QUERY.finditer(word))
    return [os.fsencode(secret) for secret in (*(match[1] for match in found if match is not None), *in_queries)]


def hide(secrets: Iterable[bytes]) -> None:
    """Put stars in their places. Where the system has no such place, nothing is done."""
    wanted = [secret for secret in secrets if secret]
    if not wanted or sys.platform != "linux":
        return
    try:
        start, end = _arguments()
    except (OSError, ValueError, IndexError):
        return
    shown = ctypes.string_at(start, end - start)
    hidden = b"\0".join(_blotted(word, wanted) for word in shown.split(b"\0"))
    assert len(hidden) == len(shown)
    if hidden != shown:
        ctypes.memmove(start, hidden, len(hidden))


def _blotted(word: bytes, secrets: list[bytes]) -> bytes:
    for secret in secrets:
        if word == secret or (b" " in word or b":" in word or b"=" in word) and secret in word:
            word = word.replace(secret, b"*" * len(secret))
    return word


def _arguments() -> tuple[int, int]:
    """Return where the arguments stand in this process's memory."""
    fields = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
    start, end = (int(fields[field - _FIRST_FIELD_AFTER_NAME]) for field in (_ARG_START, _ARG_END))
    if not 0 < start < end:
        raise ValueError("not told")
    return start, end
