"""How people write ages, sizes, moments, and where in a topic to begin. One reader of each, for all doors: commands,
HTTP, the libraries, the command line, directives and jobs (docs/reference/words.md has the table).

    age      500ms 90s 10m 15min 24h 7d 2w                              m and min are minutes
    size     100b 1k 1kb 512mb 10gb 1tb                                 Redis's units: k is 1000, kb is 1024
    moment   an age (so long ago) | 1700000000000 (ms since 1970)
             2026-11-18 2026-11-18T10:00 2026-11-18T10:00:00.5+02:00
    start    a moment | 1700000000000-3 (behind this entry) | beginning | end | last
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final, TypeAlias

LARGEST: Final = 2**62
_AGES_MS: Final = {
    "ms": 1,
    "s": 1000,
    "m": 60_000,
    "min": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
    "w": 604_800_000,
}
_SIZES: Final = {
    **{"b": 1, "k": 1000, "kb": 1 << 10, "m": 10**6, "mb": 1 << 20},
    **{"g": 10**9, "gb": 1 << 30, "t": 10**12, "tb": 1 << 40},
}
_AMOUNT: Final = re.compile("([1-9][0-9]{0,18})([a-z]{1,3})")

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
"""All that is a moment, but for a number: a regular expression in the words that Python, ECMAScript and RE2 share."""
_IS_MOMENT: Final = re.compile(MOMENT)

BEGINNING: Final = "-"
END: Final = "$"
LAST: Final = "+"
"""Starts, as TOPIC.SUBSCRIBE has them: all there is; what comes; the last entry there is, and what comes."""
_NAMES: Final = {
    **{"-": BEGINNING, "beginning": BEGINNING, "start": BEGINNING, "earliest": BEGINNING},
    **{"$": END, "end": END, "latest": END},
    **{"+": LAST, "last": LAST},
}
_MOST_DIGITS: Final = 20
PLACE: Final = f"[0-9]{{1,{_MOST_DIGITS}}}(?:-[0-9]{{1,{_MOST_DIGITS}}})?"
"""A number of ms since 1970, or an id; in the same words as MOMENT."""
_IS_PLACE: Final = re.compile(PLACE)
START_NAMES: Final = "beginning|start|earliest|end|latest"
STARTS: Final = (
    "an age (24h), a time (2026-11-18T10:00), ms since 1970, an id (1700000000000-3), `beginning` or `end`"
)

Since: TypeAlias = "datetime | timedelta | str | bytes | int | None"
"""Where to begin: at a time or so long ago, behind an id, at ms since 1970, at a word such as `24h` or `beginning`, or
(None) with what comes."""


def age_ms(word: str) -> int | None:
    """Return the milliseconds of a word like `7d`; None if it is not an age."""
    return _amount(word, _AGES_MS)


def size_bytes(word: str) -> int | None:
    """Return the bytes of a word like `512mb`; None if it is not a size."""
    return _amount(word, _SIZES)


def moment_of(word: str, now_ms: int, zone: tzinfo | None = UTC) -> int | None:
    """Return a moment in ms since 1970, 0 if it is earlier; None if the word is not one, or a bare number. A time
    without a zone is in `zone`; None is this machine's."""
    if not _IS_MOMENT.fullmatch(word):
        return None
    if "-" not in word:
        age = age_ms(word)
        return max(0, now_ms - age) if age is not None else 0
    moment = datetime.fromisoformat(word)
    if moment.tzinfo is None and zone is not None:
        moment = moment.replace(tzinfo=zone)
    try:
        return max(0, int(moment.timestamp() * 1000))
    except (ValueError, OverflowError, OSError):  # a local zone that moves it outside the years 1 to 9999
        return None


def moment_or_ms(word: str, now_ms: int, zone: tzinfo | None = UTC) -> int | None:
    """`moment_of`, or a number of ms since 1970."""
    if word.isascii() and word.isdigit() and len(word) <= _MOST_DIGITS:
        return int(word)
    return moment_of(word, now_ms, zone)


def start_of(word: str, now_ms: int, zone: tzinfo | None = UTC) -> str | None:
    """Return a start as BEGINNING, END, LAST, an id (behind it) or a number of ms; None if the word is none."""
    name = _NAMES.get(word.lower())
    if name is not None:
        return name
    if _IS_PLACE.fullmatch(word):
        return word
    moment_ms = moment_of(word, now_ms, zone)
    return None if moment_ms is None else str(moment_ms)


def start_since(since: Since, now_ms: int, name: str = "since") -> str:
    """`start_of`, of whatever a program may say. Raises TypeError and ValueError."""
    if since is None:
        return END
    if isinstance(since, datetime):
        if since.tzinfo is None:
            raise ValueError(f"{name}= must be a datetime with a time zone")
        return str(max(0, int(since.timestamp() * 1000)))
    if isinstance(since, timedelta):
        return str(max(0, now_ms - since // timedelta(milliseconds=1)))
    if isinstance(since, bytes):
        since = since.decode(errors="replace")
    if isinstance(since, bool) or not isinstance(since, int | str):
        raise TypeError(f"{name}= is {STARTS}, a datetime or a timedelta, not {type(since).__name__}")
    start = start_of(str(since), now_ms)
    if start is None:
        raise ValueError(f"{name}= is {STARTS}, a datetime or a timedelta, not {since!r}")
    return start


def _amount(word: str, units: dict[str, int]) -> int | None:
    match = _AMOUNT.fullmatch(word.lower())
    unit = units.get(match[2]) if match else None
    if match is None or unit is None:
        return None
    value = int(match[1]) * unit
    return value if value <= LARGEST else None
