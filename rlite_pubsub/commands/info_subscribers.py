"""INFO's section Subscribers, which is ours: who listens, what was delivered, and what waits for slow readers."""

from __future__ import annotations

from collections.abc import Iterator

from rlite_pubsub.commands.instance import Instance
from rlite_pubsub.delivery.kinds import KINDS


def subscribers(instance: Instance) -> Iterator[tuple[str, object]]:
    """Counts of sessions, subscriptions and messages."""
    hub, stats, pressure = instance.hub, instance.stats, instance.pressure
    yield "subscribed_sessions", sum(session.holds_names for session in instance.sessions.values())
    for kind in KINDS:
        yield f"{kind.database.removesuffix('s')}_subscriptions", sum(map(len, hub.holders[kind.index].values()))
    yield "messages_published", hub.published
    yield "messages_delivered", hub.delivered
    yield "spilled_sessions", pressure.spilled_sessions if pressure is not None else 0
    yield "spilled_bytes", pressure.spilled_bytes if pressure is not None else 0
    yield "slow_subscribers_disconnected", stats.outbox_limit_disconnections
    durables, post = hub.durables, hub.post
    dropped = post.durable.dropped if post is not None else 0
    yield "gaps", stats.gaps + (durables.gaps if durables is not None else 0)
    yield "dropped_messages", stats.dropped_messages + dropped
    yield "durable_subscribers_attached", len(durables.feeds) if durables is not None else 0
    yield "durable_subscribers_taken_over", durables.takeovers if durables is not None else 0
    yield "durable_subscribers_expired", durables.lifetimes.expired if durables is not None else 0
    yield "durable_messages", post.durable.sent if post is not None else 0
