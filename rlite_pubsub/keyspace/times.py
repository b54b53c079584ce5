"""What time it is for the keys of a keyspace, and whether time takes any of them."""

from __future__ import annotations

from collections.abc import Callable


class Times:
    """The time, as one keyspace sees it during a turn."""

    __slots__ = ("_holding", "clock_ms", "coarse_now", "is_master_s", "may_expire")

    def __init__(self, clock_ms: Callable[[], int]) -> None:
        self.clock_ms = clock_ms
        self.coarse_now = clock_ms() / 1000  # seconds: for when keys are used
        self.may_expire = True  # False while somebody holds: what is over is only not shown
        self.is_master_s = False  # what a master says is executed, and it alone knows what is over
        self._holding: set[str] = set()

    def note(self, now: float) -> None:
        """So late it is, roughly. To be said now and then."""
        self.coarse_now = now

    def hold(self, why: str) -> None:
        """Remove nothing because its time is over, until nobody has a reason any more."""
        self._holding.add(why)
        self.may_expire = False

    def go_on(self, why: str) -> None:
        """This is no reason any more."""
        self._holding.discard(why)
        self.may_expire = not self._holding

    def obey_master(self, obeys: bool) -> None:
        """Show what is over, too, until this is taken back: a master says itself what goes."""
        self.is_master_s = obeys
