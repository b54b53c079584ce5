"""Requests that a member of a sharded store refuses, in Redis's words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlite_pubsub.engine.shards.slots import slot_of
from rlite_pubsub.protocol.errors import CommandError

if TYPE_CHECKING:
    from rlite_pubsub.engine.session import CommandSession


def check_unsharded(session: CommandSession, what: bytes, why: bytes = b"not allowed in cluster mode") -> None:
    """Raise CommandError if the store is sharded."""
    if session.engine.sharding.directory is not None:
        raise CommandError(b"ERR %b %b" % (what, why))


def check_together(session: CommandSession, key: bytes, other: bytes, what: bytes) -> None:
    """Raise CommandError if the store is sharded and two keys are in different slots."""
    if session.engine.sharding.directory is not None and slot_of(key) != slot_of(other):
        raise CommandError(b"CROSSSLOT %b has another slot: give both names the same {tag}" % what)
