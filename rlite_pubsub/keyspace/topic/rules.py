"""The rules of retention: what is kept of a topic whose name matches a pattern, and which channels are kept at all.

They are in the store, because publishers and trimmers must use the same ones, in a server or a program
without one. A change of theirs moves the routes version, so that no publish uses old rules once the process that
changed them
has been answered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rlite_pubsub.protocol.glob import Glob
from rlite_pubsub.storage.names.version import bump
from rlite_pubsub.storage.topics import topic_settings
from rlite_pubsub.storage.topics.topic_settings import NO_LIMITS, RetentionLimits, Rule

if TYPE_CHECKING:
    from rlite_pubsub.storage.environment import Environment, Txn
    from rlite_pubsub.storage.store import Store

_NAMES_KEPT = 4096


class Rules:
    """As one process knows them."""

    def __init__(self, data: Environment, store: Store | None = None) -> None:
        """Without a store nobody else learns of a change."""
        self._data = data
        self._store = store
        self._packed = b""
        self._known_by = -1  # the transaction that they were last compared in
        self._globs: tuple[tuple[Glob, RetentionLimits], ...] = ()
        self._found: dict[bytes, RetentionLimits | None] = {}
        self.all: tuple[Rule, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.all)

    def of(self, name: bytes) -> RetentionLimits | None:
        """Return the limits of the first rule that matches a name."""
        try:
            return self._found[name]
        except KeyError:
            pass
        limits = next((limits for glob, limits in self._globs if glob.matches(name)), None)
        if len(self._found) >= _NAMES_KEPT:
            self._found.clear()
        self._found[name] = limits
        return limits

    def pattern_of(self, name: bytes) -> bytes | None:
        """Return the pattern of that rule."""
        return next((glob.pattern for glob, _ in self._globs if glob.matches(name)), None)

    def limits(self, own: RetentionLimits, name: bytes) -> RetentionLimits:
        """Return the limits that apply to a topic: its own, and the rule's for what they leave open."""
        said = self.of(name) or NO_LIMITS
        return RetentionLimits(*[
            ours if ours != topic_settings.UNSAID else theirs for ours, theirs in zip(own, said, strict=True)
        ])

    # -- as the store has them

    def refresh(self) -> bool:
        """See whether they have changed, and go by them. Raises StoreError."""
        return self._adopt(self._data.read(topic_settings.packed_rules))

    def follow(self, txn: Txn) -> None:
        """Go by what this transaction sees."""
        number = txn.id()
        if number != self._known_by:
            self._known_by = number
            self._adopt(topic_settings.packed_rules(txn))

    def put(self, rules: Sequence[Rule]) -> None:
        """Change them, for all who have the store. Returns once they count everywhere. Raises StoreError."""
        self._data.write(lambda txn: topic_settings.put_rules(txn, rules))
        self.refresh()
        if self._store is not None:
            self._store.routes.announce(self._store.live.write(bump), patterns=False)

    def _adopt(self, packed: bytes) -> bool:
        if packed == self._packed:
            return False
        self._packed = packed
        self.all = topic_settings.unpack_rules(packed)
        self._globs = tuple((Glob(rule.pattern), rule.limits) for rule in self.all)
        self._found.clear()
        return True
