"""What may follow a string's value, or a GETEX's key: when it expires, and under which condition it is set (IFEQ, IFNE,
IFDEQ and IFDNE of Redis 8.4: SET and DELEX depend on the value that there is)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from rlite_pubsub.engine.arguments.integers import LONG_MAX, integer
from rlite_pubsub.keyspace import xxh3
from rlite_pubsub.protocol.errors import SYNTAX, CommandError

if TYPE_CHECKING:
    from rlite_pubsub.keyspace.records import Text

_TIMES: Final = {b"ex": (1000, True), b"px": (1, True), b"exat": (1000, False), b"pxat": (1, False)}
"""Option -> (milliseconds in its unit, whether it counts from now)."""
_EXISTENCE: Final = frozenset((b"nx", b"xx"))
_OF_SET: Final = frozenset((b"nx", b"xx", b"get", b"keepttl"))
_OF_MSETEX: Final = frozenset((b"nx", b"xx", b"keepttl"))
_OF_GETEX: Final = frozenset((b"persist",))
CONDITIONS: Final = frozenset((b"ifeq", b"ifne", b"ifdeq", b"ifdne"))
_DIGEST: Final = re.compile(rb"[0-9a-fA-F]{16}")
_NO_DIGEST: Final = b"ERR must be exactly 16 hexadecimal characters"


class Condition(NamedTuple):
    """A word and what stands behind it."""

    word: bytes
    wanted: bytes

    def check(self) -> None:
        """Raises CommandError where it is to be a digest, and is none."""
        if self.word in (b"ifdeq", b"ifdne") and not _DIGEST.fullmatch(self.wanted):
            raise CommandError(_NO_DIGEST)

    def holds(self, text: Text | None) -> bool:
        """Of what there is. None: nothing."""
        wants_equal = self.word in (b"ifeq", b"ifdeq")
        if text is None:
            return not wants_equal
        if self.word in (b"ifeq", b"ifne"):
            is_equal = text.value == self.wanted
        else:
            is_equal = hex_digest(text.value) == self.wanted.lower()
        return is_equal == wants_equal


class Options:
    """As they were written; the time is not yet read."""

    __slots__ = ("condition", "flags", "time", "time_option")

    def __init__(
        self, words: list[bytes], allowed: frozenset[bytes], conditions: frozenset[bytes] = frozenset()
    ) -> None:
        """Raises CommandError."""
        self.condition: Condition | None = None
        self.flags: set[bytes] = set()
        self.time: bytes | None = None
        self.time_option = b""
        rest = iter(words)
        for word in rest:
            option = word.lower()
            if option in allowed and not self._excludes(option):
                self.flags.add(option)
                continue
            value = next(rest, None) if option in _TIMES or option in conditions else None
            if value is None or not self._allows(option):
                raise CommandError(SYNTAX)
            if option in conditions:
                self.condition = Condition(option, value)
                self.condition.check()
                continue
            self.time_option, self.time = option, value

    def _allows(self, option: bytes) -> bool:
        """Whether one that a value follows may stand behind what was said before it."""
        if option in CONDITIONS:
            return self.condition is None and not self.flags & _EXISTENCE
        return self.time_option in (b"", option) and not self.flags & {b"keepttl", b"persist"}

    def _excludes(self, option: bytes) -> bool:
        if option in _EXISTENCE:
            return self.condition is not None or (b"xx" if option == b"nx" else b"nx") in self.flags
        return option in (b"keepttl", b"persist") and self.time is not None

    @property
    def is_point_in_time(self) -> bool:
        """Whether the time was said as a date, which may be in the past."""
        return self.time is not None and not _TIMES[self.time_option][1]

    def expires_ms(self, command: bytes, now_ms: int) -> int:
        """When the key is to expire; 0 if nothing was said. `command` is as the peer called it. Raises CommandError."""
        if self.time is None:
            return 0
        unit_ms, from_now = _TIMES[self.time_option]
        return expiry_of(command, self.time, unit_ms, now_ms if from_now else 0)


def options_of_set(words: list[bytes]) -> Options:
    """SET's."""
    return Options(words, _OF_SET, CONDITIONS)


def options_of_msetex(words: list[bytes]) -> Options:
    """MSETEX's (Redis 8.4)."""
    return Options(words, _OF_MSETEX)


def options_of_getex(words: list[bytes]) -> Options:
    """GETEX's."""
    return Options(words, _OF_GETEX)


def expiry_of(command: bytes, text: bytes, unit_ms: int, base_ms: int) -> int:
    """The point in time, in ms, that is this many units past the base. Raises CommandError if it is none, or in no
    future
    at all."""
    number = integer(text)
    if number <= 0 or number > LONG_MAX // unit_ms or number * unit_ms + base_ms > LONG_MAX:
        raise invalid_expiry(command)
    return number * unit_ms + base_ms


def invalid_expiry(command: bytes) -> CommandError:
    """The time is beyond what can be said in 64 bits, or before all time."""
    return CommandError(b"ERR invalid expire time in '%b' command" % command.lower())


def hex_digest(value: bytes) -> bytes:
    """As DIGEST says it."""
    return b"%016x" % xxh3.digest(value)
