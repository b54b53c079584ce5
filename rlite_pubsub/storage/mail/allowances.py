"""subscriber -> how much may wait in its mailbox, and what happens beyond that. In live.mdb.

It belongs to the owner: a process writes it when it joins and whenever its settings change, so that a publisher that
puts something into the mailbox can keep to it. One without a record has the default.

    key    'l' | subscriber u64
    value  hard bytes u64 | soft bytes u64 | soft seconds u32 | drops oldest u8
"""

from __future__ import annotations

from struct import Struct
from sys import maxsize
from typing import NamedTuple

from rlite_pubsub.storage import databases
from rlite_pubsub.storage.environment import Txn

_KEY = Struct(">cQ")
_VALUE = Struct(">QQIB")


class Allowance(NamedTuple):
    """`hard_bytes` at once, `soft_bytes` for `soft_seconds`; 0 is no limit. Beyond that the oldest messages are dropped
    and the subscriber is told how many, or it is cut off."""

    hard_bytes: int
    soft_bytes: int = 0
    soft_seconds: int = 0
    drops_oldest: bool = False

    @property
    def least_bytes(self) -> int:
        """Mailboxes that hold less than this are not looked at."""
        return min(self.hard_bytes or maxsize, self.soft_bytes or maxsize)


DEFAULT = Allowance(1 << 30)
"""The default of client-output-buffer-limit."""


def put(txn: Txn, subscriber: int, allowance: Allowance) -> None:
    key = _KEY.pack(databases.ALLOWANCES, subscriber)
    if allowance == DEFAULT:
        txn.delete(key)
    else:
        txn.put(key, _VALUE.pack(*allowance))


def get(txn: Txn, subscriber: int) -> Allowance:
    found = txn.get(_KEY.pack(databases.ALLOWANCES, subscriber))
    return DEFAULT if found is None else _unpack(found)


def least_bytes(txn: Txn) -> int:
    """Return the smallest allowance in the store: no mailbox that holds less is at its limit."""
    said = [_unpack(value).least_bytes for _, value in databases.items(txn, databases.ALLOWANCES)]
    return min(*said, DEFAULT.hard_bytes) if said else DEFAULT.hard_bytes


def remove(txn: Txn, subscriber: int) -> bool:
    return txn.delete(_KEY.pack(databases.ALLOWANCES, subscriber))


def _unpack(value: bytes) -> Allowance:
    hard_bytes, soft_bytes, soft_seconds, drops_oldest = _VALUE.unpack(value)
    return Allowance(hard_bytes, soft_bytes, soft_seconds, bool(drops_oldest))
