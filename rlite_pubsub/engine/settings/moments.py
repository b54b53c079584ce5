"""Moments as people write them: how long ago, or at what time.

    10m 90s 2h 7d 500ms                                     so long ago
    2026-11-18, 2026-11-18T10:00, 2026-11-18T10:00:00Z      a time
"""

from __future__ import annotations

import re
from datetime import datetime, tzinfo

from rlite_pubsub.engine.settings.retention_words import age_ms

_MINUTES = re.compile(r"[0-9]+m")


def moment_of(word: str, now_ms: int, zone: tzinfo | None = None) -> int | None:
    """In ms after 1970; None if it is neither. A time without a zone is in this one, by default this machine's."""
    age = age_ms((word + "in" if _MINUTES.fullmatch(word) else word).encode())
    if age is not None:
        return max(0, now_ms - age)
    try:
        moment = datetime.fromisoformat(word)
        if moment.tzinfo is None and zone is not None:
            moment = moment.replace(tzinfo=zone)
        return max(0, int(moment.timestamp() * 1000))
    except (ValueError, OverflowError, OSError):
        return None
