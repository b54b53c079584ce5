"""The names at the other side of a link, and the counters of a port."""

from __future__ import annotations

from typing import Final

from rlite_pubsub.links.wishes import Name
from rlite_pubsub.pubsub.kinds import PATTERNS

_SPECIAL: Final = b"\\*?[]^-"


class Naming:
    """Translates names for the other side."""

    def __init__(self, prefix: bytes) -> None:
        self._prefix = prefix
        self._escaped = b"".join(b"\\%c" % byte if byte in _SPECIAL else b"%c" % byte for byte in prefix)

    def there(self, name: bytes) -> bytes:
        return self._prefix + name

    def here(self, name: bytes) -> bytes | None:
        """None: it has no name here."""
        return name[len(self._prefix) :] if name.startswith(self._prefix) else None

    def wanted_there(self, wanted: Name) -> Name:
        """Return a name, or a pattern, as it is to be subscribed to there."""
        kind, name = wanted
        return kind, (self._escaped if kind == PATTERNS.index else self._prefix) + name


class Figures:
    """The counters of a port."""

    def __init__(self) -> None:
        self.messages_in = self.messages_out = self.dropped = self.refused = 0
