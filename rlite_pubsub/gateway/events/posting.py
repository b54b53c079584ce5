"""Events, and entries of other topics, that are posted: XADD for all that the loop has come upon since the last turn's
end, so that they are one commit.

Law 5: a post is answered once the turn's commit has succeeded and, under `appendfsync always`, is on the disk; where
either fails, it is answered with that. Within a turn each is behind those that were posted before it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from rlite_pubsub.gateway.events import event
from rlite_pubsub.keyspace.topic.append_rules import TOO_LARGE
from rlite_pubsub.storage.agenda import POSTED
from rlite_pubsub.storage.topics.entry_ids import Id

if TYPE_CHECKING:
    from rlite_pubsub.engine.waits.pause import Pause
    from rlite_pubsub.gateway.events.segments import EventSegments
    from rlite_pubsub.gateway.session import Client, Deliver, HttpSession
    from rlite_pubsub.keyspace.keyspace import Keyspace
    from rlite_pubsub.storage.agenda import Agenda

_CLOSED = b"-ERR The server has closed the session.\r\n"


class PostedEntry(NamedTuple):
    """One entry, and who waits for its id."""

    topic: bytes
    words: tuple[bytes, ...]
    """Fields and values."""
    client: Client
    stored: asyncio.Future[Id]


class PostRefused(Exception):
    """An event could not be stored; the text says why."""

    status = 503
    """Of the answer."""


class WrongType(PostRefused):
    """The key is no topic."""

    status = 409


class NoRoom(PostRefused):
    """The store is as large as it may become."""

    status = 507


class TooLarge(PostRefused):
    """The topic takes no entry of this size."""

    status = 413


class Posting:
    """All posts of one process."""

    def __init__(
        self,
        session: Callable[[Client, Deliver], HttpSession],
        keyspace: Keyspace,
        pause: Pause,
        segments: EventSegments,
        agenda: Agenda,
        turn_soon: Callable[[], None],
    ) -> None:
        self._session = session
        self._keyspace = keyspace
        self._pause = pause
        self._segments = segments
        self._agenda = agenda
        agenda.at(POSTED, self._append)
        self._turn_soon = turn_soon
        self._waiting: list[PostedEntry] = []
        self.posted = 0
        self.posted_bytes = 0

    def post(self, topic: bytes, words: tuple[bytes, ...], client: Client = None) -> asyncio.Future[Id]:
        """Store an entry of these fields and values; its id, once it is stored. Raises PostRefused from the future."""
        stored: asyncio.Future[Id] = asyncio.get_running_loop().create_future()
        if not self._waiting:
            self._turn_soon()
        self._agenda.due |= POSTED
        self._waiting.append(PostedEntry(topic, words, client, stored))
        return stored

    def _append(self) -> None:
        """The turn ends: put what was posted behind the topics. While clients are paused, or after something has gone
        wrong in this turn, it waits."""
        if not self._waiting:
            return
        if self._pause.scope is not None:
            self._agenda.later |= POSTED
            return
        if self._keyspace.turn.failure is not None:
            self._agenda.later |= POSTED
            self._turn_soon()
            return
        posts, self._waiting = self._takeable(self._waiting), []
        if not posts:
            return
        has_events = bool(self._segments.size_bytes) and any(post.topic == event.TOPIC for post in posts)
        session = self._session(None, lambda replies: self._settle(posts, replies))
        for post in posts:  # one session for all: to make one costs as much as an entry
            session.ask_for(post.client, [b"XADD", post.topic, b"*", *post.words])
        if has_events and self._keyspace.turn.failure is None:
            try:
                self._segments.limit()
            except Exception as failure:  # then none of the turn's posts is stored
                self._keyspace.fail(failure)

    def _takeable(self, posts: list[PostedEntry]) -> list[PostedEntry]:
        """Refuse the events that are larger than all that is kept of events."""
        most = self._segments.most_entry_bytes()
        if not most:
            return posts
        taken = []
        for post in posts:
            size = sum(map(len, post.words))
            if post.topic != event.TOPIC or size <= most:
                taken.append(post)
            elif not post.stored.done():
                limits = "events-segments and events-segment-size"
                text = f"The event has {size} bytes, and by {limits} one may have {most} at most."
                post.stored.set_exception(TooLarge(text))
        return taken

    def _settle(self, posts: list[PostedEntry], replies: list[bytes]) -> None:
        """Settle the posts: nothing can be taken back any more."""
        for post, reply in zip(posts, replies or [_CLOSED] * len(posts), strict=True):
            if reply[:1] == b"-":
                if not post.stored.done():
                    post.stored.set_exception(_refusal(post.topic, reply))
                continue
            self.posted += 1
            self.posted_bytes += sum(map(len, post.words))
            if not post.stored.done():
                ms, _, seq = reply[reply.index(b"\n") + 1 :].partition(b"-")
                post.stored.set_result((int(ms), int(seq)))

    def close(self) -> None:
        """Store nothing more."""
        for post in self._waiting:
            if not post.stored.done():
                post.stored.set_exception(PostRefused("The server is shutting down."))
        self._waiting.clear()


def _refusal(topic: bytes, reply: bytes) -> PostRefused:
    """Return the meaning of XADD's error."""
    text = reply[1:-2].decode(errors="replace")
    if text.startswith("WRONGTYPE"):
        return WrongType(f"The key {ascii(topic)[1:]} of database {event.DATABASE} is something else.")
    if text.startswith(TOO_LARGE.decode()):
        return TooLarge(text)
    return NoRoom(text) if text.startswith("OOM") else PostRefused(text)
