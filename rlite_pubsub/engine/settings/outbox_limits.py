"""The directives that say how much may wait for a slow reader: `spill-threshold`, `client-output-buffer-limit` and
`slow-subscriber-policy`, as pressure.py obeys them."""

from __future__ import annotations

from rlite_pubsub.engine.settings.settings import Settings
from rlite_pubsub.pubsub.pressure import Limits, Pressure

_LIMITS = "client-output-buffer-limit"


def limits_of(settings: Settings) -> Limits:
    """What they say now."""
    return Limits(
        spill_threshold_bytes=settings["spill-threshold"],
        normal=settings[_LIMITS].normal,
        pubsub=settings[_LIMITS].pubsub,
        are_set=not settings.is_default(_LIMITS),
        drops_oldest=settings["slow-subscriber-policy"] == b"drop-oldest",
    )


def keep_to(settings: Settings, pressure: Pressure) -> None:
    """Have it obey whatever they come to say."""

    def obey(_: object) -> None:
        pressure.obey(limits_of(settings))

    for name in ("spill-threshold", _LIMITS, "slow-subscriber-policy"):
        settings.on_change(name, obey)
