"""Keeps one server's card in a directory, in a thread of its own: the server's loop waits for no network.

The topics are read from the store, a few keys at a time (law 10), and again only when something was committed.
"""

from __future__ import annotations

import logging
import threading
from functools import partial
from typing import TYPE_CHECKING

from rlite_pubsub.discovery import directory
from rlite_pubsub.discovery.card import ServerCard
from rlite_pubsub.storage.errors import StoreError
from rlite_pubsub.storage.keys import key_records

if TYPE_CHECKING:
    from rlite_pubsub.storage.environment import Txn
    from rlite_pubsub.storage.store import Store

log = logging.getLogger("rlite_pubsub")

MAX_TOPICS = 10_000
"""Named in a card; the others are counted."""
_AT_ONCE = 500
_GRACE_SECONDS = 2.0
"""A server that stops waits no longer than this for its directory, which may be itself."""


class Registrar:
    """Of one server."""

    def __init__(self, url: str, card: ServerCard, store: Store) -> None:
        """Raises ValueError where this is no URL."""
        import redis

        self._shown_url = directory.without_user(url)
        self._card = card
        self._store = store
        self._client = directory.client_of(url)
        self._lost = redis.RedisError, OSError
        self._over = threading.Event()
        self._is_there: bool | None = None  # if known
        self._commit = -1  # at which the topics were listed
        self._names: list[str] = []
        self._thread = threading.Thread(target=self._run, name="rlite-pubsub-register", daemon=True)
        self._thread.start()

    def tell(self, card: ServerCard) -> None:
        """This is what the server is by now, but for its topics; the next time it is said."""
        self._card = card

    def stop(self) -> None:
        """The server ends: it is taken out of the directory, if that is a matter of seconds."""
        self._over.set()
        self._thread.join(_GRACE_SECONDS)

    def _run(self) -> None:
        while True:
            try:
                directory.put(self._client, self._with_topics())
            except StoreError as failure:
                self._note(f"its topics can't be read: {failure}")
            except self._lost as failure:
                self._note(f"{failure}")
            else:
                self._note("")
            if self._over.wait(directory.EVERY_SECONDS):
                break
        try:
            directory.remove(self._client, self._card)
        except self._lost as failure:
            log.warning("Can't leave the directory %s, which will forget this server: %s", self._shown_url, failure)
        finally:
            self._client.close()

    def _note(self, failure: str) -> None:
        """Said once, when it changes."""
        is_there = not failure
        if is_there != self._is_there:
            self._is_there = is_there
            if is_there:
                log.info("Registered in the directory %s", self._shown_url)
            else:
                log.warning("Can't register in the directory %s, and will try again: %s", self._shown_url, failure)

    def _with_topics(self) -> ServerCard:
        commit = self._store.data.last_commit()
        if commit != self._commit:
            self._names = sorted(_topic_names(self._store))
            self._commit = commit
        return self._card.with_topics(tuple(self._names[:MAX_TOPICS]), max(0, len(self._names) - MAX_TOPICS))


def _topic_names(store: Store) -> list[str]:
    """Return the topics of database 0. Raises StoreError."""
    names: list[str] = []
    digest: bytes | None = b""
    while digest is not None:
        more, digest = store.data.read(partial(_some_names, digest))
        names += more
    return names


def _some_names(digest: bytes, txn: Txn) -> tuple[list[str], bytes | None]:
    """Return the topics among the next keys from this digest on, and where to go on; None at the end."""
    space = key_records.space(txn, 0).number
    names: list[str] = []
    for count, (at, type_, _, name) in enumerate(key_records.walk(txn, space, digest)):
        if count == _AT_ONCE:
            return names, at
        if type_ == key_records.TOPIC:
            names.append(name.decode(errors="backslashreplace"))
    return names, None
