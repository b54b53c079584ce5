"""Which types a reader wants: regular expressions, of which one must be found in the type.

They are RE2's: no pattern takes more than linear time, and one that RE2 can't promise that for is refused, as is one
that would take much memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import re2  # type: ignore[import-untyped]

MAX_PATTERNS = 32
MAX_PATTERN_CHARACTERS = 1024
MAX_PATTERN_BYTES = 1 << 20
"""Of memory that RE2 may take for one."""
_KNOWN_TYPES = 4096


class BadPattern(ValueError):
    """No pattern that can be matched in linear time."""


class Matcher:
    """A type matches if one of the patterns is found anywhere in it. Equal patterns make equal matchers."""

    def __init__(self, patterns: Sequence[str]) -> None:
        """Raises BadPattern."""
        if len(patterns) > MAX_PATTERNS:
            raise BadPattern(f"At most {MAX_PATTERNS} patterns can be matched at once.")
        self.patterns = tuple(sorted(set(patterns)))
        self._expressions = [_compiled(pattern) for pattern in self.patterns]
        self._known: dict[bytes, bool] = {}

    def matches(self, type: bytes) -> bool:
        """Whether the reader wants events of this type."""
        known = self._known.get(type)
        if known is None:
            if len(self._known) >= _KNOWN_TYPES:
                self._known.clear()
            subject = type.decode(errors="replace")
            known = self._known[type] = any(each.search(subject) is not None for each in self._expressions)
        return known


def _compiled(pattern: str) -> Any:
    if len(pattern) > MAX_PATTERN_CHARACTERS:
        raise BadPattern(f"A pattern has at most {MAX_PATTERN_CHARACTERS} characters.")
    options = re2.Options()
    options.max_mem = MAX_PATTERN_BYTES
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as failure:
        reason = failure.args[0] if failure.args else "unknown"
        if isinstance(reason, bytes):
            reason = reason.decode(errors="replace")
        raise BadPattern(f"{pattern!r} can't be matched: {reason}") from failure
