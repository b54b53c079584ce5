"""Ephemeral topics: those whose names end in `#ephemeral` are in memory, in a part of the keyspace beside the store's.

They are this process's alone: other processes of the store do not see them, and they are gone with it. All else about
them is as it is with other topics: their turns are the store's turns, and end together with these.

Law 5, over both: what can go wrong at a turn's end goes wrong before the store's commit, and then both are undone; the
memory's own commit follows it. Should that one fail after all, the store's part is done and the memory's is not: it is
lost, as it may be at any time, and that is said in the log (law 8).
"""

from __future__ import annotations

import logging
import weakref
from typing import TYPE_CHECKING

from rlite_pubsub.keyspace.part import Part
from rlite_pubsub.keyspace.topic.memory_rules import MemoryRules
from rlite_pubsub.storage.memory import open_memory

if TYPE_CHECKING:
    from rlite_pubsub.keyspace.part import Whole
    from rlite_pubsub.keyspace.topic.rules import Rules

log = logging.getLogger("rlite_pubsub")


class Ephemeral:
    """Those of one keyspace. The memory is free again when nobody has hold of this."""

    def __init__(self, whole: Whole, stored: Part, rules: Rules | None) -> None:
        """`rules` are the store's. Raises StoreError."""
        environment = open_memory()
        weakref.finalize(self, environment.close).atexit = False
        own_rules = MemoryRules(environment, rules) if rules is not None else None
        self.part = Part(environment, whole, own_rules, behind=stored)

    def prepare(self) -> None:
        """Do what can go wrong before the store commits. Raises what goes wrong."""
        part = self.part
        if part.unwritten:
            part.writing()
        if part.turn.writes:
            part.settle()
            part.turn.check_room()

    def end_turn(self) -> None:
        """The store has committed, or had nothing to commit: so does the memory."""
        part = self.part
        try:
            part.turn.end(commit=part.turn.writes)
        except Exception as error:
            log.warning("What was just done to ephemeral topics is lost: %s", part.undo(error))

    def undo(self, error: Exception) -> Exception:
        """The turn has met this error: nothing of it was done. What it means, as far as the memory can tell."""
        is_ours = self.part.turn.is_broken
        told = self.part.undo(error)
        return told if is_ours else error
