"""How lately, or how often, keys were used by this process: estimates, in one table, however many keys there are.

A key has the slot of its name's checksum, and shares it with others where there are more keys than slots: then what is
said of one is said of the most used among them. Nothing is known of what other processes did, nor of the time before
the policy asked for it: such a key counts as not used at all.

How often is Redis's count of 8 bits: the more it is, the less likely one more use adds to it (`lfu-log-factor`), and it
loses one for each `lfu-decay-time` minutes without a use.
"""

from __future__ import annotations

import random
from array import array
from typing import Protocol
from zlib import crc32

SLOTS = 1 << 20
_MASK = SLOTS - 1
NEW = 5
"""What a key counts that was used for the first time, so that it is not the first to go."""
MOST = 255


class Usage(Protocol):
    """What a policy keeps of uses."""

    def used(self, database: int, name: bytes, now: float) -> None:
        """It is used now."""

    def worth(self, database: int, name: bytes, now: float) -> int:
        """The less, the sooner it goes."""


class Lately(Usage):
    """When keys were last used, in tenths of seconds since this began."""

    def __init__(self, now: float) -> None:
        self._began = now
        self._used = array("L", bytes(array("L").itemsize * SLOTS))

    def used(self, database: int, name: bytes, now: float) -> None:
        self._used[_slot(database, name)] = int((now - self._began) * 10) + 1 if now > self._began else 1

    def worth(self, database: int, name: bytes, now: float) -> int:
        return self._used[_slot(database, name)]


class Often(Usage):
    """How often keys are used."""

    def __init__(self, log_factor: int, decay_minutes: int) -> None:
        self.log_factor = log_factor
        self.decay_minutes = decay_minutes
        self._counts = bytearray(SLOTS)  # one more than it is; 0: nothing is known
        self._minutes = array("H", bytes(2 * SLOTS))  # of the last use

    def used(self, database: int, name: bytes, now: float) -> None:
        slot = _slot(database, name)
        if not self._counts[slot]:
            count = NEW
        else:
            count = self._decayed(slot, now)
            if count < MOST and random.random() < 1 / (max(0, count - NEW) * self.log_factor + 1):
                count += 1
        self._note(slot, count, now)

    def worth(self, database: int, name: bytes, now: float) -> int:
        """The count as it is now; 0 where nothing is known."""
        return self._decayed(_slot(database, name), now)

    def set(self, database: int, name: bytes, count: int, now: float) -> None:
        """It was used so often where it comes from (RESTORE … FREQ)."""
        self._note(_slot(database, name), min(count, MOST), now)

    def _note(self, slot: int, count: int, now: float) -> None:
        self._counts[slot] = min(count, MOST - 1) + 1
        self._minutes[slot] = _minutes(now)

    def _decayed(self, slot: int, now: float) -> int:
        known = self._counts[slot]
        if not known:
            return 0
        idle = (_minutes(now) - self._minutes[slot]) & 0xFFFF
        lost = idle // self.decay_minutes if self.decay_minutes else 0
        return max(0, known - 1 - lost)


def _slot(database: int, name: bytes) -> int:
    return crc32(name, database) & _MASK


def _minutes(now: float) -> int:
    return int(now // 60) & 0xFFFF
