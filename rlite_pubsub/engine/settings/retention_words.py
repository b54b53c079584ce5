"""How limits of retention are spelled: an age, a number of entries, a number of bytes; and the rules of the directive.

    age      500ms 30s 15min 24h 7d 2w        TOPIC.CONFIG takes a bare number as milliseconds
    bytes    100b 512mb 1gb                   and here as bytes (measures.py reads both)
    entries  1000000 entries                  two words in a rule

A rule is a pattern and at least one limit, in any order: `orders.* 7d 1gb 1000000 entries`. Rules are separated by `;`,
or are lines of their own. `5m` could mean minutes or megabytes, and is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from rlite_pubsub import measures
from rlite_pubsub.engine.settings.directive import SettingError, ValueKind
from rlite_pubsub.engine.settings.spelling import quoted
from rlite_pubsub.storage.topics.topic_settings import RetentionLimits, Rule

SEPARATOR = b";"
_LARGEST_UNITS_MS = {b"d": 86_400_000, b"h": 3_600_000, b"min": 60_000, b"s": 1000}
_NUMBER = re.compile(rb"[1-9][0-9]{0,18}")
_AMBIGUOUS = re.compile(rb"[0-9]+[mM]")
_SIZES = {b"gb": 1 << 30, b"mb": 1 << 20, b"kb": 1 << 10}


def age_ms(word: bytes) -> int | None:
    """Return the milliseconds of a word like `7d`; None if it is not an age."""
    return measures.age_ms(word.decode("latin-1"))


def size_bytes(word: bytes) -> int | None:
    """Return the bytes of a word like `512mb`; None if it is not a size."""
    return measures.size_bytes(word.decode("latin-1"))


def count(word: bytes) -> int | None:
    """Return a number of at least 1; None if the word is not one."""
    return _within(int(word)) if _NUMBER.fullmatch(word) else None


def age_text(milliseconds: int) -> bytes:
    """Return an age in the largest unit up to days that is exact."""
    for unit, unit_ms in _LARGEST_UNITS_MS.items():
        if milliseconds % unit_ms == 0:
            return b"%d%b" % (milliseconds // unit_ms, unit)
    return b"%dms" % milliseconds


def size_text(size: int) -> bytes:
    """Return a size in the largest unit that is exact."""
    for unit, unit_bytes in _SIZES.items():
        if size % unit_bytes == 0:
            return b"%d%b" % (size // unit_bytes, unit)
    return b"%db" % size


def _within(value: int) -> int | None:
    return value if value <= measures.LARGEST else None


class RetentionRules(ValueKind):
    """The value of `retain`: a tuple of rules, or None as long as nobody has set any (then the store's apply)."""

    many = True

    def parse(self, words: Sequence[bytes], old: Any) -> tuple[Rule, ...] | None:
        if list(words) in ([], [b""], [b"none"]):
            return None if old is None and list(words) != [b"none"] else ()
        return tuple(_rule(said) for said in _split(words))

    def text(self, value: tuple[Rule, ...] | None) -> bytes:
        return b" ; ".join(_words(rule, rule.pattern) for rule in value or ())

    def lines(self, value: tuple[Rule, ...] | None) -> list[bytes]:
        if value is None:
            return []
        return [_words(rule, quoted(rule.pattern)) for rule in value] or [b"none"]


def more_rules(value: tuple[Rule, ...] | None, words: list[bytes]) -> list[bytes]:
    """Return the words of these rules and of one more line."""
    if words in ([], [b""], [b"none"]):
        return words
    said: list[bytes] = []
    for rule in value or ():
        said += [rule.pattern, *_words(rule, b"").split(), SEPARATOR]
    return said + words


def _split(words: Sequence[bytes]) -> Iterator[list[bytes]]:
    said: list[bytes] = []
    for word in [*words, SEPARATOR]:
        if word == SEPARATOR:
            if said:
                yield said
            said = []
        elif word:
            said.append(word)


def _rule(words: list[bytes]) -> Rule:
    pattern, *limits = words
    found: dict[str, int] = {}
    at = 0
    while at < len(limits):
        word = limits[at]
        is_count = at + 1 < len(limits) and limits[at + 1].lower() in (b"entries", b"entry")
        meanings = {
            "entries": count(word) if is_count else None,
            "age_ms": age_ms(word),
            "size_bytes": size_bytes(word),
        }
        name = next((name for name, value in meanings.items() if value is not None), None)
        if name is None or _AMBIGUOUS.fullmatch(word):
            raise SettingError(_refusal(word))
        if name in found:
            raise SettingError("retain takes one age, one number of entries and one size for a pattern")
        found[name] = meanings[name] or 0
        at += 2 if name == "entries" else 1
    if not found:
        raise SettingError("retain needs a pattern and a limit: an age (7d), a size (1gb) or a number (1000 entries)")
    return Rule(pattern, RetentionLimits(**found))


def _refusal(word: bytes) -> str:
    shown = word.decode("utf-8", "replace")
    if re.fullmatch(rb"[0-9]+m", word.lower()):
        return f"retain can't tell minutes from megabytes in '{shown}': say '{shown}in' or '{shown}b'"
    return f"retain doesn't know the limit '{shown}': an age is like 7d, a size like 1gb, a number like 1000 entries"


def _words(rule: Rule, pattern: bytes) -> bytes:
    limits = rule.limits
    words = [pattern] if pattern else []
    if limits.age_ms:
        words.append(age_text(limits.age_ms))
    if limits.size_bytes:
        words.append(size_text(limits.size_bytes))
    if limits.entries:
        words.append(b"%d entries" % limits.entries)
    return b" ".join(words)
