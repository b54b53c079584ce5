"""How a group of a topic is configured as a work queue, and what it has counted: a part of its record.

Stored as JSON of what is not as usual: most groups have nothing at all there, and a new setting is no new format.
"""

from __future__ import annotations

import json
from typing import NamedTuple


class GroupSettings(NamedTuple):
    """As they are while nobody has changed them."""

    timeout_ms: int = 0
    """How long an entry may be in flight before it is delivered again; 0: forever."""
    max_deliveries: int = 0
    """After this many an entry goes to the dead letters; 0: there is no limit."""
    dead_letter: bytes = b""
    """The topic of the dead letters; none where it is empty."""
    is_paused: bool = False
    is_asleep: bool = False
    """A queue's subscriber that wants nothing now."""
    holds: bool = False
    """Retention leaves alone what this group has not acknowledged."""
    requeued: int = 0
    timed_out: int = 0
    dead_lettered: int = 0
    dropped: int = 0
    """Delivered too often, where there was no topic for dead letters."""
    released: int = 0
    """Entries that wait to be delivered again now."""


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
