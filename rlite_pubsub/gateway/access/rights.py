"""Bearer tokens and what each may read and write, by the names of channels and topics.

    # a comment
    TOKEN read orders.* events write orders.new

Patterns are those of PSUBSCRIBE; the event bus is the topic `events`. Lists, metrics and what else is of no one name
take the right to read `*`; a stream of a pattern takes that very pattern, or `*`. Only digests of tokens are kept.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from rlite_pubsub.protocol.glob import Glob

log = logging.getLogger("rlite_pubsub")

LOOK_SECONDS = 1.0
MIN_TOKEN_BYTES = 16
"""A shorter one can be guessed."""
_ALL = b"*"


class BadTokens(ValueError):
    """The file of tokens can't be used; the text says why, and never a token."""


class Names(NamedTuple):
    """Names that a token covers."""

    patterns: tuple[bytes, ...] = ()

    def cover(self, name: bytes) -> bool:
        """Whether a name is one of them."""
        return any(Glob(pattern).matches(name) for pattern in self.patterns)

    def cover_pattern(self, pattern: bytes) -> bool:
        """Whether all names of this pattern surely are."""
        return pattern in self.patterns or _ALL in self.patterns


class Rights(NamedTuple):
    """What a token may."""

    read: Names = Names()
    write: Names = Names()


class TokenFile:
    """The tokens of a file, which is read again within a second where it has changed. What is not right then is logged,
    and the old ones hold on."""

    def __init__(self, path: Path, clock: Callable[[], float]) -> None:
        """Raises BadTokens."""
        self._path = path
        self._clock = clock
        self._looked_at = clock()
        self._seen = _version(path)
        self._tokens = load(path)

    def rights(self, token: bytes) -> Rights | None:
        """What it may; None: it is none of them."""
        self._look()
        return self._tokens.get(digest(token))

    def _look(self) -> None:
        now = self._clock()
        if self._looked_at <= now < self._looked_at + LOOK_SECONDS:
            return
        self._looked_at = now
        version = _version(self._path)
        if version != self._seen:
            self._seen = version
            try:
                self._tokens = load(self._path)
            except BadTokens as failure:
                log.warning("%s. The old ones still hold.", failure)


def _version(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def load(path: Path) -> dict[bytes, Rights]:
    """The rights of each token, by its digest. Raises BadTokens."""
    try:
        text = path.read_bytes()
    except OSError as failure:
        raise BadTokens(f"Can't read the tokens: {failure.strerror}") from failure
    found: dict[bytes, Rights] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith(b"#"):
            continue
        token, *rest = words
        if len(token) < MIN_TOKEN_BYTES:
            raise BadTokens(f"Line {number} of the tokens: a token has at least {MIN_TOKEN_BYTES} bytes")
        if digest(token) in found:
            raise BadTokens(f"Line {number} of the tokens: this token has a line already")
        found[digest(token)] = _rights(rest, number)
    return found


def digest(token: bytes) -> bytes:
    """What is kept of a token: a look-up by it tells nothing of how nearly a guess has met."""
    return hashlib.sha256(token).digest()


def _rights(words: Iterable[bytes], number: int) -> Rights:
    said: dict[bytes, list[bytes]] = {b"read": [], b"write": []}
    verb: list[bytes] | None = None
    for word in words:
        if word in said:
            verb = said[word]
        elif verb is None:
            raise BadTokens(f"Line {number} of the tokens: behind the token comes read or write")
        else:
            verb.append(word)
    return Rights(Names(tuple(said[b"read"])), Names(tuple(said[b"write"])))
