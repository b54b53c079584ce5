"""The directory: the members, and the slots of each.

Laws:
 - Each slot has an epoch, and who has it in the highest epoch has it. Only who has a slot gives it away, with the next
   epoch, so no two members can claim the same one.
 - The list of members has an epoch of its own. Of two lists with the same one the greater counts, so that all who know
   both have the same.
 - Directories are merged, never replaced: an old one does no harm, whenever it arrives.

As JSON it is the same text for the same directory.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from rlite_pubsub.engine.shards.slots import SLOTS

FORMAT = 1
_ID_LETTERS = 40
_HEX = frozenset("0123456789abcdef")
_MOST_MEMBERS = 1000


class Member(NamedTuple):
    """A store, and the server that serves it."""

    id: bytes
    """40 hex digits."""
    host: bytes
    port: int

    @property
    def address(self) -> bytes:
        return b"%b:%d" % (self.host, self.port)


class SlotHolding(NamedTuple):
    """The owner of a slot."""

    epoch: int
    owner: bytes
    """A member's id."""


class SlotRun(NamedTuple):
    """Adjacent slots, up to and including the last, with the same owner in the same epoch."""

    first: int
    last: int
    holding: SlotHolding


class ShardDirectory:
    """One immutable state of the directory."""

    def __init__(self, epoch: int, members: Iterable[Member], runs: Iterable[SlotRun]) -> None:
        """`epoch` is that of the list of members."""
        self.epoch = epoch
        self.members = tuple(members)
        self.runs = tuple(runs)
        self.holdings: list[SlotHolding | None] = [None] * SLOTS
        self._by_id = {member.id: member for member in self.members}
        for run in self.runs:
            self.holdings[run.first : run.last + 1] = [run.holding] * (run.last + 1 - run.first)
        self.owners = [None if held is None else self._by_id.get(held.owner) for held in self.holdings]
        """By slot; None: nobody has it."""

    def member(self, id: bytes) -> Member | None:
        """Return the member of this id."""
        return self._by_id.get(id)

    def runs_of(self, member: Member) -> Iterator[tuple[int, int]]:
        """Yield a member's slots, as (first, last)."""
        begin: int | None = None
        for slot, owner in enumerate([*self.owners, None]):
            if (owner is member) != (begin is not None):
                if begin is None:
                    begin = slot
                else:
                    yield begin, slot - 1
                    begin = None

    def epoch_of(self, member: Member) -> int:
        """Return the highest epoch in which it has a slot; 0 without one."""
        return max((run.holding.epoch for run in self.runs if run.holding.owner == member.id), default=0)

    def merged(self, other: ShardDirectory) -> ShardDirectory:
        """Return the directory that knows what both know."""
        newer = max(self, other, key=lambda each: (each.epoch, each.members))
        holdings = [
            one if other_one is None or (one is not None and one >= other_one) else other_one
            for one, other_one in zip(self.holdings, other.holdings, strict=True)
        ]
        return ShardDirectory(newer.epoch, newer.members, _runs(holdings))

    def given(self, slots: Iterable[int], to: Member) -> ShardDirectory:
        """Return the directory after the owner of these slots has given them to another member."""
        holdings = list(self.holdings)
        for slot in slots:
            held = holdings[slot]
            holdings[slot] = SlotHolding(1 if held is None else held.epoch + 1, to.id)
        return ShardDirectory(self.epoch, self.members, _runs(holdings))

    def with_members(self, members: Iterable[Member]) -> ShardDirectory:
        """Return the directory with other members."""
        return ShardDirectory(self.epoch + 1, sorted(members), self.runs)

    @property
    def text(self) -> bytes:
        """The directory as JSON."""
        said = {
            "format": FORMAT,
            "epoch": self.epoch,
            "members": [[member.id.decode(), member.host.decode(), member.port] for member in self.members],
            "runs": [[first, last, held.epoch, held.owner.decode()] for first, last, held in self.runs],
        }
        return json.dumps(said, separators=(",", ":")).encode()


def _runs(holdings: list[SlotHolding | None]) -> list[SlotRun]:
    found: list[SlotRun] = []
    for slot, held in enumerate(holdings):
        if held is None:
            continue
        if found and found[-1].last == slot - 1 and found[-1].holding == held:
            found[-1] = found[-1]._replace(last=slot)
        else:
            found.append(SlotRun(slot, slot, held))
    return found


def founded(members: Iterable[Member], owners: dict[int, Member]) -> ShardDirectory:
    """Return the first directory. `owners` are members that have keys of a slot already; all other slots are shared
    out, so that each member has as many, in as few runs, as possible."""
    there = sorted(members)
    counts = dict.fromkeys(there, 0)
    for owner in owners.values():
        counts[owner] += 1
    free = [slot for slot in range(SLOTS) if slot not in owners]
    holdings: list[SlotHolding | None] = [None] * SLOTS
    for slot, owner in owners.items():
        holdings[slot] = SlotHolding(1, owner.id)
    at = 0
    for place, member in enumerate(there):
        share = SLOTS * (place + 1) // len(there) - SLOTS * place // len(there)
        last = len(free) if place == len(there) - 1 else min(len(free), at + max(0, share - counts[member]))
        for slot in free[at:last]:
            holdings[slot] = SlotHolding(1, member.id)
        at = last
    return ShardDirectory(1, there, _runs(holdings))


def read(text: bytes) -> ShardDirectory:
    """Read a directory from JSON. Raises ValueError if it is not one."""
    try:
        said: Any = json.loads(text)
        if said["format"] != FORMAT:
            raise ValueError(f"it has format {said['format']}, and this version reads format {FORMAT}")
        members = [Member(_id(id), _host(host), _within(port, 1, 65535)) for id, host, port in said["members"]]
        runs = [
            SlotRun(
                _within(first, 0, SLOTS - 1),
                _within(last, first, SLOTS - 1),
                SlotHolding(_within(epoch, 1), _id(owner)),
            )
            for first, last, epoch, owner in said["runs"]
        ]
        epoch = _within(said["epoch"], 1)
    except (KeyError, TypeError, AttributeError, UnicodeError, RecursionError) as failure:
        raise ValueError(f"no directory of shards ({failure})") from failure
    if not 0 < len(members) <= _MOST_MEMBERS or len({member.id for member in members}) < len(members):
        raise ValueError(f"a directory has 1 to {_MOST_MEMBERS} members, each of them once")
    for run, following in zip(runs, runs[1:], strict=False):
        if run.last >= following.first:
            raise ValueError(f"slot {following.first} stands there twice")
    return ShardDirectory(epoch, members, runs)


def _id(text: str) -> bytes:
    if len(text) != _ID_LETTERS or not _HEX.issuperset(text):
        raise ValueError(f"{text!r} is no member's id")
    return text.encode()


def _host(text: str) -> bytes:
    if not text or not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError(f"{text!r} is no host")
    return text.encode()


def _within(number: int, least: int, most: int = 2**53) -> int:
    if type(number) is not int or not least <= number <= most:
        raise ValueError(f"{number!r} is no number from {least} to {most}")
    return number
