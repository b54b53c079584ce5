"""Moments as people write them: how long ago, or at what time.

    10m 90s 2h 7d 2w 500ms                                     so long ago
    2026-11-18 2026-11-18T10:00 2026-11-18T10:00:00.5+02:00    a time
"""

from __future__ import annotations

import re
from datetime import datetime, tzinfo
from typing import Final

from rlite_pubsub.engine.settings.retention_words import age_ms

_AGE: Final = "[1-9][0-9]{0,18}(?:ms|s|m|min|h|d|w)"
_YEAR: Final = "(?:19[7-9][0-9]|[2-9][0-9]{3})"
_LEAP_YEAR: Final = (
    "(?:19(?:7[26]|8[048]|9[26])|[2-9][0-9](?:0[48]|[2468][048]|[13579][26])|(?:[2468][048]|[3579][26])00)"
)
_DATE: Final = (
    f"(?:{_YEAR}-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
    f"|{_LEAP_YEAR}-02-29)"
)
_TIME: Final = "(?:[01][0-9]|2[0-3]):[0-5][0-9]"
_ZONE: Final = f"(?:Z|[+-]{_TIME})"
MOMENT: Final = f"{_AGE}|{_DATE}(?:[T ]{_TIME}(?::[0-5][0-9](?:[.][0-9]{{1,9}})?)?{_ZONE}?)?"
"""All that is a moment, and nothing else: a regular expression in the words that Python, ECMAScript and RE2 share."""
_IS_MOMENT: Final = re.compile(MOMENT)
_MINUTES: Final = re.compile("[0-9]+m")


def moment_of(word: str, now_ms: int, zone: tzinfo | None = None) -> int | None:
    """Return a moment in ms since 1970, 0 if it is earlier; None if the word is not a moment. A time without a zone is
    in `zone`, by default this machine's."""
    if not _IS_MOMENT.fullmatch(word):
        return None
    if "-" not in word:
        age = age_ms((word + "in" if _MINUTES.fullmatch(word) else word).encode())
        return max(0, now_ms - age) if age is not None else 0
    moment = datetime.fromisoformat(word)
    if moment.tzinfo is None and zone is not None:
        moment = moment.replace(tzinfo=zone)
    try:
        return max(0, int(moment.timestamp() * 1000))
    except (ValueError, OverflowError, OSError):  # a local zone that moves it outside the years 1 to 9999
        return None
