"""Sessions whose request needs what is in the cold store and not here yet: fetched by another thread, then asked again.

Law: nothing that a request does is done twice. A request waits before it has changed anything: one that only reads may
wait anywhere; one that writes reads first what it will need (`rehearse`), and from then on waits no more: what it meets
that is not here after all is read at once. EXEC reads ahead for what is in its queue (`AHEAD`), as things stand before,
and groups where what stands before in the queue will have put them (`Places`); not what an exact XTRIM in the queue
would have them pass over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from rlite_pubsub.engine.waits.waiter import Blocked
from rlite_pubsub.keyspace.topic.cold_shelf import ColdMiss
from rlite_pubsub.storage.topics.entry_ids import Id

if TYPE_CHECKING:
    from rlite_pubsub.engine.client import Client
    from rlite_pubsub.engine.waits.waiter import CallLater
    from rlite_pubsub.keyspace.topic.topic import Topic

FETCHING: Final = Blocked()

Places: TypeAlias = dict[tuple[int, bytes, bytes], Id]
"""By database, key and name: the id behind which a group will go on."""
Ahead: TypeAlias = Callable[[Any, list[bytes], Places], None]
AHEAD: Final[dict[bytes, Ahead]] = {}
"""What EXEC does before it does anything: the reading that these commands will need, and no more."""


def reads_ahead(name: bytes) -> Callable[[Ahead], Ahead]:
    """Declares one."""

    def declared(ahead: Ahead) -> Ahead:
        AHEAD[name] = ahead
        return ahead

    return declared


class ColdWaits:
    """The sessions that wait for blocks of the cold store."""

    def __init__(self, call_later: CallLater) -> None:
        self._call_later = call_later
        self._pins: dict[Client, list[Callable[[], None]]] = {}  # what is kept for whom
        self._ready: dict[Client, None] = {}  # to be resumed

    def __bool__(self) -> bool:
        return bool(self._pins)

    def park(self, session: Client, miss: ColdMiss) -> None:
        """Its request is to be handed in again when the session is resumed."""
        session.wait_for(FETCHING)
        pins = self._pins.setdefault(session, [])
        pins.append(miss.shelf.fetch(miss, lambda: self._wake(session)))

    def try_ahead(self, session: Client, topic: Topic, reads: Callable[[], object]) -> bool:
        """Do what only reads, for a session that waits for a topic to have something. False if what it needs has to be
        fetched: the topic is looked at again when it is here."""
        if session in self._pins:
            return False
        try:
            rehearse(session, topic, reads)
        except ColdMiss as miss:
            database, name, keyspace = topic.database, topic.name, topic.keyspace

            def again() -> None:
                self.done(session)
                keyspace.news.show(((database, name),))
                self._call_later(0.0, _nothing)  # whose turn serves

            self._pins.setdefault(session, []).append(miss.shelf.fetch(miss, again))
            return False
        return True

    def _wake(self, session: Client) -> None:
        if not self._ready:
            self._call_later(0.0, self._resume)
        self._ready[session] = None

    def _resume(self) -> None:
        ready, self._ready = self._ready, {}
        for session in ready:
            if session.blocked is FETCHING:
                session.go_on()

    def done(self, session: Client) -> None:
        """Its request has been executed: what was kept for it may go."""
        for unpin in self._pins.pop(session, ()):
            unpin()

    def forget(self, session: Client) -> None:
        """The session is gone."""
        self._ready.pop(session, None)
        self.done(session)


def _nothing() -> None:
    """Have a turn."""


def rehearse(session: Client, topic: Topic, reads: Callable[[], object]) -> None:
    """Do what only reads, of a topic that has a cold part. ColdMiss if that needs something first, and the session may
    wait."""
    cold = topic.keyspace.cold.shelf
    if not topic.has_cold or cold is None or session.transaction is not None:
        return
    with cold.waiting():
        reads()
