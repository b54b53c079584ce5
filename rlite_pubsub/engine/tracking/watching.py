"""WATCH: the sessions whose transactions are spoilt when a key changes.

A change by this process is noticed at once. One by others is noticed at EXEC: a key's version is noted when it is
watched, and compared if anybody else has committed since.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from rlite_pubsub.engine.client import Client
    from rlite_pubsub.keyspace.keyspace import Keyspace

Key: TypeAlias = "tuple[int, bytes]"


class Watching:
    """All watched keys of an engine."""

    def __init__(self) -> None:
        self.watchers: dict[Key, dict[Client, None]] = {}

    def watch(self, session: Client, keyspace: Keyspace, names: list[bytes]) -> None:
        """Let a change of any of these keys, in the session's database, spoil its transaction."""
        watched = session.begin_watching()
        keyspace.news.heed(True)
        for name in names:
            key = session.db, name
            if key not in watched:
                watched[key] = keyspace.stored.commits_of_others, keyspace.version(*key)
                self.watchers.setdefault(key, {})[session] = None

    def unwatch(self, session: Client) -> None:
        """Forget what the session watches."""
        watched, session.watched = session.watched, None
        for key in watched or ():
            watchers = self.watchers[key]
            del watchers[session]
            if not watchers:
                del self.watchers[key]

    def changed(self, database: int, name: bytes) -> None:
        """Spoil the transactions that watch a key: this process has changed it."""
        watchers = self.watchers.get((database, name))
        if watchers is not None:
            for session in list(watchers):
                session.spoil()
                self.unwatch(session)

    def expired(self, database: int, name: bytes) -> None:
        """Treat an expired key as changed for those who watched it while it existed."""
        key = database, name
        for session in list(self.watchers.get(key, ())):
            watched = session.watched
            if watched is not None and watched[key][1]:
                session.spoil()
                self.unwatch(session)

    def check(self, session: Client, keyspace: Keyspace) -> None:
        """Look before EXEC whether a watched key has expired, or another process has changed one."""
        for key, (commits, version) in list((session.watched or {}).items()):
            now = keyspace.version(*key)
            if now != version and (not now or keyspace.stored.commits_of_others != commits):
                session.spoil()

    def flushed(self, keyspace: Keyspace, database: int) -> None:
        """Treat the keys of a database as changed: it is about to be flushed."""
        for key in [key for key in self.watchers if key[0] == database]:
            if keyspace.version(*key):
                self.changed(*key)

    def swapped(self, keyspace: Keyspace, first: int, second: int) -> None:
        """Treat keys of two databases as changed: they are about to change places. A key that is in neither has not
        changed."""
        for key in [key for key in self.watchers if key[0] in (first, second)]:
            if keyspace.version(first, key[1]) or keyspace.version(second, key[1]):
                self.changed(*key)

    def __bool__(self) -> bool:
        return bool(self.watchers)
