"""Passwords among the arguments of this process: left out of what is printed, and blotted out of what `ps` shows to
everybody on the machine.

The blot comes first, and yet late: others may have seen them in the milliseconds before. A file or the environment is
better, and the docs say so.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterable
from pathlib import Path

from rlite_pubsub.engine.settings.secret_urls import passwords_in, without_password

__all__ = ["SECRET_FLAGS", "hide", "in_flags", "in_urls", "without_password"]

SECRET_FLAGS = ("--requirepass", "--masteruser", "--masterauth", "--tls-key-file-pass", "--tls-client-key-file-pass")
_FIRST_FIELD_AFTER_NAME = 2
_ARG_START, _ARG_END = 47, 48
"""Of /proc/self/stat, counted from 0 (proc(5) counts from 1)."""


def in_urls(words: Iterable[str]) -> list[bytes]:
    """Return the passwords in the URLs among a command's arguments."""
    return [os.fsencode(secret) for secret in passwords_in(words)]


def in_flags(words: list[str]) -> list[bytes]:
    """Return the passwords among the flags of `serve`, in URLs and after flags that take one; no directive's
    declaration is imported for that, because meanwhile everybody could read them."""
    found = in_urls(words)
    for word, following in zip(words, [*words, ""][1:], strict=True):
        flag, blank, value = word.partition(" ")
        if flag.lower() in SECRET_FLAGS:
            found.append(os.fsencode((value if blank else following).strip().strip("\"'")))
        elif word.startswith((">", "<")):
            found.append(os.fsencode(word))  # of `--user NAME on >PASSWORD`
    return found


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
