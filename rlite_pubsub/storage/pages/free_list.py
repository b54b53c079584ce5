"""The pages of a file that are free, as LMDB keeps them: the tree whose key is the transaction that freed them.

    page     number u64 | pad u16 | flags u16 | lower u16, upper u16; or, of an overflow page, pages u32
    pointer  u16 each, from byte 16 to `lower`: where a node is
    node     low u16 | high u16 | flags u16 | key bytes u16 | key: transaction u64 | value
             in a branch: the page, low | high << 16 | flags << 32
             in a leaf: the value's size, low | high << 16; it is a page's number, and the value there, with flag 1
    value    count u64 | page u64 ...   highest first

A page that transaction T has freed is needed only by readers of an earlier commit. LMDB reuses it when T is older than
the oldest reader's commit.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from rlite_pubsub.storage.pages.meta import NO_PAGE, PAGE_HEAD_BYTES, Meta

_PAGE_HEAD = Struct("<QHHHH")
_NODE = Struct("<4H")
_NUMBER = Struct("<Q")
_BRANCH, _LEAF = 0x01, 0x02
_ELSEWHERE = 0x01
_DEEPEST = 32


class FreedPages(NamedTuple):
    """The pages that one transaction has freed."""

    transaction: int
    size: int
    descriptor: int
    at: int

    def pages(self, first: int, most: int) -> array[int]:
        """Return this many of their numbers."""
        count = max(0, min(most, self.size - first))
        return array("Q", os.pread(self.descriptor, count * _NUMBER.size, self.at + (1 + first) * _NUMBER.size))


def records(descriptor: int, meta: Meta, since: int = 0) -> Iterator[FreedPages]:
    """Yield the records of the free list in this commit, from a transaction on, oldest first. The reader makes sure
    that the commit stays: it holds a reader's slot, or the writer's lock."""
    if meta.free.root != NO_PAGE:
        yield from _records(descriptor, meta, meta.free.root, since, _DEEPEST)


def count(descriptor: int, meta: Meta, since: int, most_records: int) -> tuple[int, bool]:
    """Return how many pages the transactions from this one on have freed, and False if there are more than were
    counted."""
    pages = 0
    for number, record in enumerate(records(descriptor, meta, since)):
        if number == most_records:
            return pages, False
        pages += record.size
    return pages, True


def in_runs(numbers: list[int], least: int) -> int:
    """Return how many of these pages are in runs of at least this many. Sorts them."""
    numbers.sort()
    found = 0
    begin = 0
    for at in range(1, len(numbers) + 1):
        if at == len(numbers) or numbers[at] != numbers[at - 1] + 1:
            if at - begin >= least:
                found += at - begin
            begin = at
    return found


def _records(descriptor: int, meta: Meta, number: int, since: int, deepest: int) -> Iterator[FreedPages]:
    if not deepest:
        raise ValueError("the tree of free pages has no end")
    page = os.pread(descriptor, meta.page_bytes, number * meta.page_bytes)
    _, _, flags, lower, _ = _PAGE_HEAD.unpack_from(page)
    places = array("H", page[PAGE_HEAD_BYTES:lower])
    nodes = [(at, *_NODE.unpack_from(page, at)) for at in places]
    keys = [_NUMBER.unpack_from(page, at + _NODE.size)[0] if key_bytes else 0 for at, _, _, _, key_bytes in nodes]
    if flags & _BRANCH:
        for place, (_, low, high, top, _) in enumerate(nodes):
            if place + 1 == len(nodes) or keys[place + 1] > since:
                yield from _records(descriptor, meta, low | high << 16 | top << 32, since, deepest - 1)
    elif flags & _LEAF:
        for key, (at, _, _, node_flags, key_bytes) in zip(keys, nodes, strict=True):
            if key >= since:
                yield _record(descriptor, meta, number, page, key, at + _NODE.size + key_bytes, node_flags)
    else:
        raise ValueError(f"page {number} is in the tree of free pages, and is none of it")


def _record(descriptor: int, meta: Meta, number: int, page: bytes, key: int, at: int, flags: int) -> FreedPages:
    if flags & _ELSEWHERE:
        place = _NUMBER.unpack_from(page, at)[0] * meta.page_bytes + PAGE_HEAD_BYTES
        return FreedPages(key, _NUMBER.unpack(os.pread(descriptor, _NUMBER.size, place))[0], descriptor, place)
    return FreedPages(key, _NUMBER.unpack_from(page, at)[0], descriptor, number * meta.page_bytes + at)
