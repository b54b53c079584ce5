"""Sessions that follow topics: what is there already, then what comes, in order.

Law 6. replay then live without a gap or a duplicate: a follower has an offset, the id of the last entry that it was
given, and nothing else. What follows it in the log is read after the commit and said, whether it is a week old or a
moment. Being live is being at the end.
Law 7. publishers never wait: a follower whose socket is full is not given more; once it has drained it goes on from its
offset.
Law 8. what is lost is said: where retention has passed a follower's offset, it learns where it continues and how
many entries it has missed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeAlias

from rlite_pubsub.keyspace.topic.cold_shelf import ColdMiss, ColdUnreadable
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.protocol.encoder import bulk, encode
from rlite_pubsub.protocol.replies import Push
from rlite_pubsub.storage.agenda import FOLLOWED, Agenda
from rlite_pubsub.storage.topics import entry_ids
from rlite_pubsub.storage.topics.entry_ids import Id

if TYPE_CHECKING:
    from rlite_pubsub.keyspace.keyspace import Keyspace

log = logging.getLogger("rlite_pubsub")

Key: TypeAlias = tuple[int, bytes]
"""(database, name)"""

READ_BYTES = 256 * 1024
"""Given to a follower in one turn: those who only write wait for no replay."""

_ENTRY_HEAD_BYTES = len(b"*2\r\n")


class Follower(Protocol):
    """What following asks of a session."""

    protocol: int

    follows: dict[Key, object] | None
    """Its places in topics, by these."""

    @property
    def takes_more(self) -> bool:
        """True if its socket takes more."""

    def send(self, part: bytes) -> None:
        """Say this."""


class Follow:
    """One session's place in one topic."""

    __slots__ = ("after", "key", "number", "ordinal", "session")

    def __init__(self, session: Follower, key: Key, after: Id) -> None:
        self.session = session
        self.key = key
        self.after = after
        self.number = 0  # the topic's, since there is one: another topic of the name starts over
        self.ordinal = 0  # at least this many entries that ever were in the topic are not after `after`

    def place(self, topic: Topic) -> int:
        """See that its offset is one of this topic; how many entries it has missed that were before it."""
        lost = 0
        if self.number != topic.number:
            if self.number:
                self.after, self.ordinal = entry_ids.MIN, topic.trimmed
            self.number = topic.number
            if topic.trimmed_id >= self.after:
                self.ordinal = topic.trimmed  # what is missing was told when it began
        elif topic.trimmed_id > self.after:
            lost = max(0, topic.trimmed - self.ordinal)
            self.ordinal = topic.trimmed
            self.after = topic.trimmed_id
        if self.after >= topic.last_id:
            self.ordinal = topic.trimmed + topic.length
        return lost

    def move(self, topic: Topic, after: Id, *, is_at_end: bool) -> None:
        """It was given all up to this one."""
        self.after = after
        self.ordinal = topic.trimmed + topic.length if is_at_end else max(self.ordinal, topic.trimmed)


