"""Which random requests are compared in which version of the protocol."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def in_turn(seeds: Iterable[int]) -> Any:
    """Parametrizes `protocol` and `seed`: one seed in RESP2, the next in RESP3. The same requests in both versions are
    little more than one of them, and take twice as long."""
    chosen = [pytest.param(2 + seed % 2, seed, id=f"RESP{2 + seed % 2}-{seed}") for seed in seeds]
    return pytest.mark.parametrize(("protocol", "seed"), chosen)
