"""How much a collection may hold in one record, its key's; a larger one has a record for each member.

For hashes, and for sets of integers, these are Redis's limits, for OBJECT ENCODING tells them apart; the others are
ours: about what fits into half a page of LMDB's. A collection that has become large stays so until it is removed.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Packing(NamedTuple):
    """The limits in the settings."""

    hash_entries: int = 512
    hash_value_bytes: int = 64
    """The size of a field or a value."""
    intset_entries: int = 512
    sorted_set_entries: int = 128
    sorted_set_value_bytes: int = 64
    """Of a member."""


DEFAULT: Final = Packing()
LIST_ELEMENTS: Final = 128
LIST_BYTES: Final = 2000
SET_MEMBERS: Final = 128
MEMBER_BYTES: Final = 64
