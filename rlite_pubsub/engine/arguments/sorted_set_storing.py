"""Adding members to sorted sets: one by one, on ZADD's conditions, or as the result of a command on other sets, which
replaces the key."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

from rlite_pubsub.engine.arguments.lookup import for_change
from rlite_pubsub.engine.arguments.sorted_set_lookup import sorted_set_for_change, tell_sorted_set
from rlite_pubsub.keyspace.sorted_sets import SortedSet
from rlite_pubsub.protocol.errors import CommandError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rlite_pubsub.engine.session import CommandSession
    from rlite_pubsub.keyspace.sorted_sets import Scored

_NOT_A_NUMBER: Final = b"ERR resulting score is not a number (NaN)"


class Placing(NamedTuple):
    """The outcome for one member."""

    score: float
    is_new: bool
    has_moved: bool
    is_done: bool
    """False if a condition did not hold."""


def _add(found: SortedSet, member: bytes, score: float, options: frozenset[bytes]) -> Placing:
    """Add one member. Raises CommandError if an increment gives no number."""
    before = found.score(member)
    if before is None:
        if b"xx" in options:
            return Placing(score, False, False, False)
        found.rescore(member, None, score)
        return Placing(score, True, False, True)
    if b"nx" in options:
        return Placing(score, False, False, False)
    if b"incr" in options:
        score += before
        if math.isnan(score):
            raise CommandError(_NOT_A_NUMBER)
    if (b"lt" in options and score >= before) or (b"gt" in options and score <= before):
        return Placing(score, False, False, False)
    if score != before:
        found.rescore(member, before, score)
    return Placing(score, False, score != before, True)


def put(
    session: CommandSession, key: bytes, options: frozenset[bytes], scores: Iterable[float], members: list[bytes]
) -> list[Placing]:
    """Add members with their scores, on the conditions of ZADD's options. Raises CommandError."""
    found = sorted_set_for_change(session, key)
    if found is None:
        if b"xx" in options:
            return []
        found = session.engine.keyspace.create(SortedSet, session.db, key)
    placings: list[Placing] = []
    try:
        for member, score in zip(members, scores, strict=True):
            placings.append(_add(found, member, score, options))
    finally:
        if any(placing.is_new or placing.has_moved for placing in placings):
            tell_sorted_set(session, b"zincr" if b"incr" in options else b"zadd", key)
    return placings


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


def counted(placings: list[Placing], options: frozenset[bytes]) -> int:
    """Return how many are new or, with CH, have changed."""
    moved = b"ch" in options
    return sum(placing.is_new or (moved and placing.has_moved) for placing in placings)


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
