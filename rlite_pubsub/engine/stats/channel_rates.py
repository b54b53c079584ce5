"""How much is published to each channel with subscribers in this process: counted only while somebody looks.

Law 11: a turn asks nobody. While nobody looks, this costs a run of messages one look at an attribute.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlite_pubsub.engine.waits.alarm import CallLater
    from rlite_pubsub.pubsub.hub import Hub

WINDOW_S = 2.0
"""The seconds over which a rate is averaged."""
UNSEEN_S = 10.0
"""Counting ends once nobody has looked for this long."""


class ChannelRates:
    """Measures how many messages a second each channel of one process gets."""

    def __init__(self, hub: Hub, stopwatch: Callable[[], float], call_later: CallLater) -> None:
        self._hub = hub
        self._stopwatch = stopwatch
        self._call_later = call_later
        self._rates: dict[bytes, float] | None = None  # of the last whole window
        self._began_at = 0.0
        self._looked_at = 0.0

    def look(self) -> dict[bytes, float] | None:
        """Return messages a second by channel, without the idle ones; None if that is not known yet."""
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
