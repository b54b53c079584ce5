"""Finding the pages that one commit of an LMDB file has and an earlier one has not. LMDB 0.9, 64 bits.

LMDB never changes a page of a commit: it writes a copy elsewhere, and so a copy of every page above. All leaves of a
tree are equally deep, so a page that both commits have is equally high above the leaves in both; and as a page has one
parent, what both have below pages that they do not share is seen from both. So both trees are walked level by level,
and what they share is left out with all that is below it: the walk is as long as what was changed, however large the
file is.

Promise: the pages of the earlier commit together with these are all pages of the later one. It holds if no page of the
earlier commit was reused meanwhile: the caller holds a pin that is no newer (checkpoint.py).

    page    number u64, pad u16, flags u16, end of the places u16, begin of the nodes u16; the place of each node u16 …
    node    low u16, high u16, flags u16, length of the key u16, the key, the value
            of a branch: low, high and flags are the number of a page
            of a leaf: low and high are the value's length; a long value is the number of its first page, which begins
            with a page head
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Final, TypeAlias

from mypy_extensions import i64

from rlite_pubsub.storage.pages import meta
from rlite_pubsub.storage.pages.meta import NO_PAGE, PAGE_HEAD_BYTES

_HEAD: Final = Struct("<QHHH")
_BRANCH: Final = 0x01
_LEAF: Final = 0x02
_RUN: Final = 0x04
_LONG: Final = 0x01
_SUBTREE: Final = 0x02 | 0x04
_BRANCH_NUMBER: Final = (1 << 48) - 1
_VALUE_BYTES: Final = (1 << 32) - 1

Read: TypeAlias = Callable[[int, int], bytes]
"""How many pages, from this one on."""
Runs: TypeAlias = list[tuple[int, bytes]]
"""Adjacent pages: the number of the first, and their contents."""


class Unknown(Exception):
    """A page is not what the one above it says, or is of a kind that this module does not know."""


def changed_pages(read: Read, before: bytes, now: bytes, page_bytes: int, most: int) -> Runs | None:
    """Return the pages that the commit with the meta page `now` has and the one with `before` has not. None if these,
    or those that are gone, are more than `most`. Raises Unknown."""
    changed: Runs = []
    old, new = meta.unpacked(before), meta.unpacked(now)
    if new.page_bytes != page_bytes:
        raise Unknown(f"pages of {new.page_bytes} bytes")
    for tree_before, tree in ((old.free, new.free), (old.main, new.main)):
        if tree.root in (tree_before.root, NO_PAGE):
            continue
        older = set() if tree_before.root == NO_PAGE else {tree_before.root}
        walk = _Walk(read, page_bytes, most - len(changed))
        if not walk.go(older, tree_before.height, {tree.root}, tree.height):
            return None
        changed += walk.changed
    return changed if sum([len(pages) for _, pages in changed]) <= most * page_bytes else None


class _Walk:
    """A walk through one tree."""

    def __init__(self, read: Read, page_bytes: int, most: int) -> None:
        self._read = read
        self._page_bytes = page_bytes
        self._most = most
        self.changed: Runs = []

    def go(self, older: set[int], height_before: int, newer: set[int], height: int) -> bool:
        """Compare the pages of one level, this high above the leaves (1: leaves). Returns False if there are too
        many."""
        long_before: dict[int, int] = {}  # long values: the number of the first page, and how many pages there are
        long_now: dict[int, int] = {}
        while height_before > height:  # the tree has become lower
            older = self._below(older, height_before, long_before)
            height_before -= 1
            if len(older) > self._most:
                return False
        while newer:
            if height_before == height:
                older, newer = older - newer, newer - older
                if len(older) > self._most:
                    return False
                older = self._below(older, height, long_before)
                height_before -= 1
            if len(self.changed) + len(newer) > self._most:
                return False
            newer = self._below(newer, height, long_now, self.changed)
            height -= 1
        for first, pages in long_now.items():
            if first in long_before:
                continue
            run = self._read(first, pages)
            number, _, flags, _ = _HEAD.unpack_from(run)
            if number != first or flags & _RUN == 0:
                raise Unknown(f"page {first} holds no long value")
            self.changed.append((first, run))
            if len(self.changed) > self._most:
                return False
        return True

    def _below(self, level: set[int], height: int, long: dict[int, int], note: Runs | None = None) -> set[int]:
        """Return the pages below a level; below leaves none, but note the long values: the number of the first page and
        how many."""
        below: set[int] = set()
        page_bytes: i64 = self._page_bytes
        head_bytes: i64 = PAGE_HEAD_BYTES
        kind_wanted: i64 = _BRANCH if height > 1 else _LEAF
        for number in level:
            page = self._read(number, 1)
            if note is not None:
                note.append((number, page))
            own_number, _, flags, end = _HEAD.unpack_from(page)
            if own_number != number or flags & (_BRANCH | _LEAF) != kind_wanted:
                raise Unknown(f"page {number} is no page of level {height}")
            size: i64 = len(page)
            places_end: i64 = end
            if places_end > size:
                raise Unknown(f"page {number} is cut off")
            place: i64 = head_bytes
            while place < places_end:
                low: i64 = page[place]
                high: i64 = page[place + 1]
                at: i64 = low | high << 8
                place += 2
                if at + 8 > size:
                    raise Unknown(f"page {number} has a node beyond its end")
                if height > 1:
                    below.add(_number(page, at) & _BRANCH_NUMBER)
                    continue
                kind: i64 = page[at + 4]
                if kind & _SUBTREE:
                    raise Unknown(f"page {number} has a tree of its own")
                if kind & _LONG:
                    value_bytes: i64 = _number(page, at) & _VALUE_BYTES
                    low = page[at + 6]
                    high = page[at + 7]
                    at += 8 + (low | high << 8)
                    if at + 8 > size:
                        raise Unknown(f"page {number} has a value beyond its end")
                    long[_number(page, at)] = (head_bytes - 1 + value_bytes) // page_bytes + 1
        return below


def _number(page: bytes, at: i64) -> i64:
    """Return the u64 there. Native, and not a call when compiled."""
    a: i64 = page[at]
    b: i64 = page[at + 1]
    c: i64 = page[at + 2]
    d: i64 = page[at + 3]
    e: i64 = page[at + 4]
    f: i64 = page[at + 5]
    g: i64 = page[at + 6]
    h: i64 = page[at + 7]
    return a | b << 8 | c << 16 | d << 24 | e << 32 | f << 40 | g << 48 | h << 56
