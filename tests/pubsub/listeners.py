"""Sessions without sockets, and records without a store."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rlite_pubsub.engine.turn import end_turn
from rlite_pubsub.pubsub.hub import Hub
from rlite_pubsub.pubsub.kinds import KINDS, Kind
from rlite_pubsub.pubsub.publish import publish as send
from rlite_pubsub.pubsub.session import Session
from rlite_pubsub.storage.errors import StoreError, StoreFull


class Records:
    """The store's records as the hub writes them; full when told so."""

    def __init__(self) -> None:
        self.counts: dict[tuple[str, bytes], int] = {}
        self.commits = 0
        self.failure: StoreError | None = None

    def __call__(self, changed: Mapping[tuple[str, bytes], int]) -> None:
        if self.failure is not None:
            raise self.failure
        self.commits += 1
        self.counts.update(changed)
        self.counts = {name: count for name, count in self.counts.items() if count}

    def fill_up(self) -> None:
        self.failure = StoreFull(Path("store"), 1)

    def make_room(self) -> None:
        self.failure = None


class Listener(Session):
    """Keeps what was said to it. Each flush is one element of `flushes`."""

    last_id = 0

    def __init__(self, hub: Hub, protocol: int = 2) -> None:
        Listener.last_id += 1
        super().__init__(Listener.last_id, hub)
        self.protocol = protocol
        self.flushes: list[bytes] = []

    def flush(self) -> None:
        self.dirty = False
        if self.said:
            self.flushes.append(b"".join(self.said))
            self.said.clear()

    def abort(self) -> None:
        self.hub.forget(self)

    def take(self, kind: Kind, *names: bytes) -> Listener:
        for name in names:
            assert self.hub.subscribe(self, kind, name)
        return self

    def heard(self) -> bytes:
        """All that it was told until now."""
        end_turn(self.hub.agenda)
        said = b"".join(self.flushes)
        self.flushes.clear()
        return said


def publish(hub: Hub, name: bytes, payload: bytes, kind: Kind = KINDS[0]) -> int:
    """As PUBLISH does; the number of receivers."""
    return send(hub, kind, name, [b"%d\r\n%b" % (len(payload), payload)]).receivers
