"""What takes long is looked up less often, and never more than it was."""

from __future__ import annotations

import pytest

from rlite_pubsub.gateway import budget
from rlite_pubsub.gateway.budget import UNWATCHED, WATCHED, Budgeted


def test_look_that_takes_a_second_is_taken_again_when_its_share_of_the_time_allows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [100.0]
    monkeypatch.setattr(budget, "perf_counter", lambda: now[0])
    looks: list[int] = []

    def look() -> int:
        looks.append(1)
        now[0] += 1.0
        return len(looks)

    found = Budgeted(look)
    assert found() == 1
    now[0] += 1 / WATCHED - 1
    assert found() == 1 and found(UNWATCHED) == 1
    now[0] += 2
    assert found(UNWATCHED) == 1 and found() == 2
