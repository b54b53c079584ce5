"""What a server knows of itself, for all who tell it: metrics, and the samples that the page draws."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from rlite_pubsub.engine.stats import info_store, info_subscribers
from rlite_pubsub.engine.stats.info_topics import topics
from rlite_pubsub.engine.table import TABLE

if TYPE_CHECKING:
    from rlite_pubsub.engine.counters import Stats
    from rlite_pubsub.engine.engine import Engine
    from rlite_pubsub.engine.session import CommandSession
    from rlite_pubsub.pubsub.census import CensusEntry
    from rlite_pubsub.pubsub.hub import Hub


class ServerFigures(NamedTuple):
    """Where they are read."""

    clock: Callable[[], float]
    started_at: float
    stats: Stats
    hub: Hub
    sessions: Mapping[int, CommandSession]
    retained: Callable[[], int]
    """How many entries messages to retained channels have become."""
    store_fields: Callable[[], Iterable[tuple[str, object]]]
    process_fields: Callable[[], Iterable[tuple[str, object]]]
    """What INFO tells of this process."""
    subscriber_fields: Callable[[], Iterable[tuple[str, object]]]
    """What INFO tells of the subscribers of the store."""
    warnings: Callable[[], list[str]]
    """What should not be as it is."""
    census: Callable[[], list[CensusEntry]] | None
    """All subscribers of the store, if there is one. Raises StoreError."""

    @property
    def now_ms(self) -> int:
        """The time."""
        return int(self.clock() * 1000)

    @property
    def entries_added(self) -> int:
        """Appended to topics by this server: XADD's, those posted over HTTP among them, and messages to retained
        channels."""
        added = self.stats.commands.get(TABLE.resolve([b"xadd"]))
        return self.retained() + (added.calls - added.failed if added is not None else 0)


def figures_of(engine: Engine) -> ServerFigures:
    """Those of one server."""
    keeping, store = engine.keeping, engine.store
    return ServerFigures(
        clock=engine.clock,
        started_at=engine.started_at,
        stats=engine.stats,
        hub=engine.hub,
        sessions=engine.sessions,
        retained=lambda: keeping.retained.entries if keeping is not None else 0,
        store_fields=lambda: info_store.store(engine),
        process_fields=lambda: (*info_subscribers.of_this_process(engine), *topics(engine)),
        subscriber_fields=lambda: (*info_subscribers.subscribers(engine), *info_store.store(engine)),
        warnings=lambda: [*engine.writer_waits.warnings(), *info_store.warnings(engine)],
        census=(lambda: info_subscribers.census_of(engine, store)) if store is not None else None,
    )
