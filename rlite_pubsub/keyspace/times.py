"""The time for the keys of a keyspace, and whether keys expire."""

from __future__ import annotations

from collections.abc import Callable


class Times:
    """The time, as one keyspace sees it during a turn."""

    __slots__ = ("_holding", "clock_ms", "coarse_now", "is_master_s", "is_writable_replica", "may_expire", "wholes")

    def __init__(self, clock_ms: Callable[[], int]) -> None:
        self.clock_ms = clock_ms
        self.coarse_now = clock_ms() / 1000  # seconds: for when keys are used
        self.may_expire = True  # False while somebody holds: expired keys are only hidden
        self.is_master_s = False  # the master's requests are executed, and only the master knows what has expired
        self.is_writable_replica = False  # its clients' keys are none of the master's, and it removes them itself
        self.wholes = 0  # how many have begun, one in another, in which all that is read belongs together
        self._holding: set[str] = set()

    def note(self, now: float) -> None:
        """Set the approximate time, now and then."""
        self.coarse_now = now

    def hold(self, why: str) -> None:
        """Remove no expired keys, until no reason is left."""
        self._holding.add(why)
        self.may_expire = False

    def go_on(self, why: str) -> None:
        """Drop a reason."""
        self._holding.discard(why)
        self.may_expire = not self._holding

    def begin_whole(self) -> None:
        """Begin an EXEC or a script: all that it reads belongs together."""
        self.wholes += 1

    def end_whole(self) -> None:
        """End it."""
        self.wholes -= 1

    def end_wholes(self) -> None:
        """End all of them: they were interrupted."""
        self.wholes = 0

    def obey_master(self, obeys: bool) -> None:
        """Show expired keys, too, until this is taken back: a master says itself what it removes."""
        self.is_master_s = obeys
