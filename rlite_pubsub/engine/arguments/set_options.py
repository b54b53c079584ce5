"""The options after a string's value, or after GETEX's key: when it expires, and under which condition it is set (IFEQ,
IFNE, IFDEQ and IFDNE of Redis 8.4: SET and DELEX depend on the present value)."""

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
_OTHER_LIVES: Final = frozenset((b"keepttl", b"persist"))
CONDITIONS: Final = frozenset((b"ifeq", b"ifne", b"ifdeq", b"ifdne"))
_DIGEST: Final = re.compile(rb"[0-9a-fA-F]{16}")
_NO_DIGEST: Final = b"ERR must be exactly 16 hexadecimal characters"


class Condition(NamedTuple):
    """A condition: a word and its value."""

    word: bytes
    wanted: bytes

    def check(self) -> None:
        """Check that a digest is one. Raises CommandError."""
        if self.word in (b"ifdeq", b"ifdne") and not _DIGEST.fullmatch(self.wanted):
            raise CommandError(_NO_DIGEST)

    def holds(self, text: Text | None) -> bool:
        """Return whether the condition holds for the present value; None: there is no value."""
        wants_equal = self.word in (b"ifeq", b"ifdeq")
        if text is None:
            return not wants_equal
        if self.word in (b"ifeq", b"ifne"):
            is_equal = text.value == self.wanted
        else:
            is_equal = hex_digest(text.value) == self.wanted.lower()
        return is_equal == wants_equal


class Options:
    """The options as written; the time has not been read yet."""

    __slots__ = ("condition", "flags", "time", "time_option")

    def __init__(
        self, words: list[bytes], allowed: frozenset[bytes], conditions: frozenset[bytes] = frozenset()
    ) -> None:
        """Read the options. Raises CommandError."""
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
        """Return whether an option with a value may follow what came before it."""
        if option in CONDITIONS:
            return self.condition is None and not self.flags & _EXISTENCE
        return self.time_option in (b"", option) and (not self.flags or self.flags.isdisjoint(_OTHER_LIVES))

    def _excludes(self, option: bytes) -> bool:
        if option in _EXISTENCE:
            return self.condition is not None or (b"xx" if option == b"nx" else b"nx") in self.flags
        return option in (b"keepttl", b"persist") and self.time is not None

    @property
    def is_point_in_time(self) -> bool:
        """True if the time is a date, which may be in the past."""
        return self.time is not None and not _TIMES[self.time_option][1]

    def expires_ms(self, command: bytes, now_ms: int) -> int:
        """Return when the key expires; 0 if no option says so. `command` is the name that the client used. Raises
        CommandError."""
        if self.time is None:
            return 0
        unit_ms, from_now = _TIMES[self.time_option]
        return expiry_of(command, self.time, unit_ms, now_ms if from_now else 0)


def options_of_set(words: list[bytes]) -> Options:
    """Return SET's options."""
    return Options(words, _OF_SET, CONDITIONS)


def options_of_msetex(words: list[bytes]) -> Options:
    """Return MSETEX's options (Redis 8.4)."""
    return Options(words, _OF_MSETEX)


def options_of_getex(words: list[bytes]) -> Options:
    """Return GETEX's options."""
    return Options(words, _OF_GETEX)


def expiry_of(command: bytes, text: bytes, unit_ms: int, base_ms: int) -> int:
    """Return the point in time, in ms, that is this many units past the base. Raises CommandError if it is not
    valid."""
    number = integer(text)
    if number <= 0 or number > LONG_MAX // unit_ms or number * unit_ms + base_ms > LONG_MAX:
        raise invalid_expiry(command)
    return number * unit_ms + base_ms


def invalid_expiry(command: bytes) -> CommandError:
    """Return the error for a time that 64 bits cannot hold, or that is before 1970."""
    return CommandError(b"ERR invalid expire time in '%b' command" % command.lower())


def hex_digest(value: bytes) -> bytes:
    """Return the digest of a value as DIGEST shows it."""
    return b"%016x" % xxh3.digest(value)
