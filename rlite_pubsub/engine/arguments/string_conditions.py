"""IFEQ, IFNE, IFDEQ and IFDNE: on which value of a string SET and DELEX depend (Redis 8.4)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from rlite_pubsub.keyspace import xxh3
from rlite_pubsub.protocol.errors import CommandError

if TYPE_CHECKING:
    from rlite_pubsub.keyspace.records import Text

CONDITIONS = frozenset((b"ifeq", b"ifne", b"ifdeq", b"ifdne"))
_DIGEST = re.compile(rb"[0-9a-fA-F]{16}")
_NO_DIGEST = b"ERR must be exactly 16 hexadecimal characters"


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


def hex_digest(value: bytes) -> bytes:
    """As DIGEST says it."""
    return b"%016x" % xxh3.digest(value)
