"""Law 8: what is lost is said. A dropped part of an outbox becomes one `gap` message for each channel in it.

    gap  <channel>  <number of messages lost>  <time in ms since which they were waiting>

Only messages are dropped. Replies to commands that stand between them are kept: a client that counts its replies must
not get out of step.
"""

from __future__ import annotations

from typing import NamedTuple

from rlite_pubsub.protocol.encoder import encode
from rlite_pubsub.protocol.frames import elements, frames
from rlite_pubsub.protocol.replies import Push

_MESSAGES = {b"message": 1, b"smessage": 1, b"pmessage": 2}
"""Which element of a message is its channel."""


class Summary(NamedTuple):
    """What takes the place of what was dropped."""

    data: bytes
    gaps: int
    messages: int


def summarise(lost: bytes, protocol: int, since: float) -> Summary:
    """What to say instead of `lost`, which is whole frames of that protocol's wire format."""
    kept: list[bytes] = []
    counts: dict[bytes, int] = {}
    messages = 0
    for frame in frames(lost):
        channel, count = _lost_message(frame, protocol)
        if channel is None:
            kept.append(frame)
        else:
            counts[channel] = counts.get(channel, 0) + count
            messages += count
    since_ms = int(since * 1000)
    gaps = [encode(Push([b"gap", channel, count, since_ms]), protocol) for channel, count in counts.items()]
    return Summary(b"".join(kept + gaps), len(gaps), messages)


def _lost_message(frame: bytes, protocol: int) -> tuple[bytes | None, int]:
    """The channel of a message and how many it stands for (an older gap counts what it told of); None for a reply."""
    if not (frame.startswith(b">") or (protocol == 2 and frame.startswith(b"*"))):
        return None, 0
    parts = elements(frame, 4)
    if not parts:
        return None, 0
    word = parts[0]
    if word == b"gap" and len(parts) == 4:
        return parts[1], int(parts[2])
    place = _MESSAGES.get(word)
    return (parts[place], 1) if place is not None and len(parts) > place else (None, 0)
