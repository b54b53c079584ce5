"""The requests of queues and their subscribers, and the meaning of the answers, with an event loop and without one.

A subscriber's id names its queue and itself: `orders:worker`, each part percent-encoded, so that any name can be in it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote_to_bytes

from rlite_pubsub.topics.entry import raw, text

log = logging.getLogger("rlite_pubsub")

WAIT_MS = 5000
"""The longest single wait: a longer one is several."""


@dataclass(frozen=True, slots=True)
class SubscriberStatus:
    """The status of one subscriber."""

    name: str
    position: str
    """The id of the last item that it has popped, or after which it started."""
    behind: int | None
    """How many items it has not popped; None if deletions or its start make that unknown."""
    is_asleep: bool
    leased: int = 0
    """How many items were popped with `ack=True`, and not acknowledged yet."""


def statuses_of(rows: Any) -> list[SubscriberStatus]:
    """The status of each subscriber in QUEUE.LIST's answer for one queue."""
    found = []
    for row in rows:
        pairs = row.items() if isinstance(row, dict) else zip(row[::2], row[1::2], strict=True)
        known = {text(name): value for name, value in pairs}
        asleep = bool(known["asleep"])
        leased = int(known.get("leased", 0))
        found.append(SubscriberStatus(text(known["name"]), text(known["position"]), known["behind"], asleep, leased))
    return found


def subscriber_id(queue: str | bytes, name: str | bytes) -> str:
    """The id of a queue's subscriber."""
    return f"{quote(raw(queue), safe='')}:{quote(raw(name), safe='')}"


def names_in(id: str) -> tuple[str | bytes, str | bytes]:
    """The queue and the subscriber of an id: text, or bytes that are none. Raises ValueError for what is no id."""
    queue, colon, name = id.partition(":")
    if not colon or ":" in name:
        raise ValueError(f"{id!r} is not a subscriber's id")
    return _name(unquote_to_bytes(queue)), _name(unquote_to_bytes(name))


def _name(word: bytes) -> str | bytes:
    try:
        return word.decode()
    except UnicodeDecodeError:
        return word


def take_words(
    queue: str | bytes, name: str | bytes, count: int | None, left_ms: int | None, *, ack: bool
) -> tuple[Any, ...]:
    """A QUEUE.POP that waits for at most so long, or (None) for as long as a single wait may be."""
    options: list[Any] = [] if count is None else ["COUNT", count]
    if ack:
        options.append("ACK")
    wait_ms = WAIT_MS if left_ms is None else min(left_ms, WAIT_MS)
    if wait_ms > 0:
        options += ["BLOCK", wait_ms]
    return ("QUEUE.POP", queue, name, *options)


def lease_words(lease: float | None, max_deliveries: int | None, dead_letters: str | bytes | None) -> list[Any]:
    """The options of TOPIC.GROUP that a subscriber's keywords mean. Raises ValueError."""
    if lease is not None and lease <= 0:
        raise ValueError("lease= is a number of seconds, more than 0")
    if max_deliveries is not None and max_deliveries < 1:
        raise ValueError("max_deliveries= is at least 1")
    words: list[Any] = []
    if lease is not None:
        words += ["TIMEOUT", max(1, int(lease * 1000))]
    if max_deliveries is not None:
        words += ["MAXDELIVERIES", max_deliveries]
    if dead_letters is not None:
        words += ["DEADLETTER", dead_letters]
    return words


class QueueNames(list[str]):
    """The names of all queues, in order, of the members that have answered."""

    def __init__(self, names: Iterable[str], missing: Iterable[str] = ()) -> None:
        super().__init__(sorted(set(names)))
        self.missing = tuple(missing)
        """The members of a sharded store that did not answer, as host:port; their queues are not among the names."""


def gathered(answers: Mapping[str, Any]) -> QueueNames:
    """The queues in the answers of members, by host:port; an answer may be the failure to get one. Raises a failure if
    all are."""
    names = [text(name) for answer in answers.values() if not isinstance(answer, Exception) for name in answer]
    missing = {where: answer for where, answer in answers.items() if isinstance(answer, Exception)}
    if len(missing) == len(answers):
        raise next(iter(missing.values()))
    for where, failure in missing.items():
        log.warning("The queues of the member at %s are not listed: it does not answer (%s)", where, failure)
    return QueueNames(names, missing)
