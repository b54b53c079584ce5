"""The arguments of SCAN, SSCAN, HSCAN and ZSCAN: a cursor and its options; and the count of a random draw."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rlite_pubsub.engine.arguments.integers import LONG_MAX, integer
from rlite_pubsub.engine.table import Arg
from rlite_pubsub.protocol.errors import SYNTAX, CommandError
from rlite_pubsub.protocol.glob import Glob

DEFAULT_COUNT = 10
_ALL = b"*"
_CURSOR = re.compile(rb"([+-]?)0*([0-9]*)")
_CURSORS = 1 << 64
_MOST_DIGITS = 20
_INVALID_CURSOR = b"ERR invalid cursor"
MOST_DRAWN = 1 << 20
"""How many draws with repetition are answered at most; Redis answers any number, if memory is left."""
_OUT_OF_RANGE = b"ERR value is out of range"
_OUT_OF_BOUNDS = b"ERR value is out of range, value must between %d and %d" % (-LONG_MAX, LONG_MAX)

PAGE_ARGUMENTS = (
    Arg("cursor", "integer"),
    Arg("pattern", "pattern", token="MATCH", optional=True),
    Arg("count", "integer", token="COUNT", optional=True),
)
"""Of SSCAN, HSCAN and ZSCAN, behind the key."""


def scan_cursor(text: bytes) -> int:
    """Read a cursor like C's strtoul: a minus counts from the end. Raises CommandError."""
    match = _CURSOR.fullmatch(text)
    if match is None or text == match[1] != b"" or len(match[2]) > _MOST_DIGITS:
        raise CommandError(_INVALID_CURSOR)
    cursor = int(match[2] or b"0")
    if cursor >= _CURSORS:
        raise CommandError(_INVALID_CURSOR)
    return -cursor % _CURSORS if match[1] == b"-" else cursor


def draw_count(text: bytes, rest: Sequence[bytes] = (), word: bytes = b"") -> tuple[int, bool]:
    """Return how many members to draw (if negative, members may repeat), and whether `word`, the only one that may
    follow, asks for their values too. Raises CommandError."""
    count = integer(text)
    if count < -LONG_MAX:
        raise CommandError(_OUT_OF_BOUNDS)
    if rest and (len(rest) > 1 or rest[0].lower() != word):
        raise CommandError(SYNTAX)
    if count < -MOST_DRAWN or (rest and count > LONG_MAX // 2):
        raise CommandError(_OUT_OF_RANGE)
    return count, bool(rest)


class PageOptions:
    """COUNT, MATCH, words that stand alone, and words with a value."""

    __slots__ = ("_pattern", "count", "values", "words")

    def __init__(self) -> None:
        self.count = DEFAULT_COUNT
        self._pattern: Glob | None = None
        self.words: set[bytes] = set()
        self.values: dict[bytes, bytes] = {}

    def take(self, option: bytes, value: bytes) -> None:
        """Add an option with its value. Raises CommandError."""
        if option == b"count":
            self.count = integer(value)
            if self.count < 1:
                raise CommandError(SYNTAX)
        elif option == b"match":
            self._pattern = None if value == _ALL else Glob(value)
        else:
            self.values[option] = value

    def matches(self, name: bytes) -> bool:
        """Return whether a name matches the pattern, if there is one."""
        return self._pattern is None or self._pattern.matches(name)

    @property
    def has_pattern(self) -> bool:
        return self._pattern is not None


def page_options(rest: list[bytes], *allowed: bytes, valued: frozenset[bytes] = frozenset()) -> PageOptions:
    """Read what follows the cursor: COUNT, MATCH, these words, and these words with values. Raises CommandError."""
    options = PageOptions()
    words = iter(rest)
    for word in words:
        option = word.lower()
        if option in allowed:
            options.words.add(option)
            continue
        value = next(words, None)
        if value is None or not (option in (b"count", b"match") or option in valued):
            raise CommandError(SYNTAX)
        options.take(option, value)
    return options
