"""Events, and entries of other topics, that are posted: all that the loop has come upon since the last turn's end are
appended together.

Law 5: a post is answered once the turn's commit has succeeded and, under `appendfsync always`, is on the disk; where
either fails, it is answered with that. Within a turn each is behind those that were posted before it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.gateway.events import event
from rlite_pubsub.keyspace.topic.append import encode_entry, next_id
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.storage.agenda import POSTED
from rlite_pubsub.storage.errors import StoreFull
from rlite_pubsub.storage.topics.entry_ids import Id

if TYPE_CHECKING:
    from rlite_pubsub.engine.engine import Instance
    from rlite_pubsub.keyspace.keyspace import Keyspace

Waiting: TypeAlias = tuple[bytes, tuple[bytes, ...], "asyncio.Future[Id]"]
"""The topic, the fields and values, and who waits for the id."""

ANSWERED = b"stored"
_FULL = "OOM"


class PostRefused(Exception):
    """An event could not be stored; the text says why."""

    is_full = False
    """There is no room."""


class WrongType(PostRefused):
    """The key is no topic."""


class NoRoom(PostRefused):
    """The store is as large as it may become."""

    is_full = True


class Batch(CommandSession):
    """The posts of one turn. What the turn's commit, or the disk, has to say of them comes to its outbox."""

    __slots__ = ("_posts",)

    def __init__(self, instance: Instance, posts: list[tuple[Id, asyncio.Future[Id]]]) -> None:
        super().__init__(instance)
        self._posts = posts

    def flush(self) -> None:
        """Nothing can be taken back any more."""
        answers, self.said[:] = list(self.said), []
        failed = [each for each in answers if each is not ANSWERED]
        for entry_id, post in self._posts:
            if post.done():
                continue
            if failed:
                post.set_exception(_refusal(failed[0].decode(errors="replace").strip("-\r\n")))
            else:
                post.set_result(entry_id)

    def abort(self) -> None:
        """There is no connection to close."""

    def close_now(self) -> None:
        """There is no connection to close."""

    def resume(self) -> None:
        """It never waits."""


class Posting:
    """All posts of one process."""

    def __init__(self, instance: Instance, keyspace: Keyspace, turn_soon: Callable[[], None]) -> None:
        instance.hub.agenda.at(POSTED, self.before_commit)
        self._instance = instance
        self._keyspace = keyspace
        self._turn_soon = turn_soon
        self._waiting: list[Waiting] = []
        self.on_created: Callable[[Topic], None] = _nobody
        self.posted = 0
        self.posted_bytes = 0

    def post(self, topic: bytes, words: tuple[bytes, ...]) -> asyncio.Future[Id]:
        """Store an entry of these fields and values; its id, once it is stored. Raises PostRefused from the future."""
        stored: asyncio.Future[Id] = asyncio.get_running_loop().create_future()
        if not self._waiting:
            self._turn_soon()
        self._instance.hub.agenda.due |= POSTED
        self._waiting.append((topic, words, stored))
        return stored

    def before_commit(self) -> None:
        """The turn ends: put what was posted behind the topic. While clients are paused, or after something has gone
        wrong in this turn, it waits."""
        instance, keyspace = self._instance, self._keyspace
        if not self._waiting:
            return
        if instance.pause.scope is not None:
            instance.hub.agenda.later |= POSTED
            return
        if keyspace.failure is not None:
            instance.hub.agenda.later |= POSTED
            self._turn_soon()
            return
        waiting, self._waiting = self._waiting, []
        try:
            posts = self._append(waiting)
        except Exception as failure:
            failure = keyspace.fail(failure)  # and all else of this turn is refused, too
            for _, _, post in waiting:
                if not post.done():
                    post.set_exception(_told(failure))
            return
        if not posts:
            return
        batch = Batch(instance, posts)
        instance.unacknowledged.append((batch, ANSWERED))
        batch.send(ANSWERED)

    def close(self) -> None:
        """Nothing more is stored."""
        for _, _, post in self._waiting:
            if not post.done():
                post.set_exception(PostRefused("The server is shutting down."))
        self._waiting.clear()

    def _append(self, waiting: list[Waiting]) -> list[tuple[Id, asyncio.Future[Id]]]:
        notifications = self._instance.notifications
        now_ms = self._keyspace.clock_ms()
        posts = []
        tells = notifications.wants("t")
        topics: dict[bytes, Topic | None] = {}
        for name, words, post in waiting:
            try:
                topic = topics[name]
            except KeyError:
                topic = topics[name] = self._topic(name)
            if topic is None:
                if not post.done():
                    post.set_exception(WrongType(f"The key {ascii(name)[1:]} of database 0 is something else."))
                continue
            entry_id = next_id(topic.last_id, now_ms)
            if entry_id is None:
                raise PostRefused("The topic has exhausted the last possible id.")
            topic.append(entry_id, encode_entry(entry_id, words))
            posts.append((entry_id, post))
            self.posted_bytes += sum(map(len, words))
            if tells:
                notifications.tell("t", b"xadd", event.DATABASE, name)
        self.posted += len(posts)
        return posts

    def _topic(self, name: bytes) -> Topic | None:
        """To be appended to; None where the key is something else."""
        keyspace = self._keyspace
        topic = keyspace.for_change(event.DATABASE, name)
        if topic is None:
            topic = keyspace.create_topic(event.DATABASE, name)
            if name == event.TOPIC:
                self.on_created(topic)
        elif not isinstance(topic, Topic):
            return None
        limits = self._instance.node_limits
        if limits != topic.node_limits:
            topic.limit_nodes(limits)
        return topic


def _refusal(error: str) -> PostRefused:
    """What a command would be answered."""
    return NoRoom(error) if error.startswith(_FULL) else PostRefused(error)


def _told(failure: Exception) -> PostRefused:
    if isinstance(failure, PostRefused):
        return failure
    return NoRoom(str(failure)) if isinstance(failure, StoreFull) else PostRefused(str(failure))


def _nobody(topic: Topic) -> None:
    """Nobody wants to know."""
