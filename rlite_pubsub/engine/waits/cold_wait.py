"""Sessions whose request needs data that is still in the cold store: another thread fetches it, then the request is
tried again.

Law: nothing that a request does is done twice. A request waits before it has changed anything: one that only reads may
wait anywhere; one that writes first reads what it will need (`rehearse`), and from then on waits no more: what turns
out to be missing after all is read at once. EXEC reads ahead for its queue (`AHEAD`), as things stand before it, with
groups where the queue's earlier commands will have put them (`Places`); it does not foresee what an exact XTRIM in the
queue would make them skip.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from rlite_pubsub.engine.waits.waiter import Blocked
from rlite_pubsub.keyspace.topic.cold_shelf import ColdMiss
from rlite_pubsub.storage.topics.entry_ids import Id

if TYPE_CHECKING:
    from rlite_pubsub.engine.client import Client
    from rlite_pubsub.engine.waits.alarm import CallLater
    from rlite_pubsub.keyspace.topic.topic import Topic

FETCHING: Final = Blocked()

Places: TypeAlias = dict[tuple[int, bytes, bytes], Id]
"""By database, key and name: the id after which a group will go on."""
Ahead: TypeAlias = Callable[[Any, list[bytes], Places], None]
AHEAD: Final[dict[bytes, Ahead]] = {}
"""What EXEC reads before it does anything: what these commands will need, and no more."""


def reads_ahead(name: bytes) -> Callable[[Ahead], Ahead]:
    """Declare a reader ahead for a command."""

    def declared(ahead: Ahead) -> Ahead:
        AHEAD[name] = ahead
        return ahead

    return declared


class ColdWaits:
    """The sessions that wait for blocks of the cold store."""

    def __init__(self, call_later: CallLater) -> None:
        self._call_later = call_later
        self._pins: dict[Client, list[Callable[[], None]]] = {}  # what is kept for each session
        self._ready: dict[Client, None] = {}  # to be resumed

    def __bool__(self) -> bool:
        return bool(self._pins)

    def park(self, session: Client, miss: ColdMiss) -> None:
        """Hold a request, to be handed in again when the session is resumed."""
        session.wait_for(FETCHING)
        pins = self._pins.setdefault(session, [])
        pins.append(miss.shelf.fetch(miss, lambda: self._wake(session)))

    def try_ahead(self, session: Client, topic: Topic, reads: Callable[[], object]) -> bool:
        """Try a read for a session that waits for a topic. Returns False if something has to be fetched: the topic is
        looked at again when that is here."""
        if session in self._pins:
            return False
        try:
            rehearse(session, topic, reads)
        except ColdMiss as miss:
            database, name, keyspace = topic.database, topic.name, topic.keyspace

            def again() -> None:
                self.done(session)
                keyspace.news.show(((database, name),))
                self._call_later(0.0, _nothing)  # its turn serves

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
        """Release what was kept for a session: its request has been executed."""
        for unpin in self._pins.pop(session, ()):
            unpin()

    def forget(self, session: Client) -> None:
        """Forget a closed session."""
        self._ready.pop(session, None)
        self.done(session)


def _nothing() -> None:
    """Do nothing: only the turn is wanted."""


def rehearse(session: Client, topic: Topic, reads: Callable[[], object]) -> None:
    """Try a read of a topic with a cold part. Raises ColdMiss if something must be fetched first, and the session may
    wait."""
    cold = topic.keyspace.cold.shelf
    if not topic.has_cold or cold is None or session.transaction is not None:
        return
    with cold.waiting():
        reads()
