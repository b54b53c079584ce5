"""What a stalled session has yet to read: its memory is bounded, the rest waits on disk, and the order is kept.

    oldest                                                                     newest
    head (memory, being written)  |  loss  |  mailbox (disk)  |  tail (memory, not spilled yet)

A session is *stalled* once its peer did not take all, *spilled* once its head has passed the threshold: from then on
new parts gather in the tail, and the spiller moves whole tails to the mailbox. When the head is written the oldest of
the mailbox becomes the head, and when nothing is left the session is live again.

Law 8: what is lost is said. What a limit removes from behind the head is the loss. It is announced there, by one `gap`
message for each channel in it:

    gap  <channel>  <number of messages lost>  <time in ms since which they were waiting>

Only messages are dropped. Replies to commands that stand between them are kept: a client that counts its replies must
not get out of step.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from rlite_pubsub.protocol.encoder import encode
from rlite_pubsub.protocol.frames import elements, frames
from rlite_pubsub.protocol.replies import Push

Part = bytes | memoryview

_MESSAGES: Final = {b"message": 1, b"smessage": 1, b"pmessage": 2}
"""Which element of a message is its channel."""
_GAP_BYTES: Final = 64
"""What a gap message takes beside its channel, at most."""


class Backlog:
    """The backlog of one session. `session_id` names its mailbox."""

    __slots__ = (
        "disk_bytes",
        "disk_framing_bytes",
        "head",
        "head_bytes",
        "loss",
        "session_id",
        "since",
        "_soft_limit_since",
        "tail",
        "tail_bytes",
        "tail_framing_bytes",
    )

    def __init__(self, session_id: int, since: float) -> None:
        self.session_id = session_id
        self.since = since
        self.head: deque[Part] = deque()
        self.head_bytes = 0
        self.loss: Loss | None = None
        self.disk_bytes = 0
        self.disk_framing_bytes = 0  # of disk_bytes, what is not payload of messages
        self.tail: list[bytes] = []
        self.tail_bytes = 0
        self.tail_framing_bytes = 0
        self._soft_limit_since: float | None = None

    @property
    def total_bytes(self) -> int:
        """All that the peer has not taken."""
        return self.disk_bytes + self.memory_bytes

    @property
    def weight_bytes(self) -> int:
        """What counts towards client-output-buffer-limit: memory by the byte, as in Redis; disk by its payload."""
        return self.total_bytes - self.disk_framing_bytes

    @property
    def memory_bytes(self) -> int:
        """The bytes that are not on disk."""
        return self.head_bytes + self.tail_bytes + (self.loss.size_bytes if self.loss is not None else 0)

    def soft_limit_s(self, is_over: bool, now: float) -> float:
        """Return for how long it has been over the soft limit, and note whether it is over it now."""
        if not is_over:
            self._soft_limit_since = None
        elif self._soft_limit_since is None:
            self._soft_limit_since = now
        return 0.0 if self._soft_limit_since is None else now - self._soft_limit_since

    def __bool__(self) -> bool:
        return bool(self.head or self.tail or self.disk_bytes or self.loss is not None)

    def append(self, part: Part, threshold_bytes: int, framing_bytes: int) -> None:
        """Put a part behind all others: to the head while it is short and nothing waits behind it, else to the tail."""
        if not part:
            return  # nothing would ever be written of it, and the head would stand still
        is_behind_head = not self.tail and not self.disk_bytes and self.loss is None
        if is_behind_head and (not self.head or self.head_bytes < threshold_bytes):
            self.head.append(part)
            self.head_bytes += len(part)
            return
        self.tail.append(bytes(part))
        self.tail_bytes += len(part)
        self.tail_framing_bytes += framing_bytes

    def written(self, count: int) -> None:
        """The peer's kernel took `count` bytes of the head."""
        self.head_bytes -= count
        while count:
            part = self.head[0]
            if count < len(part):
                self.head[0] = memoryview(part)[count:]
                return
            count -= len(part)
            self.head.popleft()

    def move_tail(self) -> None:
        """The tail is on disk now."""
        self.disk_bytes += self.tail_bytes
        self.disk_framing_bytes += self.tail_framing_bytes
        self._clear_tail()

    def refill(self, blobs: list[tuple[bytes, int]]) -> None:
        """Move the mailbox's oldest, each (bytes, framing), to the head. None: the tail's turn has come."""
        for blob, framing in blobs:
            self.head.append(blob)
            self.head_bytes += len(blob)
            self.disk_bytes -= len(blob)
            self.disk_framing_bytes -= framing
        if not blobs:
            assert not self.disk_bytes
            self.head.extend(self.tail)
            self.head_bytes += self.tail_bytes
            self._clear_tail()

    def lose_disk(self, blobs: list[tuple[bytes, int]], protocol: int) -> None:
        """Note that these, the mailbox's oldest, are dropped."""
        for blob, framing in blobs:
            self._lose(blob, protocol)
            self.disk_bytes -= len(blob)
            self.disk_framing_bytes -= framing

    def lose_tail(self, protocol: int) -> None:
        """The tail is dropped."""
        self._lose(b"".join(self.tail), protocol)
        self._clear_tail()

    def tell_loss(self, protocol: int) -> Loss:
        """The head is written, and what was dropped behind it is said next. There must be a loss."""
        loss, self.loss = self.loss, None
        assert loss is not None
        data = loss.told(protocol)
        self.head.append(data)
        self.head_bytes += len(data)
        return loss

    def _lose(self, lost: bytes, protocol: int) -> None:
        if self.loss is None:
            self.loss = Loss(self.since)
        self.loss.add(lost, protocol)

    def _clear_tail(self) -> None:
        self.tail = []
        self.tail_bytes = 0
        self.tail_framing_bytes = 0


class Loss:
    """All that one session has lost at one place of its backlog, until it is announced."""

    def __init__(self, since: float) -> None:
        self.messages = 0
        self.size_bytes = 0
        """What telling it will take, about."""
        self._since_ms = int(since * 1000)
        self._counts: dict[bytes, int] = {}  # by channel
        self._kept: list[bytes] = []

    @property
    def gaps(self) -> int:
        """How many gap messages will report it."""
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
        """Return what takes the place of the lost messages."""
        return b"".join(self._kept) + b"".join(
            [
                encode(Push([b"gap", channel, count, self._since_ms]), protocol)
                for channel, count in self._counts.items()
            ]
        )


def _channel(frame: bytes, protocol: int) -> bytes | None:
    """Return the channel of a message; None for a reply."""
    if not (frame.startswith(b">") or (protocol == 2 and frame.startswith(b"*"))):
        return None
    parts = elements(frame, 3)
    place = _MESSAGES.get(parts[0]) if parts else None
    return parts[place] if place is not None and len(parts) > place else None
