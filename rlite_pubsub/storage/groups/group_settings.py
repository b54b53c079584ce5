"""A group's settings as a work queue, and its counters: a part of its record.

Stored as JSON of what differs from the defaults: most groups store nothing here, and a new setting is not a new format.
"""

from __future__ import annotations

import json
from typing import NamedTuple


class GroupSettings(NamedTuple):
    """The settings, with their defaults."""

    timeout_ms: int = 0
    """How long an entry may be in flight before it is delivered again; 0: forever."""
    max_deliveries: int = 0
    """How often an entry is delivered before it goes to the dead letters; 0: no limit."""
    dead_letter: bytes = b""
    """The topic of the dead letters; empty: none."""
    is_paused: bool = False
    is_asleep: bool = False
    """True if a queue's subscriber is paused."""
    holds: bool = False
    """Retention leaves alone what this group has not acknowledged."""
    requeued: int = 0
    timed_out: int = 0
    dead_lettered: int = 0
    dropped: int = 0
    """How many were delivered too often while there was no topic for dead letters."""
    released: int = 0
    """How many entries wait to be delivered again now."""


_USUAL = GroupSettings()


def pack(settings: GroupSettings) -> bytes:
    if settings == _USUAL:
        return b""
    changed: dict[str, object] = {
        name: value for name, value in settings._asdict().items() if value != getattr(_USUAL, name)
    }
    if settings.dead_letter:
        changed["dead_letter"] = settings.dead_letter.decode("latin-1")
    return json.dumps(changed, separators=(",", ":"), sort_keys=True).encode()


def unpack(packed: bytes) -> GroupSettings:
    if not packed:
        return _USUAL
    changed = json.loads(packed)
    if "dead_letter" in changed:
        changed["dead_letter"] = changed["dead_letter"].encode("latin-1")
    return GroupSettings(**changed)
