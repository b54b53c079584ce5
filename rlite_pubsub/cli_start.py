"""Where a topic is followed from, as it is said on a command line.

    START                       all there is
    END                         what comes
    1700000000000-3             behind this entry
    1700000000000               since so many ms after 1970
    2026-11-18, 2026-11-18T10:00, 2026-11-18T10:00:00Z      since a time; without a zone it is this machine's
    10m 90s 2h 7d 500ms         since so long ago
"""

from __future__ import annotations

import argparse
import re
import time
from datetime import datetime

from rlite_pubsub.commands.retention_words import age_ms
from rlite_pubsub.topics.entry import BEGINNING

END = "$"
_ID = re.compile(r"[0-9]+-[0-9]+|[0-9]+")
_MINUTES = re.compile(r"[0-9]+m")


def start_of(word: str) -> str:
    """In the words of `topics.subscribe`. Raises ArgumentTypeError."""
    named = {"START": BEGINNING, "END": END}.get(word.upper())
    if named is not None:
        return named
    if _ID.fullmatch(word):
        return word
    age = age_ms((word + "in" if _MINUTES.fullmatch(word) else word).encode())
    if age is not None:
        return str(max(0, int(time.time() * 1000) - age))
    try:
        return str(max(0, int(datetime.fromisoformat(word).timestamp() * 1000)))
    except (ValueError, OverflowError, OSError) as failure:
        raise argparse.ArgumentTypeError(
            f"{word!r} is no START, END, id, time (2026-11-18T10:00) or age (10m)"
        ) from failure
