"""The directives whose values have several parts, each with its own way of reading and its own error texts."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from rlite_pubsub.engine.settings.directive import INT_MAX, Memory, SettingError, ValueKind
from rlite_pubsub.engine.settings.spelling import loose_number, memory, quoted, with_unit
from rlite_pubsub.pubsub.pressure import Limit


class OutputLimits(NamedTuple):
    """The value of client-output-buffer-limit."""

    normal: Limit
    replica: Limit
    pubsub: Limit


_NO_LIMIT = Limit(0, 0, 0)
_CLASSES = {b"normal": "normal", b"slave": "replica", b"replica": "replica", b"pubsub": "pubsub"}


class OutputLimitsByClass(ValueKind):
    """`class hard soft seconds`, for one or more classes; the others keep their limits."""

    many = True

    def parse(self, words: Sequence[bytes], old: Any) -> OutputLimits:
        if len(words) % 4:
            raise SettingError("Wrong number of arguments in buffer limit configuration.")
        limits = {}
        for at in range(0, len(words), 4):
            name = _CLASSES.get(words[at].lower())
            if name is None:
                raise SettingError("Invalid client class specified in buffer limit configuration.")
            hard, soft, seconds = memory(words[at + 1]), memory(words[at + 2]), loose_number(words[at + 3])
            if hard is None or soft is None or seconds is None or not 0 <= seconds <= INT_MAX:
                raise SettingError("Error in hard, soft or soft_seconds setting in buffer limit configuration.")
            limits[name] = Limit(hard, soft, seconds)
        return (old or OutputLimits(_NO_LIMIT, _NO_LIMIT, _NO_LIMIT))._replace(**limits)

    def text(self, value: OutputLimits) -> bytes:
        parts = ((b"normal", value.normal), (b"slave", value.replica), (b"pubsub", value.pubsub))
        return b" ".join(b"%b %d %d %d" % (name, *limit) for name, limit in parts)

    def lines(self, value: OutputLimits) -> list[bytes]:
        parts = ((b"normal", value.normal), (b"replica", value.replica), (b"pubsub", value.pubsub))
        return [
            b"%b %b %b %d" % (name, with_unit(limit.hard_bytes), with_unit(limit.soft_bytes), limit.soft_seconds)
            for name, limit in parts
        ]


class FolderPath(ValueKind):
    """A folder, always printed as an absolute path."""

    def parse(self, words: Sequence[bytes], old: Any) -> bytes:
        return os.path.abspath(words[0])

    def text(self, value: bytes) -> bytes:
        return value

    def lines(self, value: bytes) -> list[bytes]:
        return [quoted(value)]


class SavePoints(ValueKind):
    """Pairs of seconds and changes."""

    many = True

    def parse(self, words: Sequence[bytes], old: Any) -> tuple[tuple[int, int], ...]:
        if list(words) == [b""]:
            words = ()
        numbers = [loose_number(word) for word in words]
        pairs = []
        for seconds, changes in zip(numbers[::2], numbers[1::2], strict=False):
            if seconds is None or changes is None or seconds < 1 or changes < 0:
                raise SettingError("Invalid save parameters")
            pairs.append((seconds, changes))
        if len(words) % 2:
            raise SettingError("Invalid save parameters")
        return tuple(pairs)

    def text(self, value: tuple[tuple[int, int], ...]) -> bytes:
        return b" ".join(b"%d %d" % pair for pair in value)

    def lines(self, value: tuple[tuple[int, int], ...]) -> list[bytes]:
        return [b"%d %d" % pair for pair in value] or [b'""']


class OomScores(ValueKind):
    """Three scores: of the server, of a replica, of a background child."""

    many = True

    def parse(self, words: Sequence[bytes], old: Any) -> tuple[int, ...]:
        if len(words) != 3:
            raise SettingError("wrong number of arguments")
        scores = [loose_number(word) for word in words]
        if not all(score is not None and -2000 <= score <= 2000 for score in scores):
            raise SettingError("Invalid oom-score-adj-values, elements must be between -2000 and 2000.")
        return tuple(score for score in scores if score is not None)

    def text(self, value: tuple[int, ...]) -> bytes:
        return b" ".join(b"%d" % score for score in value)


_MOST_CLASSES = b"g$lshzxetd"
_ALL_CLASSES = b"g$lshzxetdnKEm"


class EventClasses(ValueKind):
    """The letters of notify-keyspace-events; in the value, `A` has been replaced by the letters that it stands for."""

    def parse(self, words: Sequence[bytes], old: Any) -> bytes:
        said = words[0].replace(b"A", _MOST_CLASSES)
        if not set(said) <= set(_ALL_CLASSES):
            raise SettingError("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.")
        return bytes(letter for letter in _ALL_CLASSES if letter in said)

    def text(self, value: bytes) -> bytes:
        if not value.startswith(_MOST_CLASSES):
            return value
        # Redis prints no `n` beside an `A`, though it stays on.
        return b"A" + value.removeprefix(_MOST_CLASSES).replace(b"n", b"")

    def lines(self, value: bytes) -> list[bytes]:
        more = b"n" if value.startswith(_MOST_CLASSES) and b"n" in value else b""
        return [quoted(self.text(value) + more)]


class Addresses(ValueKind):
    """Addresses to listen on, as a tuple; one that starts with `-` may be missing from the machine."""

    many = True

    def parse(self, words: Sequence[bytes], old: Any) -> tuple[bytes, ...]:
        if len(words) > 16:
            raise SettingError("Too many bind addresses specified.")
        return () if list(words) == [b""] else tuple(words)

    def text(self, value: tuple[bytes, ...]) -> bytes:
        return b" ".join(value)

    def lines(self, value: tuple[bytes, ...]) -> list[bytes]:
        return [self.text(value) or b'""']


class Master(ValueKind):
    """A host and a port; None for none."""

    many = True

    def parse(self, words: Sequence[bytes], old: Any) -> tuple[bytes, int] | None:
        if not words or [word.lower() for word in words] == [b"no", b"one"]:
            return None
        if len(words) != 2:
            raise SettingError("wrong number of arguments")
        port = loose_number(words[1])
        if port is None or not 0 <= port <= 65535:
            raise SettingError("Invalid master port")
        return words[0], port

    def text(self, value: tuple[bytes, int] | None) -> bytes:
        return b"" if value is None else b"%b %d" % value

    def lines(self, value: tuple[bytes, int] | None) -> list[bytes]:
        return [] if value is None else [self.text(value)]


class Percentiles(ValueKind):
    """A tuple of floats between 0 and 100."""

    many = True

    def parse(self, words: Sequence[bytes], old: Any) -> tuple[float, ...]:
        return () if list(words) == [b""] else tuple(self._one(word) for word in words)

    def text(self, value: tuple[float, ...]) -> bytes:
        return b" ".join((b"%f" % percentile).rstrip(b"0").rstrip(b".") for percentile in value)

    def lines(self, value: tuple[float, ...]) -> list[bytes]:
        return [self.text(value) or b'""']

    def _one(self, word: bytes) -> float:
        if re.fullmatch(rb"[-+]?(\d+\.?\d*|\.\d+|inf|infinity)(e[-+]?\d+)?", word.lower()) is None:
            raise SettingError("Invalid latency-tracking-info-percentiles parameters")
        percentile = float(word)
        if math.isinf(percentile) or not 0.0 <= percentile <= 100.0:
            raise SettingError("latency-tracking-info-percentiles parameters should sit between [0.0,100.0]")
        return percentile


class BacklogSize(Memory):
    """A backlog size, raised to the least that Redis works with."""

    def parse(self, words: Sequence[bytes], old: Any) -> int:
        return max(super().parse(words, old), 16 * 1024)
