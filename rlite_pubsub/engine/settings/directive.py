"""What a directive is: a name, a default, when it may be changed, and a kind, which reads and prints its values.

The kinds keep redis-server's rules to the letter: accepted spellings, bounds, error texts. A kind reads words (bytes,
already split) and either gives a typed value or raises SettingError.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from rlite_pubsub.engine.settings.spelling import LONG_MAX, ULONG_MAX, memory, quoted, whole_number, with_unit

INT_MIN, INT_MAX, UINT_MAX = -(2**31), 2**31 - 1, 2**32 - 1


class SettingError(Exception):
    """A value is refused; `text` says why, in Redis's words."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text.encode()


class ValueKind:
    """A kind of value: how a directive's values are read and printed."""

    many = False
    """Whether a value may be several words."""
    binary = False
    """Whether a NUL is a byte like others; elsewhere it ends a word, as in C."""

    def parse(self, words: Sequence[bytes], old: Any) -> Any:
        """Return the typed value; `old` is the present one, for kinds that can be set in part."""
        raise NotImplementedError

    def text(self, value: Any) -> bytes:
        """Return the value as CONFIG GET prints it."""
        raise NotImplementedError

    def lines(self, value: Any) -> list[bytes]:
        """Return the value as lines of a configuration file, without the directive's name."""
        return [self.text(value)]


class Directive(NamedTuple):
    """One line of the table of directives."""

    name: str
    kind: ValueKind
    default: tuple[bytes, ...]
    flags: frozenset[str]
    """What CONFIG minds:

    immutable   is set at the start and never again
    settled     may be named by CONFIG SET, but keeps its value
    protected   is set only as enable-protected-configs allows
    hidden      is shown only when asked for by its full name
    secret      is kept out of logs
    volatile    is put into effect whenever it is set: what it names may have changed
    shared      is the store's: all processes have the same
    """
    alias: str | None = None
    meaning: str = ""
    """What it does here, in a sentence. Empty: the value is kept and shown, and nothing more."""
    ours: bool = False
    """Not a directive of Redis's."""


class YesNo(ValueKind):
    """yes or no, as a bool."""

    def parse(self, words: Sequence[bytes], old: Any) -> bool:
        word = words[0].lower()
        if word not in (b"yes", b"no"):
            raise SettingError("argument must be 'yes' or 'no'")
        return word == b"yes"

    def text(self, value: bool) -> bytes:
        return b"yes" if value else b"no"


class AnyText(ValueKind):
    """Any text, as bytes; `check` may refuse it."""

    def __init__(self, check: Callable[[bytes], None] | None = None) -> None:
        self.check = check

    def parse(self, words: Sequence[bytes], old: Any) -> bytes:
        if self.check is not None:
            self.check(words[0])
        return words[0]

    def text(self, value: bytes) -> bytes:
        return value

    def lines(self, value: bytes) -> list[bytes]:
        return [quoted(value)]


class Password(AnyText):
    """Any bytes."""

    binary = True


class Choice(ValueKind):
    """One of a few words, as bytes. Words joined by `=` mean the same, and the first of them is the value."""

    def __init__(self, *choices: str) -> None:
        self.meanings = {word: choice.split("=")[0].encode() for choice in choices for word in choice.split("=")}

    def parse(self, words: Sequence[bytes], old: Any) -> bytes:
        return self.one(words[0])

    def text(self, value: bytes) -> bytes:
        return value

    def one(self, word: bytes) -> bytes:
        """Return the value that a word means. Raises SettingError."""
        meaning = self.meanings.get(word.decode("latin-1").lower())
        if meaning is None:
            raise self.refusal()
        return meaning

    def refusal(self) -> SettingError:
        """Return the error that names all accepted words."""
        return SettingError("argument(s) must be one of the following: " + ", ".join(self.meanings))


class ShutdownFlags(ValueKind):
    """What a shutdown by a signal does: a tuple of words, empty for the default."""

    many = True
    flags = Choice("default", "save", "nosave", "now", "force")

    def parse(self, words: Sequence[bytes], old: Any) -> tuple[bytes, ...]:
        if not words:
            raise self.flags.refusal()
        said = {self.flags.one(word) for word in words} - {b"default"}
        if {b"save", b"nosave"} <= said:
            raise SettingError("shutdown options SAVE and NOSAVE can't be used simultaneously")
        return tuple(word for word in self.flags.meanings.values() if word in said)

    def text(self, value: tuple[bytes, ...]) -> bytes:
        return b" ".join(value) or b"default"


