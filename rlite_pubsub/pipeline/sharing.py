"""How many of so many entries each topic may give to one batch."""

from __future__ import annotations

from collections.abc import Mapping


def share(waiting: Mapping[str, int], most: int) -> dict[str, int]:
    """By how much each has; what has anything gets at least one, as far as they go round. The sum is at most `most`."""
    total = sum(waiting.values())
    if total <= most:
        return dict(waiting)
    shares = {topic: count * most // total for topic, count in waiting.items()}
    left = most - sum(shares.values())
    for topic in sorted(waiting, key=lambda topic: (shares[topic], topic)):  # those without any come first
        if left and shares[topic] < waiting[topic]:
            shares[topic] += 1
            left -= 1
    return shares
