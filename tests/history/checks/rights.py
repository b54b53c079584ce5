"""Whether a right is what was granted or revoked last, whoever asks at which process: linearizable, exactly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tests.history.checks import linear
from tests.history.operations import OK, REFUSED, Operation

DENIED = "has no permissions"


def is_answer(one: Operation) -> bool:
    """Whether what looks like a refusal tells that the right is not there."""
    return one.kind == "use" and one.outcome == REFUSED and DENIED in str(one.result)


def faults(operations: list[Operation]) -> Iterator[str]:
    """Of one user's right, which is there at first."""
    told = [replace(one, outcome=OK, result=False) if is_answer(one) else one for one in operations]
    found = linear.fault(told, True, _step)  # type: ignore[arg-type]
    if found is not None:
        yield found


def _step(is_there: bool, one: Operation) -> Iterator[bool]:
    if one.kind == "grant":
        yield True
    elif one.kind == "revoke":
        yield False
    elif one.completed_ns == float("inf") or one.result == is_there:
        yield is_there
