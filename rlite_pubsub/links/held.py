"""The names that one wire subscribes to, and which of what comes over it is heard: each message once, though a channel
and several patterns may bring it.

Confirmations come in one stream with the messages, so at any place of the stream it is known what was subscribed to.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import Any, Final

from rlite_pubsub.links.wishes import Name
from rlite_pubsub.protocol.glob import Glob
from rlite_pubsub.pubsub.kinds import CHANNELS, KINDS, PATTERNS, SHARDS

AT_ONCE: Final = 500
"""Names of one request."""
_FIRSTS_KEPT: Final = 32768
_SUBSCRIBED: Final = {kind.subscribed: kind for kind in KINDS}
_UNSUBSCRIBED: Final = {kind.unsubscribed: kind for kind in KINDS}
_NOBODY: Final = b""


class Held:
    """Of one wire."""

    def __init__(self) -> None:
        self.asked: frozenset[Name] = frozenset()
        """What was said to the other side so far."""
        self._channels: set[bytes] = set()
        self._shards: set[bytes] = set()
        self._patterns: dict[bytes, Glob] = {}
        self._first: dict[bytes, bytes] = {}  # channel -> the pattern that brings it

    def want(self, names: Set[Name]) -> list[list[bytes]]:
        """Requests after which these are subscribed to, and no others."""
        requests: list[list[bytes]] = []
        for kind in KINDS:
            for verb, found in ((kind.subscribed, names - self.asked), (kind.unsubscribed, self.asked - names)):
                ordered = sorted(name for index, name in found if index == kind.index)
                for start in range(0, len(ordered), AT_ONCE):
                    part = ordered[start : start + AT_ONCE]
                    # in a cluster one request may name channels of one slot only
                    requests += [[verb, name] for name in part] if kind is SHARDS else [[verb, *part]]
        self.asked = frozenset(names)
        return requests

    def hear(self, push: list[Any]) -> tuple[int, bytes, bytes] | None:
        """(Kind.index, channel, payload) of a message; None for what is none, or has come, or is to come, by another
        way."""
        word = push[0]
        if word == b"message":
            return CHANNELS.index, push[1], push[2]
        if word == b"pmessage":
            channel = push[2]
            first = self._first.get(channel)
            if first is None:
                first = self._find_first(channel)
            return (CHANNELS.index, channel, push[3]) if first == push[1] else None
        if word == b"smessage":
            return SHARDS.index, push[1], push[2]
        kind = _SUBSCRIBED.get(word)
        if kind is not None:
            self._confirm(kind.index, push[1], is_held=True)
        elif (kind := _UNSUBSCRIBED.get(word)) is not None and push[1] is not None:
            self._confirm(kind.index, push[1], is_held=False)
        return None

    def hears(self, kind: int, channel: bytes) -> bool:
        """Return whether a message to this channel comes in, by the confirmed subscriptions."""
        if kind == SHARDS.index:
            return channel in self._shards
        return channel in self._channels or bool(self._first.get(channel) or self._find_first(channel))

    @property
    def names(self) -> frozenset[Name]:
        """The confirmed names."""
        found = [(CHANNELS.index, name) for name in self._channels] + [(SHARDS.index, name) for name in self._shards]
        return frozenset(found + [(PATTERNS.index, name) for name in self._patterns])

    def _confirm(self, kind: int, name: bytes, *, is_held: bool) -> None:
        self._first.clear()
        if kind == PATTERNS.index:
            if is_held:
                self._patterns.setdefault(name, Glob(name))
            else:
                self._patterns.pop(name, None)
            return
        names = self._channels if kind == CHANNELS.index else self._shards
        (names.add if is_held else names.discard)(name)

    def _find_first(self, channel: bytes) -> bytes:
        """Return the pattern by which it is heard; nobody's name where it is subscribed to itself, or not at all."""
        if len(self._first) >= _FIRSTS_KEPT:
            self._first.clear()
        first = _NOBODY
        if channel not in self._channels:
            first = next((pattern for pattern, glob in self._patterns.items() if glob.matches(channel)), _NOBODY)
        self._first[channel] = first
        return first


class Filter:
    """The patterns of a link: which channels it is for."""

    def __init__(self, patterns: Iterable[bytes]) -> None:
        self.patterns = tuple(patterns)
        self._globs = [Glob(pattern) for pattern in self.patterns]
        self.is_for_internal = any(pattern.startswith(b"__") for pattern in self.patterns)

    def matches(self, name: bytes) -> bool:
        """Return whether a name matches. Names that begin with two underscores (keyspace events, Sentinel's, our own)
        must be asked for as such."""
        if name.startswith(b"__") and not (self.is_for_internal and _is_said(self.patterns, name)):
            return False
        return any(glob.matches(name) for glob in self._globs)

    @property
    def names(self) -> set[Name]:
        """The names to subscribe to, in order to hear all of it."""
        return {
            (CHANNELS.index, glob.literal_prefix) if glob.exact else (PATTERNS.index, pattern)
            for pattern, glob in zip(self.patterns, self._globs, strict=True)
        }

    def narrowed(self, name: Name) -> bool:
        """Return whether a holder of this name may be sent something that the link is for. A pattern is asked for as it
        is: what comes by it and does not belong to the link is not passed on."""
        kind, text = name
        if kind != PATTERNS.index:
            return self.matches(text)
        return any(_may_overlap(text, glob) for glob in self._globs)


def _is_said(patterns: tuple[bytes, ...], name: bytes) -> bool:
    return any(pattern.startswith(b"__") and Glob(pattern).matches(name) for pattern in patterns)


def _may_overlap(pattern: bytes, glob: Glob) -> bool:
    """False only where no name matches both."""
    mine, other = Glob(pattern).literal_prefix, glob.literal_prefix
    return mine.startswith(other) or other.startswith(mine)
