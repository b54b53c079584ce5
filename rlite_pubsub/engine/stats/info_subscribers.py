"""INFO's section Subscribers, which is ours: who listens, what was delivered, and what waits for slow readers.

First this process, then the store: totals over all of its subscribers, and a line for each of the first of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from urllib.parse import quote_from_bytes

from rlite_pubsub.durable.attaching import Durables
from rlite_pubsub.engine.engine import Engine
from rlite_pubsub.pubsub.census import DATABASES, CensusEntry, Depth, census
from rlite_pubsub.pubsub.kinds import KINDS
from rlite_pubsub.storage.errors import StoreError
from rlite_pubsub.storage.store import Store

LINES = 100
"""How many subscribers get a line of their own."""
COUNTED_NAMES = 100_000
"""How many names of each kind are counted for another subscriber, at most: INFO is asked for every second."""

Fields = Iterator[tuple[str, object]]


def subscribers(engine: Engine) -> Fields:
    """Yield counts of sessions, subscriptions and messages."""
    yield from of_this_process(engine)
    if engine.store is None:
        return
    try:
        entries = census_of(engine, engine.store)
    except StoreError as failure:
        yield "store_error", failure
        return
    yield from totals(entries, now_ms := int(engine.clock() * 1000))
    for number, entry in enumerate(entries[:LINES]):
        yield f"subscriber{number}", _line(entry, now_ms)


def census_of(engine: Engine, store: Store) -> list[CensusEntry]:
    """Return all subscribers of the store. Raises StoreError."""
    return census(store, Depth(COUNTED_NAMES, 0), _own_counts(engine))


def of_this_process(engine: Engine) -> Fields:
    """Yield counts of this process's sessions, and of its work since its start."""
    hub, stats, pressure = engine.hub, engine.stats, engine.pressure
    yield "subscribed_sessions", sum(session.holds_names for session in engine.sessions.values())
    for kind in KINDS:
        yield f"{kind.database.removesuffix('s')}_subscriptions", sum(map(len, hub.holders[kind.index].values()))
    yield "messages_published", hub.published
    yield "messages_delivered", hub.delivered
    yield "spilled_sessions", pressure.spilled_sessions
    yield "spilled_bytes", pressure.spilled_bytes
    yield "slow_subscribers_disconnected", stats.outboxes.disconnections
    durables = hub.durables
    assert durables is None or isinstance(durables, Durables)
    dropped = durables.mail.dropped if durables is not None else 0
    gaps = durables.gaps if durables is not None else 0
    cut_off = 0
    if (post := hub.post) is not None:
        gaps, dropped, cut_off = gaps + post.arrears.gaps, dropped + post.full.dropped, post.full.cut_off
    yield "gaps", stats.outboxes.gaps + gaps
    yield "dropped_messages", stats.outboxes.dropped_messages + dropped
    yield "mailboxes_cut_off", cut_off
    yield "durable_subscribers_attached", len(durables.feeds) if durables is not None else 0
    yield "durable_subscribers_taken_over", durables.takeovers if durables is not None else 0
    yield "durable_subscribers_expired", durables.lifetimes.expired if durables is not None else 0
    yield "durable_messages", durables.mail.sent if durables is not None else 0
    waits = engine.writer_waits
    yield "writer_waiting_clients", waits.waiting
    yield "writer_waits", waits.waited
    yield "writer_refusals", waits.refused
    for held in waits.holdings():
        yield f"writer_of_{held.environment.partition('.')[0]}", (
            f"pid={held.holder.pid},name={held.holder.name},state={held.holder.state},seconds={held.seconds:.1f}"
        )
    yield "subscribers_reaped", engine.store.reaped if engine.store is not None else 0


def _own_counts(engine: Engine) -> dict[int, dict[str, int]]:
    hub = engine.hub
    own = hub.neighbours.own if hub.neighbours is not None else None
    return {} if own is None else {own: {kind.database: len(hub.holders[kind.index]) for kind in KINDS}}


def totals(entries: list[CensusEntry], now_ms: int) -> Fields:
    """Yield counts over the whole store."""
    kinds = Counter(entry.kind for entry in entries)
    states = Counter(entry.state for entry in entries if entry.durable is None)
    yield "subscribers", len(entries)
    for kind in ("server", "embedded", "durable"):
        yield f"subscribers_{kind}", kinds[kind]
    yield "subscribers_durable_away", sum(entry.state == "away" for entry in entries)
    yield "processes_alive", states["alive"]
    yield "processes_dead_unreaped", states["dead"]
    yield "processes_unknown", states["unknown"]
    yield "backlog_messages", sum(entry.waiting.backlog.messages for entry in entries)
    yield "backlog_bytes", sum(entry.waiting.backlog.bytes for entry in entries)
    yield "backlog_spilled_sessions", sum(entry.spilled_sessions for entry in entries)
    yield "backlog_spilled_bytes", sum(entry.spilled.backlog.bytes for entry in entries)
    yield "oldest_age_ms", max((_age_ms(entry, now_ms) for entry in entries), default=0)


def _age_ms(entry: CensusEntry, now_ms: int) -> int:
    return max(0, entry.waiting.age_ms(now_ms), entry.spilled.age_ms(now_ms))


def _line(entry: CensusEntry, now_ms: int) -> str:
    process = entry.process
    fields: dict[str, object] = {
        "kind": entry.kind,
        **({"name": quote_from_bytes(entry.durable.name, safe=":/ ")} if entry.durable is not None else {}),
        "id": f"{entry.id:016x}",
        "pid": process.record.pid if process is not None else 0,
        **{database: entry.counts[database] for database in DATABASES},
        "backlog_messages": entry.waiting.backlog.messages,
        "backlog_bytes": entry.waiting.backlog.bytes,
        "oldest_age_ms": entry.waiting.age_ms(now_ms),
        "spilled_sessions": entry.spilled_sessions,
        "spilled_bytes": entry.spilled.backlog.bytes,
        "alive": int(entry.state == "alive"),
        "state": entry.state,
        "last_bell_ms": process.last_bell_ms if process is not None else 0,
    }
    return ",".join(f"{name}={value}" for name, value in fields.items())
