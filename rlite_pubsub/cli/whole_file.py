"""A file that is there as a whole, or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rlite_pubsub.cli.ending import CommandFailed

_BUFFERED = 1 << 20


@contextmanager
def whole_file(path: Path) -> Iterator[Callable[[bytes], Any]]:
    """Write a file that gets its name once all of it is on the disk. Raises OSError and CommandFailed."""
    if path.is_dir():
        raise CommandFailed(f"{path} is a folder: name the file to write")
    if not path.parent.is_dir():
        raise CommandFailed(f"{path.parent} is no folder: make it first, or name another file")
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with open(temporary, "xb", _BUFFERED) as file:
            yield file.write
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
