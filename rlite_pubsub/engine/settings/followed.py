"""Passing settings to the parts that know no settings, at first and at every change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlite_pubsub.engine.settings.settings import SettingError
from rlite_pubsub.keyspace.packing import Packing
from rlite_pubsub.keyspace.topic.nodes import DEFAULT_LIMITS, NodeLimits
from rlite_pubsub.pubsub.pressure import Limits
from rlite_pubsub.storage.errors import StoreError
from rlite_pubsub.storage.mail.allowances import Allowance

if TYPE_CHECKING:
    from rlite_pubsub.durable.lifetimes import Lifetimes
    from rlite_pubsub.engine.settings.settings import Settings
    from rlite_pubsub.keyspace.keyspace import Keyspace
    from rlite_pubsub.pubsub.membership import Membership
    from rlite_pubsub.pubsub.pressure import Pressure
    from rlite_pubsub.storage.environment import Durability

_LIMITS = "client-output-buffer-limit"
OF_NODES = "stream-node-max-entries", "stream-node-max-bytes"


def outbox_limits(settings: Settings) -> Limits:
    """Return how much may wait for a slow reader."""
    return Limits(
        spill_threshold_bytes=settings["spill-threshold"],
        normal=settings[_LIMITS].normal,
        pubsub=settings[_LIMITS].pubsub,
        are_set=not settings.is_default(_LIMITS),
        drops_oldest=settings["slow-subscriber-policy"] == b"drop-oldest",
    )


def allowance(settings: Settings) -> Allowance:
    """Return the same limit for the mailbox of the whole process, which other processes fill."""
    hard_bytes, soft_bytes, soft_seconds = settings[_LIMITS].pubsub
    return Allowance(hard_bytes, soft_bytes, soft_seconds, settings["slow-subscriber-policy"] == b"drop-oldest")


def limit_outboxes(settings: Settings, pressure: Pressure, membership: Membership | None) -> None:
    """Apply the limits for slow readers, here and in other processes. Raises StoreError."""
    if membership is not None:
        membership.allow(allowance(settings))

    def obey(_: object) -> None:
        if membership is not None:
            try:
                membership.allow(allowance(settings))
            except StoreError as failure:
                raise SettingError(str(failure)) from failure
        pressure.obey(outbox_limits(settings))

    for name in ("spill-threshold", _LIMITS, "slow-subscriber-policy"):
        settings.on_change(name, obey)


def durability(settings: Settings) -> Durability:
    """Return when a commit is brought to the disk."""
    policy: Durability = settings["appendfsync"].decode()
    return policy


def keep_durables(settings: Settings, lifetimes: Lifetimes) -> None:
    """Apply the default lifetime and mailbox limit of durable subscribers, and how many there may be."""
    names = "durable-subscriber-ttl", "durable-subscriber-max-bytes", "durable-subscriber-max-count"
    settings.follow(names, lambda: lifetimes.set_defaults(*[settings[name] for name in names]))


def pack_collections(settings: Settings, keyspace: Keyspace) -> None:
    """Apply the limits up to which a collection is one record."""
    names = (
        "hash-max-listpack-entries",
        "hash-max-listpack-value",
        "set-max-intset-entries",
        "zset-max-listpack-entries",
        "zset-max-listpack-value",
    )
    settings.follow(names, lambda: keyspace.stored.pack_by(Packing(*[settings[name] for name in names])))


def node_limits(settings: Settings) -> NodeLimits:
    """Return how much a node would take in Redis."""
    limits = NodeLimits(settings[OF_NODES[0]], settings[OF_NODES[1]])
    return DEFAULT_LIMITS if limits == DEFAULT_LIMITS else limits
