"""Ephemeral topics: those whose names end in `#ephemeral` are in memory, in a part of the keyspace beside the store's.

They belong to this process alone: other processes of the store do not see them, and they end with it. In all else they
are like other topics: their turns are the store's turns, and end together with these.

Law 5, over both: what can go wrong at a turn's end goes wrong before the store's commit, and then both are undone; the
memory's own commit follows. If that one fails after all, the store's part is done and the memory's is lost, as it may
be at any time; the log says so (law 8). A topic keeps what the rules and its own limits allow, but never more than fits
into memory. What is removed for this is counted and reported like everything that retention removes (law 8).
"""

from __future__ import annotations

import logging
import weakref
from typing import TYPE_CHECKING

from rlite_pubsub.keyspace.part import Part
from rlite_pubsub.keyspace.topic.rules import Rules
from rlite_pubsub.storage.environment import Environment, Txn
from rlite_pubsub.storage.memory import open_memory
from rlite_pubsub.storage.topics.topic_settings import NO_LIMITS, RetentionLimits

if TYPE_CHECKING:
    from rlite_pubsub.keyspace.part import Whole

log = logging.getLogger("rlite_pubsub")

MAX_TOPIC_BYTES = 64 << 20
"""The bytes of one topic; the newest entries stay."""


class Ephemeral:
    """The ephemeral topics of one keyspace. The memory is freed when this is closed, or nobody refers to it."""

    def __init__(self, whole: Whole, stored: Part, rules: Rules | None) -> None:
        """`rules` are the store's. Raises StoreError."""
        environment = open_memory()
        self.close = weakref.finalize(self, environment.close)
        self.close.atexit = False
        own_rules = MemoryRules(environment, rules) if rules is not None else None
        self.part = Part(environment, whole, own_rules, behind=stored)

    def prepare(self) -> None:
        """Do what can go wrong before the store commits. Raises whatever does."""
        part = self.part
        if part.unwritten:
            part.writing()
        if part.turn.writes:
            part.settle()
            part.turn.check_room()

    def end_turn(self) -> None:
        """Commit the memory, after the store has committed or had nothing to commit."""
        part = self.part
        try:
            part.turn.end(commit=part.turn.writes)
        except Exception as error:
            log.warning("The last changes to ephemeral topics are lost: %s", part.undo(error))

    def undo(self, error: Exception) -> Exception:
        """Undo the turn, which has met this error. Returns what the error means, as far as the memory can tell."""
        is_ours = self.part.turn.is_broken
        told = self.part.undo(error)
        return told if is_ours else error


class MemoryRules(Rules):
    """The store's rules, for topics that are not in the store."""

    def __init__(self, memory: Environment, stored: Rules) -> None:
        super().__init__(memory)
        self._stored = stored

    def of(self, name: bytes) -> RetentionLimits | None:
        return _limited(self._stored.of(name) or NO_LIMITS)

    def limits(self, own: RetentionLimits, name: bytes) -> RetentionLimits:
        return _limited(self._stored.limits(own, name))

    def pattern_of(self, name: bytes) -> bytes | None:
        return self._stored.pattern_of(name)

    def follow(self, txn: Txn) -> None:
        """Do nothing: the rules are not in memory; what the store's part of the turn sees counts."""


def _limited(limits: RetentionLimits) -> RetentionLimits:
    return limits._replace(size_bytes=min(limits.size_bytes or MAX_TOPIC_BYTES, MAX_TOPIC_BYTES))
