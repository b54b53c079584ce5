"""Redis's append-only files: a folder with a manifest, or one file of before Redis 7.

    appendonly.aof.manifest     a line a file: file NAME seq NUMBER type b|i|h
        b   the base: an RDB file, or requests
        i   what came behind it, in the order of the lines
        h   history, which nobody needs any more

A file of requests may begin with an RDB file. The last one may end within a request: Redis was stopped while it wrote,
and loads it without that (aof-load-truncated). A transaction that is not whole is none.
"""

from __future__ import annotations

import shlex
from io import BufferedReader
from pathlib import Path
from typing import NamedTuple

MANIFEST = ".manifest"


class NoManifest(Exception):
    """The folder is no append-only file's, or its manifest says what cannot be."""


class AppendedPart(NamedTuple):
    """One file, in the order in which they are loaded."""

    path: Path
    is_last: bool


def parts_of(path: Path) -> list[AppendedPart]:
    """The files that are to be loaded. Raises NoManifest, OSError."""
    if not path.is_dir():
        return [AppendedPart(path, True)]
    manifests = sorted(path.glob(f"*{MANIFEST}"))
    if not manifests:
        raise NoManifest(_what_is_there(path))
    if len(manifests) > 1:
        raise NoManifest(f"there are {len(manifests)} manifests (*{MANIFEST}), not one")
    base: list[Path] = []
    following: list[tuple[int, Path]] = []
    for line in manifests[0].read_text("utf-8", "surrogateescape").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        words = shlex.split(line)
        known = dict(zip(words[::2], words[1::2], strict=False))
        name, number, kind = known.get("file", ""), known.get("seq", ""), known.get("type", "")
        if len(words) % 2 or "/" in name or not name or not number.isdigit() or kind not in ("b", "i", "h"):
            raise NoManifest(f"{manifests[0]}: can't understand {line[:80]!r}")
        if kind == "b":
            base.append(path / name)
        elif kind == "i":
            following.append((int(number), path / name))
    if len(base) > 1 or [number for number, _ in following] != sorted({number for number, _ in following}):
        raise NoManifest(f"{manifests[0]}: it has two bases, or files out of order")
    files = base + [name for _, name in following]
    if not files:
        raise NoManifest(f"{manifests[0]}: it names no file")
    return [AppendedPart(name, name == files[-1]) for name in files]


def _what_is_there(folder: Path) -> str:
    """Why nothing can be imported from a folder without a manifest, and what to do."""
    if (folder / "live.mdb").exists():
        return "it is a store already: serve it, or copy its keys by way of `rlite-pubsub export`"
    if (folder / "appendonlydir").is_dir():
        return f"it is Redis's folder: import {folder / 'appendonlydir'}"
    if (folder / "dump.rdb").exists():
        return f"it is Redis's folder: import {folder / 'dump.rdb'}"
    return f"it is a folder without Redis's append-only files: there is no *{MANIFEST} in it"


def begins_with_request(file: BufferedReader) -> bool:
    """Return whether a request, a remark or the end comes next, without moving on in the file."""
    return file.peek(1)[:1] in (b"*", b"#", b"\r", b"\n", b"")


def begins_with_rdb(file: BufferedReader) -> bool:
    """Return whether an RDB file comes next, without moving on in the file."""
    return file.peek(6).startswith((b"REDIS", b"VALKEY"))
