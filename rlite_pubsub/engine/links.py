"""The links of the store to other servers, as one process knows them: what was asked for, and how each is doing.

Another process runs them (rlite_pubsub/links/), which a server starts (server/companions/linking.py). What was asked
for is in data.mdb; that process looks again when the version of the commons has changed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from rlite_pubsub.pubsub.kinds import SHARDS
from rlite_pubsub.storage.commons import identity, link_records, link_state
from rlite_pubsub.storage.commons.link_state import OLD_MS, LinksState, LinkState

if TYPE_CHECKING:
    from rlite_pubsub.pubsub.hub import Hub
    from rlite_pubsub.storage.environment import Txn
    from rlite_pubsub.storage.store import Store

DOOR: Final = b"__links__:door"
"""Where linked stores are heard (links/ports.py)."""
JOINED_SECONDS: Final = 60.0
"""How long the process with links is kept after a store has asked for it."""
STOPPED: Final = "stopped"


class Links:
    """The links of one engine's store."""

    def __init__(self, store: Store | None, hub: Hub, clock: Callable[[], float]) -> None:
        self.store = store
        self._hub = hub
        self._clock = clock
        self._joined_at: float | None = None
        self._asked_at = -1  # the version of the commons at which this was read
        self._are_asked_for = False

    def join(self) -> tuple[bool, str]:
        """Register a linked store's wish to be heard. Returns whether it is heard (if not, it asks again), and this
        store's id. Raises StoreError."""
        assert self.store is not None
        self._joined_at = time.monotonic()
        data = self.store.data
        id = data.read(identity.get) or data.write(identity.settle)
        return self._hub.session_count_everywhere(SHARDS, DOOR) > 0, id

    @property
    def are_wanted(self) -> bool:
        """True if the store needs a process for its links. Raises StoreError."""
        if self.store is None:
            return False
        version = self.store.routes.numbers[2]
        if version != self._asked_at:
            self._are_asked_for = self.store.data.read(link_records.is_any)
            self._asked_at = version
        if self._are_asked_for:
            return True
        if self._joined_at is None:
            return False
        if time.monotonic() - self._joined_at < JOINED_SECONDS:
            return True
        return bool(self.state.guests)

    # -- what is asked for

    def every(self) -> dict[str, dict[str, Any]]:
        """Return each link's words, by name. Raises StoreError."""
        if self.store is None:
            return {}
        found = self.store.data.read(link_records.every)
        return {name: json.loads(record) for name, record in found.items()}

    def put(self, name: str, words: dict[str, Any]) -> None:
        """Write a link, replacing the one of that name. Raises StoreError."""
        self._write(lambda txn: link_records.put(txn, name, json.dumps(words).encode()))

    def remove(self, name: str) -> None:
        """Remove a link. Raises StoreError."""
        self._write(lambda txn: link_records.remove(txn, name))

    def _write(self, work: Callable[[Txn], int]) -> None:
        assert self.store is not None
        self.store.routes.announce_commons(self.store.data.write(work))

    # -- how they are doing

    @property
    def state(self) -> LinksState:
        """The state of the process with links, about a second old at most."""
        found = link_state.read(self.store.folder) if self.store is not None else None
        return found or LinksState()

    def states(self) -> list[LinkState]:
        """Return the state of each link that was asked for. Raises StoreError."""
        wanted = self.every()
        if not wanted:
            return []
        said = self.state
        is_old = said.at_ms + OLD_MS < self._clock() * 1000
        known = {each.name: each for each in said.links}
        found = []
        for name, words in wanted.items():
            state = known.get(name) or LinkState(name, words["shown"], "connecting")
            if words["is_paused"]:
                state.state = "paused"
            elif is_old:
                if state.state != STOPPED:
                    state.since_ms = said.at_ms
                state.state = STOPPED
            found.append(state)
        return found
