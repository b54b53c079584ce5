"""Whether two servers tell the same about a topic.

Compared byte by byte, but for what no two servers can have in common:

 - times: seen-time and idle of a consumer, the time or the idle time of a pending entry. Two servers may differ by less
   than the requests make a difference;
 - radix-tree-keys and radix-tree-nodes: how Redis keeps a topic in memory (protocol/README.md says what ours are);
 - the id of a connection, in HELLO's reply.
"""

from __future__ import annotations

import re
from itertools import pairwise

from compat_tests.transcript import Frame

TOLERANCE_MS = 20_000
_ID = re.compile(rb"\d+-\d+")
_TIMES = (b"idle", b"seen-time")
_UNLIKE = (b"radix-tree-keys", b"radix-tree-nodes", b"id")


def alike(mine: list[Frame], yours: list[Frame]) -> bool:
    """Whether two transcripts are the same but for these."""
    return len(mine) == len(yours) and all(_same(*pair) for pair in zip(mine, yours, strict=True))


def _same(mine: Frame, yours: Frame) -> bool:
    ours, theirs = mine[1], yours[1]
    if mine[0] != yours[0]:
        return False
    if not isinstance(ours, list) or not isinstance(theirs, list):
        return ours == theirs
    if len(ours) != len(theirs):
        return False
    timed = _places_of_times(ours)
    unlike = [at for at, (name, value) in enumerate(pairwise(ours), 1) if name[1] in _UNLIKE and value[0] == b":"]
    return all(
        at in unlike or (at in timed and _at_nearly_the_same_time(*pair)) or _same(*pair)
        for at, pair in enumerate(zip(ours, theirs, strict=True))
    )


def _places_of_times(frames: list[Frame]) -> list[int]:
    places = [at for at, (name, _) in enumerate(pairwise(frames), 1) if name[1] in _TIMES]
    kinds = b"".join([kind for kind, _ in frames])
    is_pending = kinds in (b"$$::", b"$::") and isinstance(frames[0][1], bytes) and _ID.fullmatch(frames[0][1])
    return [*places, len(frames) - 2] if is_pending else places


def _at_nearly_the_same_time(mine: Frame, yours: Frame) -> bool:
    ours, theirs = mine[1], yours[1]
    is_comparable = mine[0] == yours[0] == b":" and isinstance(ours, bytes) and isinstance(theirs, bytes)
    return is_comparable and abs(int(ours) - int(theirs)) < TOLERANCE_MS  # type: ignore[arg-type]
