"""A server's own figures, for metrics and for the samples that the page draws."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from rlite_pubsub.engine.stats import info_backup, info_links, info_store, info_subscribers, info_warnings
from rlite_pubsub.engine.stats.info_topics import topics
from rlite_pubsub.engine.stats.warnings import Warning, disk_of
from rlite_pubsub.engine.table import TABLE
from rlite_pubsub.storage.errors import StoreError

if TYPE_CHECKING:
    from rlite_pubsub.engine.counters import Stats
    from rlite_pubsub.engine.engine import Engine
    from rlite_pubsub.engine.session import CommandSession
    from rlite_pubsub.pubsub.census import CensusEntry
    from rlite_pubsub.pubsub.hub import Hub
    from rlite_pubsub.storage.commons.link_state import LinkState


class ServerFigures(NamedTuple):
    """Where the figures are read."""

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
    warnings: Callable[[], list[Warning]]
    """What is wrong. Never fails."""
    links: Callable[[], list[LinkState]]
    """To other servers. Never fails."""
    disk: Callable[[], tuple[int, int] | None]
    """Bytes of the disk of the store, and those that are free."""
    connections: Callable[[bool], int | None]
    """Of all processes of the store that have told theirs; true: they are asked. None: it is not known."""
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
    """Return the figures of one server."""
    keeping, store = engine.keeping, engine.store
    return ServerFigures(
        clock=engine.clock,
        started_at=engine.started_at,
        stats=engine.stats,
        hub=engine.hub,
        sessions=engine.sessions,
        retained=lambda: keeping.retained.entries if keeping is not None else 0,
        store_fields=lambda: (*info_store.store(engine), *info_backup.backup(engine)),
        process_fields=lambda: (*info_subscribers.of_this_process(engine), *topics(engine)),
        subscriber_fields=lambda: (
            *info_subscribers.subscribers(engine),
            *info_store.store(engine),
            *info_backup.backup(engine),
        ),
        warnings=lambda: info_warnings.found(engine),
        links=lambda: info_links.states(engine),
        disk=lambda: disk_of(store) if store is not None else None,
        connections=lambda asks: _connections(engine, asks=asks),
        census=(lambda: info_subscribers.census_of(engine, store)) if store is not None else None,
    )


def _connections(engine: Engine, *, asks: bool) -> int | None:
    if engine.reporting is None:
        return len(engine.sessions)
    try:
        told = engine.reporting.everybody(0, asks=asks)
        return sum(each.total for each in told) if asks or all(each.at_ms for each in told) else None
    except StoreError:
        return None
