"""Whether a register is linearizable: every read sees the last write before it, in some order that keeps to real time.

Each value is written once, so this is decided exactly, in O(n log n), by Gibbons and Korach's theorem (Testing Shared
Memories, 1997): a write and its reads are a cluster, which must hold from the first of their completions to the last of
their invocations (a *forward* zone, if these lie so) or has room somewhere between those two (a *backward* zone).
No read may precede its write, no two forward zones may overlap, and no backward zone may lie within a forward one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf

from tests.history.operations import OK, REFUSED, Operation

_BEGINNING = Operation("nobody", 0, "write", "", None, -1, -1, OK)


@dataclass
class _Cluster:
    write: Operation
    reads: list[Operation] = field(default_factory=list)

    @property
    def low(self) -> float:
        return min(self.write.completed_ns, *(one.completed_ns for one in self.reads), inf)

    @property
    def high(self) -> float:
        return max(self.write.invoked_ns, *(one.invoked_ns for one in self.reads), -inf)


def faults(operations: list[Operation]) -> Iterator[str]:
    """Of one key."""
    clusters: dict[str | None, _Cluster] = {None: _Cluster(_BEGINNING)}
    refused = {one.value for one in operations if one.kind == "write" and one.outcome == REFUSED}
    for one in operations:
        if one.kind == "write" and one.outcome != REFUSED:
            clusters[one.value] = _Cluster(one)
    for one in operations:
        if one.kind != "read" or one.outcome != OK:
            continue
        if one.result not in clusters:
            why = "was refused" if one.result in refused else "nobody has written so"
            yield f"{one}: {why}"
        elif one.precedes(clusters[one.result].write):
            yield f"{one}: read before {clusters[one.result].write}"
        else:
            clusters[one.result].reads.append(one)
    happened = [one for one in clusters.values() if one.low < inf]
    forward = sorted((one for one in happened if one.low < one.high), key=lambda one: one.low)
    for first, second in zip(forward, forward[1:], strict=False):
        if second.low < first.high:
            yield f"{_told(first)} and {_told(second)} hold at the same time"
    at = 0
    for one in sorted((one for one in happened if one.low >= one.high), key=lambda one: one.high):
        while at < len(forward) and forward[at].high < one.high:
            at += 1
        if at < len(forward) and forward[at].low < one.high and one.low < forward[at].high:
            yield f"{_told(one)} has no room beside {_told(forward[at])}"


def _told(cluster: _Cluster) -> str:
    return f"[{cluster.write}, read {len(cluster.reads)} times, last by {cluster.reads[-1] if cluster.reads else None}]"
