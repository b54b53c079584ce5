"""Values of options as people say them. Each raises ValueError with what would be right."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime

_MS = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 7 * 86_400_000}
_BYTES = {"": 1, "b": 1, "kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30, "tb": 1 << 40}
_AMOUNT = re.compile(r"([0-9]+)\s*([a-z]*)")


def age_ms(word: str) -> int:
    """90s, 10m, 24h, 7d"""
    found = _AMOUNT.fullmatch(word.strip().lower())
    if found is None or found[2] not in _MS:
        raise ValueError(f"{word!r} is no age, which would be like 90s, 10m, 24h or 7d")
    return int(found[1]) * _MS[found[2]]


def moment_ms(word: str) -> int:
    """A time (2026-11-18 or 2026-11-18T10:00, of the local zone if it says none), or an age: so long ago"""
    if _AMOUNT.fullmatch(word.strip().lower()) and not word.strip().isdigit():
        return int(time.time() * 1000) - age_ms(word)
    try:
        return int(datetime.fromisoformat(word).astimezone(UTC).timestamp() * 1000)
    except ValueError:
        raise ValueError(f"{word!r} is no time, which would be like 2026-11-18T10:00, or 7d ago as 7d") from None


def size_bytes(word: str) -> int:
    """1000000, 512mb, 10gb"""
    found = _AMOUNT.fullmatch(word.strip().lower())
    if found is None or found[2] not in _BYTES:
        raise ValueError(f"{word!r} is no size, which would be like 512mb or 10gb")
    return int(found[1]) * _BYTES[found[2]]


def count(word: str) -> int:
    """A number from 1 on"""
    if not word.isdigit() or not int(word):
        raise ValueError(f"{word!r} is no number from 1 on")
    return int(word)


def iso(ms: int) -> str:
    """A time as it is shown."""
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):
        return f"{ms} ms"
