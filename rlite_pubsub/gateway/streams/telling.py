"""What streams of channels say of what was published: as events, and for all who were handed the same bytes at once.

A run of messages is encoded once for all of a server's sessions (pubsub/route.py), and so it is told once.
"""

from __future__ import annotations

import json
from base64 import b64encode

from rlite_pubsub.gateway.events import event
from rlite_pubsub.gateway.http import sse
from rlite_pubsub.protocol.frames import elements, frames
from rlite_pubsub.pubsub.kinds import CHANNELS, PATTERNS

KEPT_BYTES = 1 << 20
"""Of what is remembered: those who are handed the same bytes take them within a few rounds of the loop."""
_LOSS = b"gap"


class Telling:
    """One server's."""

    def __init__(self) -> None:
        self._told: dict[tuple[bytes, bool], bytes] = {}
        self._kept_bytes = 0

    def events(self, part: bytes, *, is_binary: bool) -> bytes:
        """Whole messages, as a session is handed them, as events. With `is_binary` their payloads are base64."""
        key = part, is_binary
        told = self._told.get(key)
        if told is None:
            told = b"".join([_told(frame, is_binary) for frame in frames(part)])
            size = len(part) + len(told)
            if self._kept_bytes + size > KEPT_BYTES:
                self._told.clear()
                self._kept_bytes = 0
            if size <= KEPT_BYTES:
                self._told[key] = told
                self._kept_bytes += size
        return told


def _told(frame: bytes, is_binary: bool) -> bytes:
    """One message as an event; nothing of what else a session is told."""
    words = elements(frame, 4)
    if words[0] == CHANNELS.message:
        return sse.event(b"", b"", b64encode(words[2]) if is_binary else event.as_text(words[2]))
    if words[0] == PATTERNS.message:
        data = b64encode(words[3]).decode() if is_binary else event.value_of(words[3])
        about = {"pattern": event.text_of(words[1]), "channel": event.text_of(words[2]), "data": data}
        return sse.event(b"", b"", json.dumps(about, ensure_ascii=False).encode())
    if words[0] == _LOSS:
        about = {"reason": "slow", "channel": event.text_of(words[1]), "lost": int(words[2]), "sinceMs": int(words[3])}
        return sse.gap(about)
    return b""
