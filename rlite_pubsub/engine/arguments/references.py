"""KEEPREF, DELREF and ACKED (Redis 8.2): what happens to the groups' references to removed entries."""

from __future__ import annotations

from typing import NamedTuple

from rlite_pubsub.engine.arguments.integers import LONG_MAX, integer
from rlite_pubsub.engine.arguments.stream_ids import strict_id
from rlite_pubsub.protocol.errors import SYNTAX, CommandError
from rlite_pubsub.storage.topics import entry_ids

KEEPREF, DELREF, ACKED = b"KEEPREF", b"DELREF", b"ACKED"
"""They stay; they are removed, too; an entry that is referred to is not removed."""
POLICIES = frozenset((KEEPREF, DELREF, ACKED))
_BAD_COUNT = b"ERR Number of IDs must be a positive integer"
_WRONG_COUNT = b"ERR The `numids` parameter must match the number of arguments"


class Removal(NamedTuple):
    """The entries that XDELEX or XACKDEL removes."""

    policy: bytes
    ids: list[bytes]
    """Packed, as they were said."""


def removal(args: list[bytes], place: int) -> Removal:
    """Read `[KEEPREF | DELREF | ACKED] IDS numids id …`, in any order. Raises CommandError."""
    policy: bytes | None = None
    ids: list[bytes] | None = None
    while place < len(args):
        word = args[place].upper()
        if word in POLICIES and policy is None:
            policy = word
            place += 1
        elif word == b"IDS" and ids is None and place + 1 < len(args):
            count = integer(args[place + 1], refusal=_BAD_COUNT)
            if not 1 <= count <= LONG_MAX:
                raise CommandError(_BAD_COUNT)
            ids = args[place + 2 : place + 2 + count]
            if len(ids) < count:
                raise CommandError(_WRONG_COUNT)
            place += 2 + count
        else:
            raise CommandError(SYNTAX)
    if ids is None:
        raise CommandError(SYNTAX)
    return Removal(policy or KEEPREF, [entry_ids.pack(strict_id(text)) for text in ids])
