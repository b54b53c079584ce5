"""Events on keys in a turn: who hears of them, and who waits for them.

Law 11: if nobody wants to know what is modified (`is_heard`), or waits for a key (`awaited`), nobody is notified.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TypeAlias

from mypy_extensions import mypyc_attr

from rlite_pubsub.keyspace.effects import Effects
from rlite_pubsub.storage.agenda import READY, Agenda

Key: TypeAlias = tuple[int, bytes | None]
"""(database, name); None stands for every name."""


@mypyc_attr(allow_interpreted_subclasses=True)
class KeyListener:
    """Hears what happens to keys: (database, name). This base class ignores it."""

    def expired(self, database: int, name: bytes) -> None:
        """A key has expired and was removed."""

    def added(self, database: int, name: bytes) -> None:
        """A key was created under a free name."""

    def modified(self, database: int, name: bytes) -> None:
        """A key was modified, for WATCH and CLIENT TRACKING; not called while nobody wants to know (`News.heed`)."""

    def appended(self, database: int, name: bytes) -> None:
        """A topic has an entry that no command of this turn appended."""

    def trimmed(self, database: int, name: bytes) -> None:
        """Retention has removed entries from a topic."""


class News:
    """Notifies listeners of what has changed in one keyspace."""

    def __init__(self, agenda: Agenda) -> None:
        self.agenda = agenda
        self.listener: KeyListener = KeyListener()
        self.is_heard = True  # False while nobody wants to know what is modified
        self.effects: Effects | None = None  # for replicas, while there are any; then `is_heard`, too
        self.ready: dict[Key, None] = {}  # keys whose blocked clients should look again
        self.stood: dict[Key, None] = {}  # those that were ready at a commit in the middle of the turn
        self.touched: dict[Key, None] = {}  # topics that this turn appended to, or removed
        self.told: object = None  # the key that was appended to last, as long as it is in `touched`
        self.awaited: Collection[Key] | None = None
        """Keys that somebody in this process waits for; only they become `ready`. None: all of them do."""
        self.on_deadline: Callable[[int], None] = _nobody_cares  # something of a topic is to be done at this time (ms)
        self.on_dead_letters: Callable[[bytes, bytes, int], None] = _nobody_mourns  # (topic, group, entries)

    def tell(self, listener: KeyListener) -> None:
        """Let `listener` hear of events on keys."""
        self.listener = listener

    def heed(self, is_heard: bool) -> None:
        """Set whether anybody wants to know what is modified."""
        self.is_heard = is_heard or self.effects is not None

    def note(self, effects: Effects | None) -> None:
        """Note effects on keys here; None: nobody replicates."""
        self.effects = effects
        self.is_heard = True  # until a listener looks

    def show_only(self, awaited: Collection[Key]) -> None:
        """Let only these keys become `ready`: those that somebody in this process waits for."""
        self.awaited = awaited

    def call_at_deadlines(self, due: Callable[[int], None]) -> None:
        """Call `due` with the time (ms) at which something in a topic will be due."""
        self.on_deadline = due

    def call_at_dead_letters(self, buried: Callable[[bytes, bytes, int], None]) -> None:
        """Call `buried` with the topic, the group and the number of entries that were delivered too often."""
        self.on_dead_letters = buried

    def signal(self, database: int, name: bytes | None) -> None:
        """Make clients blocked on this key (None: on any of the database's) look again, here and in other processes."""
        key = database, name
        self.touched[key] = None
        if self.awaited is None or name is None or key in self.awaited:
            self.ready[key] = None
            self.agenda.due |= READY

    def show(self, keys: Iterable[Key]) -> None:
        """Make clients of this process that are blocked on one of these keys look again."""
        self.ready.update(dict.fromkeys(keys))
        self.agenda.due |= READY

    def stand(self) -> None:
        """Note a commit in the middle of the turn: what is ready is so, whatever becomes of the rest."""
        self.stood.update(self.ready)

    def show_stood(self) -> None:
        """Make clients that are blocked on such a key look again: the rest of the turn has failed, and with it what
        some of them were answered."""
        stood, self.stood = self.stood, {}
        self.show(stood)

    def forget(self) -> None:
        """Forget the turn's events, but for what stands."""
        self.ready.clear()
        self.touched.clear()
        self.told = None
        if self.effects is not None:
            self.effects.forget()


def _nobody_mourns(topic: bytes, group: bytes, entries: int) -> None:
    """Do nothing."""


def _nobody_cares(at_ms: int) -> None:
    """Do nothing: nobody wants to know when."""
