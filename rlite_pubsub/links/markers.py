"""What comes over one wire of a server that knows nothing of envelopes: each message once, in runs, and with their
envelope where a marker stands before them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

from rlite_pubsub.links import envelope
from rlite_pubsub.links.envelope import BadFrame, Envelope
from rlite_pubsub.links.held import Held
from rlite_pubsub.links.link_wire import pack
from rlite_pubsub.pubsub.kinds import SHARDS

Came = Callable[[int, bytes, list[bytes], "Envelope | None"], None]
"""Takes messages: Kind.index, channel, each as `<length>\\r\\n<payload>`, and what their marker says."""
_MULTI: Final = pack((b"MULTI",))
_EXEC: Final = pack((b"EXEC",))


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
        held, is_marker = self.held, self._is_marker
        at: tuple[int, bytes] | None = None
        mark: Envelope | None = None
        tails: list[bytes] = []
        for push in pushes:
            found = held.hear(push)
            if found is None:
                continue
            kind, channel, payload = found
            if is_marker(channel):
                self._end(at, tails, mark)
                at = mark = None
                self._marked.clear()
                self._marked.extend(one for one in _marks(payload) if held.hears(one.kind, one.channel))
                continue
            if at is None or channel != at[1] or kind != at[0] or (mark is not None and len(tails) == mark.length):
                self._end(at, tails, mark)
                at, tails = (kind, channel), []
                mark = self._mark_of(kind, channel)
            tails.append(b"%d\r\n%b" % (len(payload), payload))
        self._end(at, tails, mark)

    def _mark_of(self, kind: int, channel: bytes) -> Envelope | None:
        marked = self._marked
        return marked.popleft() if marked and marked[0].channel == channel and marked[0].kind == kind else None

    def _end(self, at: tuple[int, bytes] | None, tails: list[bytes], mark: Envelope | None) -> None:
        """Hand a run on. Those that its marker says beyond it are still to come."""
        if at is None:
            return
        count = len(tails)
        if mark is not None and count < mark.length:
            self._marked.appendleft(mark._replace(number=mark.number + count, length=mark.length - count))
        self._came(*at, tails, mark)


def verb_of(kind: int) -> bytes:
    """Return the command that publishes to a name of this kind."""
    return b"SPUBLISH" if kind == SHARDS.index else b"PUBLISH"


def transaction(marker: bytes, batch: Sequence[Envelope]) -> tuple[bytes, int]:
    """Return requests that publish these runs behind their marker, as they are sent, and how many replies they get."""
    marks = envelope.pack([messages._replace(run=b"") for messages in batch])
    parts = [_MULTI, pack((b"SPUBLISH", marker, marks))]
    count = 0
    for messages in batch:
        verb, channel, tails = verb_of(messages.kind), messages.channel, messages.tails
        count += len(tails)
        head = b"*3\r\n$%d\r\n%b\r\n$%d\r\n%b\r\n$" % (len(verb), verb, len(channel), channel)
        parts += (head, (b"\r\n" + head).join(tails), b"\r\n")
    parts.append(_EXEC)
    return b"".join(parts), count + 3


def _marks(marker: bytes) -> list[Envelope]:
    try:
        return list(envelope.unpack(marker)) if envelope.kind_of(marker) == envelope.DATA else []
    except BadFrame:
        return []
