"""Notes what happens to keys."""

from __future__ import annotations

from rlite_pubsub.keyspace.news import KeyListener


class Listener(KeyListener):
    def __init__(self) -> None:
        self.heard_added: list[bytes] = []
        self.heard_expired: list[tuple[int, bytes]] = []

    def added(self, database: int, name: bytes) -> None:
        self.heard_added.append(name)

    def expired(self, database: int, name: bytes) -> None:
        self.heard_expired.append((database, name))
