"""One client connection as delivery sees it: the names that it holds and what is still to be written to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from mypy_extensions import mypyc_attr

from rlite_pubsub.pubsub.kinds import CHANNELS, PATTERNS, SHARDS, Kind
from rlite_pubsub.pubsub.outbox import Outbox
from rlite_pubsub.storage.agenda import OUTBOXES

if TYPE_CHECKING:
    from rlite_pubsub.pubsub.hub import Hub
    from rlite_pubsub.storage.names.durables import Durable

Names = dict[bytes, None]
"""An ordered set of names."""

_NO_NAMES: Final[Names] = {}


class DurableFeed(Protocol):
    """The feed that gives a session the messages of its durable subscriber's mailbox."""

    durable: Durable
    """Whose mailbox it is."""
    chunk_bytes: int
    """What was said last: with its framing, and as often as it is received."""

    @property
    def unread_bytes(self) -> int:
        """Said, and not handed over, where that can be told."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Session:
    """A receiver of messages. What becomes of what is sent to it is its outbox's."""

    __slots__ = ("__weakref__", "authenticated", "closing", "dirty", "feed", "follows", "hub", "id", "left_in_peace",
                 "names", "outbox", "protocol", "said")  # fmt: skip

    def __init__(self, id: int, hub: Hub, outbox: Outbox | None = None) -> None:
        """Without an outbox of its own it takes what is sent by itself: `flush`."""
        self.id = id
        self.hub = hub
        self.protocol = 2
        self.outbox = outbox if outbox is not None else Outbox()
        self.said = self.outbox.said  # this turn
        self.closing = False  # no command is executed any more; closed once the outbox is empty
        self.authenticated = True  # has logged in, or nobody needs to
        self.dirty = False  # stands in hub.dirty
        self.left_in_peace = False  # its peer wants no more, and says that it is done with what it was sent
        self.feed: DurableFeed | None = None  # of the durable subscriber that it is attached to
        self.follows: dict[tuple[int, bytes], object] | None = None  # its places in topics, by (database, name)
        self.names: list[Names] = [_NO_NAMES, _NO_NAMES, _NO_NAMES]  # by Kind.index

    def begin_feed(self, feed: DurableFeed) -> None:
        """Attach it to a durable subscriber, whose messages it is given; return its names, to be filled in."""
        self.feed = feed
        self.left_in_peace = False
        self.forget_names()

    def end_feed(self) -> None:
        """Detach it."""
        self.feed = None
        self.forget_names()

    def forget_names(self) -> None:
        """Forget its names, with room of its own for new ones."""
        self.names = [{}, {}, {}]

    def speak(self, protocol: int) -> None:
        """Change the version of the protocol: what was published before goes out in the old one."""
        if protocol != self.protocol:
            self.hub.protocol_changed(self)
            self.protocol = protocol

    def leave_in_peace(self) -> None:
        """Note that its peer wants no more, and is done with what it was sent."""
        self.left_in_peace = True

    @property
    def called(self) -> bytes:
        """The name that its client has given itself."""
        return b""

    @property
    def name_count(self) -> int:
        """Channels and patterns: the number that SUBSCRIBE and PSUBSCRIBE report."""
        return len(self.names[CHANNELS.index]) + len(self.names[PATTERNS.index])

    @property
    def shard_count(self) -> int:
        """Sharded channels: the number that SSUBSCRIBE reports."""
        return len(self.names[SHARDS.index])

    def count_of(self, kind: Kind) -> int:
        """Return the number that a confirmation of this kind reports."""
        return self.shard_count if kind is SHARDS else self.name_count

    @property
    def holds_names(self) -> bool:
        """True if any message may come for this session."""
        names = self.names
        return bool(names[0] or names[1] or names[2] or self.follows)

    def send(self, data: bytes) -> None:
        """Put bytes behind all that was said to this session before, messages of an open run included."""
        hub = self.hub
        if hub.open is not None and self.holds_names:
            hub.close_run()
        self.said.append(data)
        if not self.dirty:
            self.dirty = True
            hub.dirty.append(self)
            hub.agenda.due |= OUTBOXES

    def flush_soon(self) -> None:
        """Flush it at the turn's end, or close it then. (What each request passes does the same in place: `send`,
        engine/dispatch.py, server/connection.py, Hub.close_run.)"""
        if not self.dirty:
            self.dirty = True
            self.hub.dirty.append(self)
            self.hub.agenda.due |= OUTBOXES

    @property
    def takes_more(self) -> bool:
        """True if its peer has taken everything so far, and is still there."""
        return not self.said

    def unacknowledged_bytes(self) -> int:
        """Return how many bytes sent to it may not have arrived at its peer."""
        return sum(map(len, self.said))

    @property
    def reads_are_known(self) -> bool:
        """True if the last `unacknowledged_bytes` also counted what its peer has not read."""
        return True

    @property
    def was_cut(self) -> bool:
        """True if its connection was broken off, so that its peer may not have read what had arrived there."""
        return False

    def let_go(self) -> None:
        """Release it after its end: nobody waits any more to see whether it was cut."""

    @property
    def address(self) -> str:
        """The peer's `ip:port`, or the socket's path."""
        return ""

    # -- what its outbox tells it

    def flush(self) -> None:
        """Take what was said. Called once a turn, after the commit, where the outbox leaves it to the session."""
        raise NotImplementedError

    def rouse(self) -> None:
        """Note that there is something to take."""

    def stalled(self) -> None:
        """Note that its peer has not taken everything."""

    def drained(self) -> None:
        """Note that its peer takes again."""

    def cut(self) -> None:
        """Note that its connection has broken."""
        self.close_now()

    def cut_off(self) -> None:
        """Cut it off: its process has not read, and an unknown number of messages of its names is lost."""
        self.close_now()

    # -- its end

    def close_now(self) -> None:
        """Close without waiting for the peer to read."""
        raise NotImplementedError

    def abort(self) -> None:
        """Close without another word, because what was promised to it cannot be kept."""
        raise NotImplementedError
