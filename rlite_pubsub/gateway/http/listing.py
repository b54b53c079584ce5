"""A page of a list of names, which are told as text.

They are sorted by that text, and not by their bytes, because a page's `next` is text, too: names that are no UTF-8 have
a place then that a client can name. Those that are told alike are never parted.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from rlite_pubsub.gateway.events import event
from rlite_pubsub.gateway.http.parameter import ListSpan
from rlite_pubsub.protocol.glob import Glob


def page(names: Iterable[bytes], span: ListSpan) -> tuple[list[bytes], str | None]:
    """Return at most this many of the matching names after `after` (and those shown last), and the `after` of the next
    page; None if there is none."""
    told = sorted([(event.text_of(name), name) for name in matching(names, span.match)])
    start = bisect_right(told, span.after, key=_text) if span.after else 0
    stop = start + span.at_most
    if told and stop == 1 and not told[0][0]:
        stop = 2  # the empty name would be a `next` that means the beginning
    if stop >= len(told):
        return [name for _, name in told[start:]], None
    last = told[stop - 1][0]
    stop = bisect_right(told, last, stop, key=_text)
    return [name for _, name in told[start:stop]], last if stop < len(told) else None


def matching(names: Iterable[bytes], match: str) -> Iterable[bytes]:
    """Return those that match this pattern."""
    if match == "*":
        return names
    matches = Glob(match.encode()).matches
    return [name for name in names if matches(name)]


def _text(pair: tuple[str, bytes]) -> str:
    return pair[0]