class Number(ValueKind):
    """An int within bounds. Unsigned ones take a negative number for a huge one, and so name other bounds."""

    unparsable = "argument couldn't be parsed into an integer"
    bound_format = "d"

    def __init__(self, low: int, high: int, *, unsigned: bool = False) -> None:
        self.low = low
        self.high = high
        self.unsigned = unsigned

    def parse(self, words: Sequence[bytes], old: Any) -> int:
        value = self.read(words[0])
        if value is None:
            raise SettingError(self.unparsable)
        if self.unsigned:
            value &= ULONG_MAX
        elif value > LONG_MAX:
            value -= 2**64
        self._bound(value)
        return value

    def text(self, value: int) -> bytes:
        return format(value, self.bound_format).encode()

    def read(self, word: bytes) -> int | None:
        """Return the number that a word spells, or None."""
        return whole_number(word)

    def _bound(self, value: int) -> None:
        if not self.low <= value <= self.high:
            low, high = format(self.low, self.bound_format), format(self.high, self.bound_format)
            raise SettingError(f"argument must be between {low} and {high} inclusive")


class Frequency(Number):
    """A number that is only a hint: it is brought within bounds instead of refused."""

    def parse(self, words: Sequence[bytes], old: Any) -> int:
        return min(max(super().parse(words, old), 1), 500)


class Octal(Number):
    """File permissions, in octal."""

    unparsable = "argument couldn't be parsed as an octal number"
    bound_format = "o"

    def read(self, word: bytes) -> int | None:
        if re.fullmatch(rb"(\s*[+-]?[0-7]{1,21})?", word) is None:
            return None
        return int(word, 8) if word else 0


class Memory(Number):
    """A count of bytes, with Redis's units: k is 1000, kb is 1024, and so on."""

    unparsable = "argument must be a memory value"

    def read(self, word: bytes) -> int | None:
        return memory(word)

    def lines(self, value: int) -> list[bytes]:
        return [with_unit(value)]


class MemoryOrPercent(Memory):
    """A count of bytes or, as a negative number, a percentage of `maxmemory`."""

    unparsable = "argument must be a memory or percent value"

    def read(self, word: bytes) -> int | None:
        value = super().read(word)
        if value is None and word.endswith(b"%"):
            percent = whole_number(word[:-1])
            value = -percent if percent is not None and percent >= 0 else None
        return value

    def text(self, value: int) -> bytes:
        return b"%d%%" % -value if value < 0 else b"%d" % value

    def lines(self, value: int) -> list[bytes]:
        return [self.text(value) if value < 0 else with_unit(value)]

    def _bound(self, value: int) -> None:
        if value < self.low:
            raise SettingError(f"percentage argument must be less or equal to {-self.low}")
        if value >= 0:
            super()._bound(value)


def declare(
    name: str,
    kind: ValueKind,
    default: str,
    flags: str = "",
    *,
    alias: str | None = None,
    meaning: str = "",
    ours: bool = False,
) -> Directive:
    """Return a directive; a default of several words is split at blanks."""
    words = tuple(default.encode().split(b" ")) if kind.many else (default.encode(),)
    return Directive(name, kind, words, frozenset(flags.split()), alias, meaning, ours)


_YES_NO, _TEXT = YesNo(), AnyText()


def yes_no(name: str, default: str, flags: str = "", **more: Any) -> Directive:
    """Return a directive that is on or off."""
    return declare(name, _YES_NO, default, flags, **more)


def text(name: str, default: str, flags: str = "", **more: Any) -> Directive:
    """Return a directive that takes any one word."""
    return declare(name, _TEXT, default, flags, **more)


def choice(name: str, default: str, words: str, flags: str = "", **more: Any) -> Directive:
    """Return a directive that takes one of a few words."""
    return declare(name, Choice(*words.split()), default, flags, **more)


def number(
    name: str, default: int, low: int, high: int, flags: str = "", *, unsigned: bool = False, **more: Any
) -> Directive:
    """Return a directive that takes an integer."""
    return declare(name, Number(low, high, unsigned=unsigned), str(default), flags, **more)


def size(
    name: str, default: str, low: int, high: int, flags: str = "", *, unsigned: bool = False, **more: Any
) -> Directive:
    """Return a directive that takes a count of bytes."""
    return declare(name, Memory(low, high, unsigned=unsigned), default, flags, **more)
