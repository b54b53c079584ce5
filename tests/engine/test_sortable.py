"""What SORT takes for a number; Redis is not asked, since it would find its error again in the next numbers."""

from __future__ import annotations

import math

import pytest

from rlite_pubsub.engine.arguments.floats import sortable


@pytest.mark.parametrize(
    ("text", "number"),
    [(b"", 0.0), (b" -1.5", -1.5), (b"0x10", 16.0), (b"inf", math.inf), (b"0e-999", 0.0), (b"-0.0", 0.0), (b"3\0x", 3)],
)
def test_is_a_number(text: bytes, number: float) -> None:
    assert sortable(text) == number


@pytest.mark.parametrize("text", [b"x", b"1 ", b"nan", b"1e400", b"-1e400", b"1e-400", b"1e-310", b"--1"])
def test_is_none(text: bytes) -> None:
    assert sortable(text) is None