class Followers:
    """All of one process."""

    def __init__(
        self,
        begin: Callable[[Key], None],
        end: Callable[[Key], None],
        again: Callable[[], None],
        agenda: Agenda | None = None,
    ) -> None:
        """`begin` and `end`: somebody follows a key, nobody does any more. `again`: a turn is wanted soon."""
        self._agenda = agenda or Agenda()
        self._begin = begin
        self._end = end
        self._again = again
        self._follows: dict[Key, dict[Follow, None]] = {}
        self._listeners: dict[Key, dict[Callable[[], None], None]] = {}
        self._due: dict[Key, None] = {}
        self._stalled: set[Follower] = set()  # those who did not take more when there was more
        self._unreadable: set[Key] = set()  # somebody's next entry can't be read just now
        self.lost = 0  # entries that followers were told to have lost
        self._on_loss: Callable[[Key, int], None] = _nobody_minds

    def tell_losses(self, told: Callable[[Key, int], None]) -> None:
        """Have `told` called with the key and the number of entries whenever a follower has lost some."""
        self._on_loss = told

    @property
    def is_due(self) -> bool:
        """True if there may be something for a follower."""
        return bool(self._due)

    def follow(self, session: Follower, key: Key, after: Id, topic: Topic | None) -> Follow:
        """Give a session all that comes after this id. What it followed of this topic before ends."""
        self.leave(session, key)
        follow = Follow(session, key, after)
        if topic is not None:
            self._place(follow, topic)
        if key not in self._follows:
            self._follows[key] = {}
            if key not in self._listeners:
                self._begin(key)
        self._follows[key][follow] = None
        if session.follows is None:
            session.follows = {}
        session.follows[key] = follow
        self._note(key)
        return follow

    def leave(self, session: Follower, key: Key) -> bool:
        """Stop following this one; False if the session did not follow it."""
        follow = session.follows.pop(key, None) if session.follows else None
        if follow is None:
            return False
        assert isinstance(follow, Follow)
        there = self._follows[key]
        del there[follow]
        if not there:
            del self._follows[key]
            if key not in self._listeners:
                self._due.pop(key, None)
                self._unreadable.discard(key)
                self._end(key)
        return True

    def end_where(self, is_meant: Callable[[bytes], bool]) -> None:
        """Nobody follows these topics here any more; sessions are told."""
        for key in [key for key in self._follows if is_meant(key[1])]:
            for follow in list(self._follows[key]):
                session = follow.session
                self.leave(session, key)
                ended = Push([b"topic-unsubscribe", key[1], len(session.follows or ())])
                session.send(encode(ended, session.protocol))

    def listen(self, key: Key, listener: Callable[[], None]) -> None:
        """Have `listener` called whenever this key has changed: behind the commit, with no transaction open."""
        if key not in self._listeners:
            self._listeners[key] = {}
            if key not in self._follows:
                self._begin(key)
        self._listeners[key][listener] = None

    def unlisten(self, key: Key, listener: Callable[[], None]) -> None:
        """Stop telling this one."""
        there = self._listeners[key]
        del there[listener]
        if not there:
            del self._listeners[key]
            if key not in self._follows:
                self._due.pop(key, None)
                self._unreadable.discard(key)
                self._end(key)

    def forget(self, session: Follower) -> None:
        """Forget a session that is gone."""
        self._stalled.discard(session)
        for key in list(session.follows or ()):
            self.leave(session, key)

    def note(self, key: Key) -> None:
        """Note that this key has changed."""
        if key in self._follows or key in self._listeners:
            self._note(key)

    def _note(self, key: Key) -> None:
        self._due[key] = None
        self._agenda.due |= FOLLOWED

    def drained(self, session: Follower) -> None:
        """It takes more again."""
        if session in self._stalled:
            self._stalled.discard(session)
            for key in session.follows or ():
                self._note(key)
            self._again()

    def cron(self) -> None:
        """Try again what could not be read."""
        if self._unreadable:
            for key in self._unreadable:
                self.note(key)
            self._again()

    def pump(self, keyspace: Keyspace) -> None:
        """Say what has come: after the turn's commit, before its flush."""
        due, self._due = self._due, {}
        for key in due:
            for listener in self._listeners.get(key, ()):
                listener()
            if key in self._follows and self._pump(key, keyspace):
                self._due[key] = None
        if self._due:
            self._agenda.later |= FOLLOWED
            self._again()

    def _pump(self, key: Key, keyspace: Keyspace) -> bool:
        """True if there is more for somebody who takes more."""
        topic = keyspace.find(*key)
        if not isinstance(topic, Topic):
            return False
        cold = keyspace.cold.shelf
        if cold is None or not topic.has_cold:
            return self._give_all(topic, self._offsets(key, topic))
        try:
            with cold.waiting():
                return self._give_all(topic, self._offsets(key, topic))
        except ColdMiss as miss:
            self._fetch(key, miss)
        except ColdUnreadable as failure:
            self._note_unreadable(key, failure)
        return False

    def _offsets(self, key: Key, topic: Topic) -> dict[Id, list[Follow]]:
        """Return the followers that take more, by what they have had."""
        offsets: dict[Id, list[Follow]] = {}
        for follow in self._follows.get(key, ()):
            if not follow.session.takes_more:
                self._stalled.add(follow.session)
                continue
            self._place(follow, topic)
            if follow.after < topic.last_id:
                offsets.setdefault(follow.after, []).append(follow)
        return offsets

    def _give_all(self, topic: Topic, offsets: dict[Id, list[Follow]]) -> bool:
        """True if there is more for somebody. Who needs what is not here keeps nobody else waiting."""
        is_more = is_unreadable = False
        key = topic.database, topic.name
        for after, follows in offsets.items():
            try:
                is_more |= self._give(topic, after, follows)
            except ColdMiss as miss:
                self._fetch(key, miss)
            except ColdUnreadable as failure:
                is_unreadable = True
                self._note_unreadable(key, failure)
        if not is_unreadable:
            self._unreadable.discard(key)
        return is_more

    def _note_unreadable(self, key: Key, failure: ColdUnreadable) -> None:
        if key not in self._unreadable:
            self._unreadable.add(key)
            log.warning("%s is not followed on, but tried again: %s", key[1].decode(errors="backslashreplace"), failure)

    def _fetch(self, key: Key, miss: ColdMiss) -> None:
        """Go on when it is here."""

        def done() -> None:
            unpin()
            self.note(key)
            self._again()

        unpin = miss.shelf.fetch(miss, done)

    def _place(self, follow: Follow, topic: Topic) -> None:
        """See that its offset is one of this topic, and tell of a gap before it."""
        lost = follow.place(topic)
        if lost:
            self.lost += lost
            self._on_loss(follow.key, lost)
            gap = Push([b"topic-gap", follow.key[1], entry_ids.text(topic.first_id), lost])
            follow.session.send(encode(gap, follow.session.protocol))

    def _give(self, topic: Topic, after: Id, follows: list[Follow]) -> bool:
        """The same entries to all who stand at the same offset. True if there is more."""
        start = entry_ids.after(after)
        assert start is not None
        entries: list[bytes] = []
        size = 0
        last = after
        is_all = True
        try:
            for part in topic.between(start):
                entries += part.chunk.entries(part.start, part.stop)
                size += sum(map(len, entries[-part.count :]))
                last = entry_ids.unpack(part.ids, -entry_ids.BYTES)
                if size >= READ_BYTES:
                    break
        except (ColdMiss, ColdUnreadable):
            if not entries:
                raise
            is_all = False  # these first
        is_at_end = is_all and (last >= topic.last_id or not entries)
        if not entries:
            last = topic.last_id  # the rest was deleted
        bodies = [entry[_ENTRY_HEAD_BYTES:] for entry in entries]
        frames: dict[int, bytes] = {}
        for follow in follows:
            session = follow.session
            frame = frames.get(session.protocol)
            if frame is None:
                frame = frames[session.protocol] = _frames(topic.name, bodies, session.protocol)
            if frame:
                session.send(frame)
            follow.move(topic, last, is_at_end=is_at_end)
        return not is_at_end


def _nobody_minds(key: Key, lost: int) -> None:
    """Do nothing."""


def _frames(name: bytes, bodies: list[bytes], protocol: int) -> bytes:
    """`topic-message name id fields` for each."""
    head = b"%b4\r\n$13\r\ntopic-message\r\n%b" % (b">" if protocol == 3 else b"*", bulk(name))
    return head.join([b"", *bodies])
