"""The types of events that a reader wants: regular expressions, one of which must be found in the type.

They are RE2's: no pattern takes more than linear time, and one that RE2 can't promise that for is refused, as is one
that would take much memory. A line can be steep all the same: programs have a length, a long type is looked at as far
as HTTP lets it be, and who reads stops for others after so much time (`is_tired`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import re2  # type: ignore[import-untyped]

MAX_PATTERNS = 32
MAX_PATTERN_CHARACTERS = 1024
MAX_BYTES, LEAST_PATTERN_BYTES = 1 << 20, 1 << 16
"""Of memory that RE2 may take for all of them together, and for one where they are many."""
MAX_PROGRAM = 4096
"""Instructions, of all patterns together."""
MAX_TYPE_BYTES = 1024
STRETCH_SECONDS = 0.005
_KNOWN_BYTES, _EACH_BYTES = 64 * 1024, 128
"""Thousands may read at once, each by patterns of its own."""


class BadPattern(ValueError):
    """No pattern that can be matched in linear time."""


class Matcher:
    """A type matches if one of the patterns is found anywhere in it. Equal patterns make equal matchers."""

    def __init__(self, patterns: Sequence[str], clock: Callable[[], float] = perf_counter) -> None:
        """Raises BadPattern."""
        if len(patterns) > MAX_PATTERNS:
            raise BadPattern(f"At most {MAX_PATTERNS} patterns can be matched at once.")
        self.patterns = tuple(sorted(set(patterns)))
        self._expressions: list[Any] = []
        self._known: dict[bytes, bool] = {}
        self._known_bytes = 0
        self._clock = clock
        self._spent_seconds = 0.0
        size = 0
        for pattern in self.patterns:
            self._expressions.append(_compiled(pattern, max(MAX_BYTES // len(self.patterns), LEAST_PATTERN_BYTES)))
            size += self._expressions[-1].programsize
            if size > MAX_PROGRAM:
                raise BadPattern(f"{pattern[:80]!r} is too large: its repetitions multiply each other.")

    def rest(self) -> None:
        """Note that others have had a turn."""
        self._spent_seconds = 0.0

    @property
    def is_tired(self) -> bool:
        """True if others should have a turn."""
        return self._spent_seconds > STRETCH_SECONDS

    def matches(self, type: bytes) -> bool:
        """Return whether the reader wants events of this type."""
        known = self._known.get(type)
        if known is None:
            began = self._clock()
            subject = type[:MAX_TYPE_BYTES].decode(errors="replace")
            known = any(each.search(subject) is not None for each in self._expressions)
            self._remember(type, known)
            self._spent_seconds += self._clock() - began
        return known

    def _remember(self, type: bytes, matches: bool) -> None:
        size = len(type) + _EACH_BYTES
        if len(type) > MAX_TYPE_BYTES:
            return
        if self._known_bytes + size > _KNOWN_BYTES:
            self._known.clear()
            self._known_bytes = 0
        self._known[type] = matches
        self._known_bytes += size


def _compiled(pattern: str, max_bytes: int) -> Any:
    if len(pattern) > MAX_PATTERN_CHARACTERS:
        raise BadPattern(f"A pattern has at most {MAX_PATTERN_CHARACTERS} characters.")
    options = re2.Options()
    options.max_mem = max_bytes
    options.log_errors = False
    options.never_capture = True
    try:
        return re2.compile(pattern, options)
    except re2.error as failure:
        reason = failure.args[0] if failure.args else "unknown"
        if isinstance(reason, bytes):
            reason = reason.decode(errors="replace")
        raise BadPattern(f"{pattern!r} can't be matched: {reason}") from failure
