"""What time it is for the keys of a keyspace, and whether time takes any of them."""

from __future__ import annotations

from collections.abc import Callable


class Times:
    """One keyspace's."""

    __slots__ = ("clock_ms", "coarse_now", "may_expire")

    def __init__(self, clock_ms: Callable[[], int]) -> None:
        self.clock_ms = clock_ms
        self.coarse_now = clock_ms() / 1000  # seconds: for when keys are used
        self.may_expire = True  # False while writes are paused: what is over is only not shown

    def note(self, now: float) -> None:
        """So late it is, roughly. To be said now and then."""
        self.coarse_now = now

    def hold(self) -> None:
        """Remove nothing because its time is over."""
        self.may_expire = False

    def go_on(self) -> None:
        """Remove what is over again."""
        self.may_expire = True
