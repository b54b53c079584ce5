"""The directives that say how much may wait for a slow reader: `spill-threshold`, `client-output-buffer-limit` and
`slow-subscriber-policy`, as pressure.py obeys them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlite_pubsub.engine.settings.settings import SettingError, Settings
from rlite_pubsub.pubsub.pressure import Limits, Pressure
from rlite_pubsub.storage.errors import StoreError
from rlite_pubsub.storage.mail.allowances import Allowance

if TYPE_CHECKING:
    from rlite_pubsub.pubsub.membership import Membership

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


def allowance_of(settings: Settings) -> Allowance:
    """What they say of the mailbox of the whole process, into which other processes put what is for its sessions."""
    hard_bytes, soft_bytes, soft_seconds = settings[_LIMITS].pubsub
    return Allowance(hard_bytes, soft_bytes, soft_seconds, settings["slow-subscriber-policy"] == b"drop-oldest")


def keep_to(settings: Settings, pressure: Pressure, membership: Membership | None) -> None:
    """Have it obey whatever they come to say, and other processes as well. Raises StoreError."""

    def obey(_: object) -> None:
        if membership is not None:
            try:
                membership.allow(allowance_of(settings))
            except StoreError as failure:
                raise SettingError(str(failure)) from failure
        pressure.obey(limits_of(settings))

    for name in ("spill-threshold", _LIMITS, "slow-subscriber-policy"):
        settings.on_change(name, obey)
    if membership is not None:
        membership.allow(allowance_of(settings))
