"""A place in the log."""

from __future__ import annotations

from typing import NamedTuple


class Place(NamedTuple):
    """How far somebody has read: a window, and a tip of it."""

    segment: int
    tip: int
