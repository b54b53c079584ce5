"""The meta pages of LMDB 0.9 on 64 bits, which describe a commit. LMDB writes the two of them in turn.

    page header  16
    magic u32 | version u32 | address u64 | map size u64
    free  48     the tree of the pages that are free
    main  48     the tree of all records
    last page u64 | transaction u64

    tree         page size u32 (of the first) | flags u16 | depth u16 | pages: branch, leaf, overflow u64 |
                 entries u64 | root u64
"""

from __future__ import annotations

import os
from struct import Struct
from typing import NamedTuple

PAGE_HEAD_BYTES = 16
BYTES = PAGE_HEAD_BYTES + 24 + 2 * 48 + 16
NO_PAGE = 0xFFFF_FFFF_FFFF_FFFF
_MAGIC_AT = PAGE_HEAD_BYTES
_MAGIC = 0xBEEFC0DE .to_bytes(4, "little")
_TRANSACTION = Struct("<Q")
TRANSACTION_AT = BYTES - _TRANSACTION.size
_TREES_AT = PAGE_HEAD_BYTES + 24
_TREE = Struct("<IHH5Q")
_LAST_PAGE_AT = _TREES_AT + 2 * _TREE.size
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
PAIR_BYTES = 2 * _PAGE_BYTES
"""The size of both of them."""
LAST_PAGES = (_LAST_PAGE_AT // 8, (_PAGE_BYTES + _LAST_PAGE_AT) // 8)
"""Where each has its last page, in words."""
_ATTEMPTS = 100


class Tree(NamedTuple):
    """A tree: how large it is, how many pages there are from its root to a leaf, and where it begins."""

    pages: int
    height: int
    root: int


class Meta(NamedTuple):
    """A commit."""

    transaction: int
    last_page: int
    page_bytes: int
    free: Tree
    main: Tree

    @property
    def used_bytes(self) -> int:
        """How far into its file the environment has ever written."""
        return (self.last_page + 1) * self.page_bytes

    @property
    def live_bytes(self) -> int:
        """How much of that is needed: the two meta pages, and everything in a tree."""
        return (2 + self.free.pages + self.main.pages) * self.page_bytes


def place(transaction: int) -> int:
    """Return where the meta page of a commit is."""
    return (transaction & 1) * _PAGE_BYTES


def transaction_of(page: bytes) -> int:
    """Return the transaction of a meta page; -1 if it is not one."""
    if len(page) < BYTES or page[_MAGIC_AT : _MAGIC_AT + 4] != _MAGIC:
        return -1
    return int(_TRANSACTION.unpack_from(page, TRANSACTION_AT)[0])


def read(descriptor: int) -> Meta | None:
    """Read the last commit from the file; None if there is none, or it keeps changing."""
    for _ in range(_ATTEMPTS):
        pages, again = ([os.pread(descriptor, BYTES, place(turn)) for turn in (0, 1)] for _ in range(2))
        if pages == again:
            latest = max(pages, key=transaction_of)
            return unpacked(latest) if transaction_of(latest) >= 0 else None
    return None


def unpacked(page: bytes) -> Meta:
    """Return a meta page, unpacked."""
    page_bytes, free = _tree(page, _TREES_AT)
    _, main = _tree(page, _TREES_AT + _TREE.size)
    last_page, transaction = Struct("<2Q").unpack_from(page, _LAST_PAGE_AT)
    return Meta(transaction, last_page, page_bytes, free, main)


def _tree(page: bytes, at: int) -> tuple[int, Tree]:
    page_bytes, _, height, branch, leaf, overflow, _, root = _TREE.unpack_from(page, at)
    return page_bytes, Tree(branch + leaf + overflow, height, root)
