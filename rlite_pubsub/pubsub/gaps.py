"""Law 8: what is lost is said. Dropped parts of an outbox become one `gap` message for each channel in them.

    gap  <channel>  <number of messages lost>  <time in ms since which they were waiting>

Only messages are dropped. Replies to commands that stand between them are kept: a client that counts its replies must
not get out of step.
"""

from __future__ import annotations

from rlite_pubsub.protocol.encoder import encode
from rlite_pubsub.protocol.frames import elements, frames
from rlite_pubsub.protocol.replies import Push

_MESSAGES = {b"message": 1, b"smessage": 1, b"pmessage": 2}
"""Which element of a message is its channel."""
_GAP_BYTES = 64
"""What a gap message takes beside its channel, at most."""


class Loss:
    """All that one session has lost at one place of its backlog, until it is told."""

    def __init__(self, since: float) -> None:
        self.messages = 0
        self.size_bytes = 0
        """What telling it will take, about."""
        self._since_ms = int(since * 1000)
        self._counts: dict[bytes, int] = {}  # by channel
        self._kept: list[bytes] = []

    @property
    def gaps(self) -> int:
        """How many gap messages will tell it."""
        return len(self._counts)

    def add(self, lost: bytes, protocol: int) -> None:
        """Lose this too: whole frames of that protocol's wire format."""
        for frame in frames(lost):
            channel = _channel(frame, protocol)
            if channel is None:
                self._kept.append(frame)
                self.size_bytes += len(frame)
                continue
            if channel not in self._counts:
                self._counts[channel] = 0
                self.size_bytes += len(channel) + _GAP_BYTES
            self._counts[channel] += 1
            self.messages += 1

    def told(self, protocol: int) -> bytes:
        """What takes the place of what was lost."""
        return b"".join(self._kept) + b"".join(
            [
                encode(Push([b"gap", channel, count, self._since_ms]), protocol)
                for channel, count in self._counts.items()
            ]
        )


def _channel(frame: bytes, protocol: int) -> bytes | None:
    """The channel of a message; None for a reply."""
    if not (frame.startswith(b">") or (protocol == 2 and frame.startswith(b"*"))):
        return None
    parts = elements(frame, 3)
    place = _MESSAGES.get(parts[0]) if parts else None
    return parts[place] if place is not None and len(parts) > place else None
