"""What comes over one wire of a server that knows nothing of envelopes: each message once, and with its envelope where
a marker stands before it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from rlite_pubsub.links import envelope
from rlite_pubsub.links.envelope import BadFrame, Envelope
from rlite_pubsub.links.held import Held
from rlite_pubsub.pubsub.kinds import SHARDS

Came = Callable[[int, bytes, bytes, "Envelope | None"], None]
"""Takes a message: Kind.index, channel, payload, and what its marker says."""


class MarkerReader:
    """Of one wire."""

    def __init__(self, came: Came, is_marker: Callable[[bytes], bool]) -> None:
        """`is_marker`: whether a channel has markers."""
        self.held = Held()
        self._came = came
        self._is_marker = is_marker
        self._marked: deque[Envelope] = deque()

    def pushed(self, pushes: list[list[Any]]) -> None:
        """Take pushes in their order."""
        held, marked, is_marker, came = self.held, self._marked, self._is_marker, self._came
        for push in pushes:
            found = held.hear(push)
            if found is None:
                continue
            kind, channel, payload = found
            if is_marker(channel):
                marked.clear()
                marked.extend(one for one in _marks(payload) if held.hears(one.kind, one.channel))
            else:
                mark = marked.popleft() if marked and marked[0].channel == channel else None
                came(kind, channel, payload, mark)


def verb_of(kind: int) -> bytes:
    """Return the command that publishes to a name of this kind."""
    return b"SPUBLISH" if kind == SHARDS.index else b"PUBLISH"


def transaction(marker: bytes, there: Sequence[Envelope], batch: Sequence[Envelope]) -> list[list[bytes]]:
    """Publishes `batch` behind its marker; `there` are the envelopes that the marker has."""
    requests: list[list[bytes]] = [[b"MULTI"], [b"SPUBLISH", marker, envelope.pack(there)]]
    for mark, message in zip(there, batch, strict=True):
        requests.append([verb_of(message.kind), mark.channel, message.payload])
    requests.append([b"EXEC"])
    return requests


def _marks(marker: bytes) -> list[Envelope]:
    try:
        return list(envelope.unpack(marker)) if envelope.kind_of(marker) == envelope.DATA else []
    except BadFrame:
        return []
