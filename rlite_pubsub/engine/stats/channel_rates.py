"""How much is published to each channel that somebody in this process receives: counted only while somebody looks.

Law 11: a turn asks nobody. While nobody looks, a run of messages costs one look at an attribute.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlite_pubsub.engine.waits.waiter import CallLater
    from rlite_pubsub.pubsub.hub import Hub

WINDOW_S = 2.0
"""A rate is the mean over so long."""
UNSEEN_S = 10.0
"""Nobody has looked for so long: nobody wants to know any more."""


class ChannelRates:
    """How many messages a second each channel of one process has."""

    def __init__(self, hub: Hub, stopwatch: Callable[[], float], call_later: CallLater) -> None:
        self._hub = hub
        self._stopwatch = stopwatch
        self._call_later = call_later
        self._rates: dict[bytes, float] | None = None  # of the last whole window
        self._began_at = 0.0
        self._looked_at = 0.0

    def look(self) -> dict[bytes, float] | None:
        """Messages a second by channel; one that is not there has none. None: it is not known yet."""
        now = self._looked_at = self._stopwatch()
        if self._hub.tally is None:
            self._hub.count_by({})
            self._began_at = now
            self._call_later(WINDOW_S, self._turn_over)
        return self._rates

    def _turn_over(self) -> None:
        now, counts = self._stopwatch(), self._hub.tally or {}
        if now - self._looked_at > UNSEEN_S:
            self._hub.count_by(None)
            self._rates = None
            return
        seconds = max(now - self._began_at, 0.001)
        self._rates = {name: count / seconds for name, count in counts.items()}
        self._hub.count_by({})
        self._began_at = now
        self._call_later(WINDOW_S, self._turn_over)
