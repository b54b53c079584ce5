"""Patterns that lead from an element to a key's value: `weight_*`, `user_*->name`, and `#`, the element itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlite_pubsub.engine.arguments.hash_lookup import fresh
from rlite_pubsub.engine.arguments.lookup import find
from rlite_pubsub.keyspace.hashes import Hash
from rlite_pubsub.keyspace.records import Text
from rlite_pubsub.protocol.errors import c_string

if TYPE_CHECKING:
    from rlite_pubsub.engine.session import CommandSession

_ITSELF = b"#"
_STAR, _ARROW = b"*", b"->"


class Pattern:
    """A pattern: the first star stands for the element; an arrow after it leads to a field of a hash. As in C, a star
    or an arrow after a NUL does not count."""

    __slots__ = ("_after", "_before", "_field", "_is_itself", "is_constant")

    def __init__(self, text: bytes) -> None:
        said = c_string(text)
        star = said.find(_STAR)
        arrow = said.find(_ARROW, star + 1) if star >= 0 else -1
        self._is_itself = said == _ITSELF
        self._field: bytes | None = None
        if arrow >= 0 and text[arrow + 2 : arrow + 3] not in (b"", b"\0"):
            text, self._field = text[:arrow], text[arrow + 2 :]
        self.is_constant = star < 0
        """It has no star, so it leads to no key."""
        self._before, self._after = text[: max(star, 0)], text[star + 1 :]

    def value(self, session: CommandSession, element: bytes) -> bytes | None:
        """Return the value that the pattern leads to; None if there is no such key or field, or the key has another
        type."""
        if self._is_itself:
            return element
        if self.is_constant:
            return None
        found = find(session, self._before + element + self._after)
        if self._field is None:
            return found.value if isinstance(found, Text) else None
        there = fresh(session, found) if isinstance(found, Hash) else None
        return None if there is None else there.get(self._field)
