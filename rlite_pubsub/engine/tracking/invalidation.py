"""CLIENT TRACKING: what sessions that track keys are told when keys change.

A session that does not broadcast is notified once for each key that it has read; then it must read it again to be
notified again. One that broadcasts is notified of all keys with its prefixes, at the turn's end. Names are sent without
their database.

The session whose command changes a key is notified last, when its command (or its whole transaction) has been answered:
a push must not stand between the elements of a reply. CLIENT REPLY OFF does not silence these messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Final, TypeAlias

from rlite_pubsub.engine.key_places import keys_of
from rlite_pubsub.protocol.encoder import encode
from rlite_pubsub.protocol.replies import Encoded, Push, Reply
from rlite_pubsub.storage.agenda import CHANGED_KEYS
from rlite_pubsub.storage.keys.key_records import transaction_of

if TYPE_CHECKING:
    from rlite_pubsub.engine.client import Client
    from rlite_pubsub.engine.settings.settings import Settings
    from rlite_pubsub.engine.table import Command
    from rlite_pubsub.engine.tracking.announcing import Announcing
    from rlite_pubsub.engine.tracking.notifications import Notifications
    from rlite_pubsub.engine.tracking.tracking import Tracking
    from rlite_pubsub.keyspace.keyspace import Keyspace
    from rlite_pubsub.storage.agenda import Agenda


# -- Tracked keys that other processes may have changed, when nobody knows which (hearing.py): compared by version, ten
# times a second, for a few milliseconds. A version is noted when a key is read. Keys are compared one after the other,
# as time allows; so a reader may hear of a change a little late, but never misses it.

_BATCH: Final = 50


class ForeignChanges:
    """What is known of the keys that the sessions of one engine have read."""

    def __init__(self, changed: Callable[[bytes], None]) -> None:
        self._changed = changed  # called with each key that has changed
        self._versions: dict[bytes, dict[int, int | None]] = {}  # name -> database -> version (None: not yet known)
        self._under_way: Iterator[bytes] | None = None

    def note(self, keyspace: Keyspace, database: int, name: bytes) -> None:
        """Note that a session has read the key as it is now."""
        versions = self._versions.setdefault(name, {})
        if database not in versions:
            versions[database] = keyspace.version(database, name)

    def forget(self, name: bytes) -> None:
        """Forget a key: nobody needs to hear of it any more."""
        self._versions.pop(name, None)

    def forget_all(self) -> None:
        self._versions.clear()

    def swapped(self, first: int, second: int) -> None:
        """Swap two databases: as in Redis, that does not count as a change of keys."""
        for versions in self._versions.values():
            for database in (first, second):
                if database in versions:
                    versions[database] = None

    def has_seen(self, name: bytes, transaction: int) -> bool:
        """Return whether the key was last read at or after this transaction."""
        versions = self._versions.get(name)
        return versions is not None and all([version is not None and transaction_of(version) >= transaction
                                             for version in versions.values()])  # fmt: skip

    def suspect_all(self) -> None:
        """Begin to compare all keys: any of them may have changed."""
        self._under_way = iter(list(self._versions))

    def look(self, keyspace: Keyspace, deadline: float) -> None:
        """Go on comparing. Raises StoreError."""
        if self._under_way is None:
            return
        while True:
            for _ in range(_BATCH):
                name = next(self._under_way, None)
                if name is None:
                    self._under_way = None
                    return
                self._compare(keyspace, name)
            if perf_counter() > deadline:
                return

    def _compare(self, keyspace: Keyspace, name: bytes) -> None:
        versions = self._versions.get(name, {})
        for database, version in versions.items():
            now = keyspace.version(database, name)
            if version is None:
                versions[database] = now
            elif now != version:
                self._changed(name)
                return


_CHANNEL: Final = b"__redis__:invalidate"
"""The channel on which a RESP2 session to which tracking is redirected is notified."""
Outer: TypeAlias = "tuple[Client | None, list[tuple[Tracking, bytes | None]]]"
"""The session whose command is under way, and what to tell it once it has been answered."""
_ROUNDS: Final = 100
"""How many surplus keys are forgotten with one command."""


class TrackedKeys:
    """The keys that the sessions of one engine track."""

    def __init__(
        self,
        settings: Settings,
        keyspace: Keyspace,
        sessions: Mapping[int, Client],
        notifications: Notifications,
        agenda: Agenda,
        announcing: Announcing | None = None,
    ) -> None:
        """`announcing` tells other processes what this one changes."""
        self._settings = settings
        self._keyspace = keyspace
        self._sessions = sessions
        self._notifications = notifications
        self._agenda = agenda
        self.executing: Client | None = None  # whose command is under way
        self.elsewhere = ForeignChanges(self._tell_readers)
        self.readers: dict[bytes, set[int]] = {}  # key -> ids of sessions that have read it
        self._changed: dict[bytes, dict[bytes, Client | None]] = {}  # prefix -> key -> who changed it last
        self.pending: list[tuple[Tracking, bytes | None]] = []  # for the session whose command is under way
        self.listeners: dict[bytes, dict[Client, None]] = {}  # prefix -> sessions that broadcast
        self._lengths: dict[int, int] = {}  # length -> how many of these prefixes are so long
        self.sessions: dict[Client, None] = {}  # all that track
        self._announcing = announcing

    # -- who tracks

    def begin(self, session: Client, tracking: Tracking) -> None:
        """Let a session track keys in this way; if it broadcasts, those with its prefixes."""
        self._keyspace.news.heed(True)
        session.tracking = tracking
        self.sessions[session] = None
        for prefix in tracking.prefixes if tracking.broadcast else ():
            listeners = self.listeners.get(prefix)
            if listeners is None:
                listeners = self.listeners[prefix] = {}
                self._lengths[len(prefix)] = self._lengths.get(len(prefix), 0) + 1
            listeners[session] = None

    def forget(self, session: Client) -> None:
        """Stop tracking for a session. The keys it has read are forgotten when they change."""
        tracking = session.tracking
        if tracking is None:
            return
        session.tracking = None
        self.sessions.pop(session, None)
        for prefix in tracking.prefixes:
            listeners = self.listeners[prefix]
            del listeners[session]
            if not listeners:
                del self.listeners[prefix]
                self._changed.pop(prefix, None)
                self._lengths[len(prefix)] -= 1
                if not self._lengths[len(prefix)]:
                    del self._lengths[len(prefix)]

    def remember(self, session: Client, command: Command, args: list[bytes]) -> None:
        """Note that the session has read these keys."""
        tracking = session.tracking
        assert tracking is not None
        if (tracking.opt_in and not tracking.caching) or (tracking.opt_out and tracking.caching):
            return
        keyspace = self._keyspace
        keyspace.news.heed(True)
        for key, _ in keys_of(command, args) or ():
            self.readers.setdefault(key, set()).add(session.id)
            if keyspace.turn.failure is None:
                self.elsewhere.note(keyspace, session.db, key)

    # -- what has changed

    def changed(self, key: bytes, by: Client | None) -> None:
        """Note that a session has changed a key, or that it has expired."""
        if self.listeners:
            self._note_change(key, by)
        if key in self.readers:
            self._tell_readers(key)

    def changed_elsewhere(self, key: bytes, transaction: int) -> None:
        """Note that another process has changed a key, in this transaction."""
        if self.listeners:
            self._note_change(key, None)
        if key in self.readers and not self.elsewhere.has_seen(key, transaction):
            self._tell_readers(key)

    def _note_change(self, key: bytes, by: Client | None) -> None:
        """Note a change for those who broadcast: there may be thousands of prefixes, but not of lengths."""
        for length in self._lengths:
            prefix = key[:length]
            if prefix in self.listeners and len(prefix) == length:
                self._changed.setdefault(prefix, {})[key] = by
                self._agenda.due |= CHANGED_KEYS

    def suspect_all(self) -> None:
        """Act on unknown changes by others: any key may have changed."""
        self.elsewhere.suspect_all()
        for session in list(self.sessions):
            tracking = session.tracking
            if tracking is not None and tracking.broadcast:
                self.tell(session, tracking, None)

    def _tell_readers(self, key: bytes) -> None:
        self.elsewhere.forget(key)
        for number in sorted(self.readers.pop(key)):
            self._tell_reader(number, key)

    def _tell_reader(self, number: int, key: bytes) -> None:
        session = self._sessions.get(number)
        tracking = session.tracking if session is not None else None
        if session is None or tracking is None or tracking.broadcast:
            return
        if session is self.executing:
            if not tracking.no_loop:
                self.pending.append((tracking, key))
        else:
            self._notifications.in_order(partial(self.tell, session, tracking, [key]))

    def flushed(self) -> None:
        """Act on one of our commands that removed every key: notify all sessions that track any."""
        if self._announcing is not None:
            self._announcing.flushed()
        self.removed_elsewhere()

    def removed_elsewhere(self) -> None:
        """Notify all tracking sessions that every key is gone."""
        for session in self._sessions.values():
            tracking = session.tracking
            if tracking is None:
                continue
            if session is self.executing:
                self.pending.append((tracking, None))
            else:
                self.tell(session, tracking, None)
        self.readers.clear()
        self.elsewhere.forget_all()

    def tell_pending(self, session: Client) -> None:
        """Notify the session whose command has been answered, even if it has switched tracking off meanwhile."""
        pending, self.pending = self.pending, []
        for tracking, key in pending:
            self.tell(session, tracking, None if key is None else [key])

    def begin_for(self, session: Client) -> Outer:
        """Act for this session until `end_for`: a waiting session is served in the middle of another's command."""
        outer = self.executing, self.pending
        self.executing, self.pending = session, []
        return outer

    def end_for(self, session: Client, outer: Outer) -> None:
        """End `begin_for`: the session has been answered."""
        self.tell_pending(session)
        self.executing, self.pending = outer

    def tell(self, session: Client, tracking: Tracking, keys: list[bytes] | None) -> None:
        """Notify one tracking session, or the one it redirects to, or say that the latter is gone. None: all keys."""
        names: Reply = Encoded(encode(None, session.protocol)) if keys is None else keys
        if not tracking.redirect:
            if session.protocol == 3:
                session.send(encode(Push([b"invalidate", names]), 3))
            return
        receiver = self._sessions.get(tracking.redirect)
        if receiver is None:
            tracking.broken_redirect = True
            if session.protocol == 3:
                session.send(encode(Push([b"tracking-redir-broken", tracking.redirect]), 3))
            return
        if receiver.protocol == 3:
            receiver.send(encode(Push([b"invalidate", names]), 3))
        elif receiver.holds_names:
            receiver.send(encode(Push([b"message", _CHANNEL, names]), 2))

    def end_turn(self) -> None:
        """Notify the sessions that broadcast."""
        changed, self._changed = self._changed, {}
        for prefix, keys in sorted(changed.items()):
            for session in self.listeners.get(prefix, ()):
                tracking = session.tracking
                assert tracking is not None
                names = sorted(key for key, by in keys.items() if not (tracking.no_loop and by is session))
                if names:
                    self.tell(session, tracking, names)

    def limit(self) -> None:
        """Forget keys beyond the limit: their readers are told that these have changed."""
        most = self._settings["tracking-table-max-keys"]
        rounds = _ROUNDS
        while most and len(self.readers) > most and rounds:
            rounds -= 1
            self._tell_readers(next(iter(self.readers)))

    # -- counting

    @property
    def is_empty(self) -> bool:
        """True if nobody needs to hear of changes."""
        return not self.readers and not self.listeners

    @property
    def key_count(self) -> int:
        return len(self.readers)

    @property
    def item_count(self) -> int:
        return sum(map(len, self.readers.values()))

    @property
    def prefix_count(self) -> int:
        return len(self.listeners)
