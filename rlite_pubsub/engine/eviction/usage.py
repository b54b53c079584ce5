"""When, or how often, this process has used keys: estimates, in one table of fixed size, however many keys there are.

A key has the slot of its name's checksum. If there are more keys than slots, keys share one, and the most used of them
counts for all. The uses by other processes are unknown, and so are those before the policy was set: such a key counts
as never used.

The count of uses is Redis's of 8 bits: the higher it is, the less likely another use adds to it (`lfu-log-factor`), and
it loses one for each `lfu-decay-time` minutes without a use.
"""

from __future__ import annotations

import random
from array import array
from typing import Final, TypeAlias
from zlib import crc32

Key: TypeAlias = tuple[int, bytes]
"""Database and name."""

SLOTS: Final = 1 << 20
_MASK: Final = SLOTS - 1
NEW: Final = 5
"""The count of a key after its first use, so that it is not the first to go."""
MOST: Final = 255


class Usage:
    """A policy's record of uses."""

    def used(self, database: int, name: bytes, now: float) -> None:
        """Note a use."""
        raise NotImplementedError

    def worth(self, database: int, name: bytes, now: float) -> int:
        """Return how valuable a key is: the lowest is evicted first."""
        raise NotImplementedError

    def ranked(self, keys: list[Key], now: float) -> list[Key]:
        """Return the keys, the least valuable first."""
        raise NotImplementedError


class Lately(Usage):
    """The time of each key's last use, in tenths of seconds since this began."""

    def __init__(self, now: float) -> None:
        self._began = now
        self._used = array("L", bytes(array("L").itemsize * SLOTS))

    def used(self, database: int, name: bytes, now: float) -> None:
        self._used[_slot(database, name)] = int((now - self._began) * 10) + 1 if now > self._began else 1

    def worth(self, database: int, name: bytes, now: float) -> int:
        return self._used[_slot(database, name)]

    def ranked(self, keys: list[Key], now: float) -> list[Key]:
        used = self._used
        return _by_worth(keys, [used[crc32(name, database) & _MASK] for database, name in keys])


class Often(Usage):
    """The number of uses of each key."""

    def __init__(self, log_factor: int, decay_minutes: int) -> None:
        self.log_factor = log_factor
        self.decay_minutes = decay_minutes
        self._counts = bytearray(SLOTS)  # the count plus one; 0: unknown
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
        """Return the present count; 0 if unknown."""
        return self._decayed(_slot(database, name), now)

    def ranked(self, keys: list[Key], now: float) -> list[Key]:
        counts, minutes, decay_minutes = self._counts, self._minutes, self.decay_minutes
        minute = _minutes(now)
        worths: list[int] = []
        for database, name in keys:
            slot = crc32(name, database) & _MASK
            known = counts[slot]
            if known and decay_minutes:
                known = max(1, known - ((minute - minutes[slot]) & 0xFFFF) // decay_minutes)
            worths.append(known)
        return _by_worth(keys, worths)

    def set(self, database: int, name: bytes, count: int, now: float) -> None:
        """Set the count that a key brings along (RESTORE … FREQ)."""
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


def _by_worth(keys: list[Key], worths: list[int]) -> list[Key]:
    """Return the keys in the order of their worths: integers are compared, and no names where many are worth the
    same."""
    bits = len(keys).bit_length()
    places = sorted([worth << bits | place for place, worth in enumerate(worths)])
    mask = (1 << bits) - 1
    return [keys[place & mask] for place in places]


def _minutes(now: float) -> int:
    return int(now // 60) & 0xFFFF
