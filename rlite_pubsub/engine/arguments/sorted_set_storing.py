"""Adding members to sorted sets: one by one, on ZADD's conditions, or as the result of a command on other sets, which
replaces the key."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from rlite_pubsub.engine.arguments.lookup import for_change
from rlite_pubsub.engine.arguments.sorted_set_lookup import sorted_set_for_change, tell_sorted_set
from rlite_pubsub.keyspace.sorted_sets import SortedSet
from rlite_pubsub.protocol.errors import CommandError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlite_pubsub.engine.session import CommandSession
    from rlite_pubsub.keyspace.sorted_sets import Scored

_NOT_A_NUMBER: Final = b"ERR resulting score is not a number (NaN)"


class Placing:
    """What became of members that were put."""

    __slots__ = ("moved", "new", "score")

    def __init__(self) -> None:
        self.new = 0
        self.moved = 0  # to another score
        self.score: float | None = None
        """The last one's score; None if a condition did not hold for it."""

    def counted(self, options: frozenset[bytes]) -> int:
        """Return how many are new or, with CH, have changed."""
        return self.new + self.moved if b"ch" in options else self.new


def _add(found: SortedSet, member: bytes, score: float, options: frozenset[bytes], placing: Placing) -> None:
    """Add one member on conditions. Raises CommandError if an increment gives no number."""
    placing.score = None
    before = found.score(member)
    if before is None:
        if b"xx" in options:
            return
        found.rescore(member, None, score)
        placing.new += 1
    elif b"nx" in options:
        return
    else:
        if b"incr" in options:
            score += before
            if math.isnan(score):
                raise CommandError(_NOT_A_NUMBER)
        if (b"lt" in options and score >= before) or (b"gt" in options and score <= before):
            return
        if score != before:
            found.rescore(member, before, score)
            placing.moved += 1
    placing.score = score


def put(
    session: CommandSession, key: bytes, options: frozenset[bytes], scores: list[float], members: list[bytes]
) -> Placing:
    """Add members with their scores, on the conditions of ZADD's options. Raises CommandError."""
    placing = Placing()
    found = sorted_set_for_change(session, key)
    if found is None:
        if b"xx" in options:
            return placing
        found = session.engine.keyspace.create(SortedSet, session.db, key)
    try:
        for at in range(len(members)):
            if options:
                _add(found, members[at], scores[at], options, placing)
                continue
            member, score = members[at], scores[at]
            before = found.score(member)
            if before is None or score != before:
                found.rescore(member, before, score)
                if before is None:
                    placing.new += 1
                else:
                    placing.moved += 1
    finally:
        if placing.new or placing.moved:
            tell_sorted_set(session, b"zincr" if b"incr" in options else b"zadd", key)
    return placing


def put_one(session: CommandSession, key: bytes, score: float, member: bytes) -> bool:
    """Add a member with its score, whatever it was before; return whether it is new. Raises CommandError."""
    found = sorted_set_for_change(session, key)
    if found is None:
        found = session.engine.keyspace.create(SortedSet, session.db, key)
    before = found.score(member)
    if before is None or score != before:
        found.rescore(member, before, score)
        tell_sorted_set(session, b"zadd", key)
    return before is None


def store_sorted_set(
    session: CommandSession, key: bytes, members: Sequence[Scored], event: bytes, longest: int = 0
) -> int:
    """Replace the key by a sorted set of these members, or remove it if there are none; return how many there are.
    `longest`: as in `SortedSet.take`."""
    keyspace = session.engine.keyspace
    before = for_change(session, key)
    if before is not None:
        keyspace.remove(before)
    if not members:
        if before is not None:
            session.engine.notifications.tell("g", b"del", session.db, key)
        return 0
    made = keyspace.create(SortedSet, session.db, key, replaces=before is not None)
    made.take(members, longest=longest)
    tell_sorted_set(session, event, key)
    return len(made)
