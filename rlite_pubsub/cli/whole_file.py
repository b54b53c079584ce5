"""A file that is there as a whole, or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_BUFFERED = 1 << 20


@contextmanager
def whole_file(path: Path) -> Iterator[Callable[[bytes], Any]]:
    """Write a file that gets its name once all of it is on the disk. Raises OSError."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with open(temporary, "xb", _BUFFERED) as file:
            yield file.write
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
