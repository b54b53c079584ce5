"""The positions of a subscription in its topics, and how it handles what the server sends."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from redis.exceptions import ConnectionError, ResponseError

from rlite_pubsub.topics.entry import Entry, Gap, Since, pairs_of, raw, start_of, text

log = logging.getLogger("rlite_pubsub")

OnGap: TypeAlias = Callable[[Gap], object]
FIRST_DELAY_S = 0.05
LAST_DELAY_S = 1.0


def warn_of_gap(gap: Gap) -> None:
    """The default handling of a gap."""
    what = "%d entries of topic %s were removed before they could be read; continuing from %s"
    log.warning(what, gap.lost, gap.topic, gap.earliest)


class Positions:
    """The part of a subscription that knows no socket."""

    def __init__(
        self, topics: Iterable[str | bytes] | Mapping[str | bytes, Since], since: Since, on_gap: OnGap
    ) -> None:
        starts = topics if isinstance(topics, Mapping) else dict.fromkeys(topics, since)
        if not starts:
            raise ValueError("no topic to subscribe to")
        self.ids = {text(topic): start_of(start) for topic, start in starts.items()}
        self._given = {text(topic): topic for topic in starts}
        self.are_known = False
        """The server has said of each topic from where it goes on, since it was greeted."""
        self._on_gap = on_gap

    @property
    def by_topic(self) -> dict[str | bytes, str]:
        """The ids by topic, whose names are as they were given."""
        return {self._given[name]: id for name, id in self.ids.items()}

    def greeting(self) -> list[str | bytes]:
        """What to say to a new connection; the server answers where each topic continues."""
        self.are_known = False
        return ["TOPIC.SUBSCRIBE", *[word for name, id in self.ids.items() for word in (raw(name), id)]]

    def take(self, frame: Any) -> Entry | None:
        """An entry, if it is one. Raises ResponseError, and ConnectionError where nothing more will come here."""
        if isinstance(frame, ResponseError):
            raise frame
        if not isinstance(frame, list):
            return None
        word = text(frame[0])
        if word == "topic-message":
            _, name, entry_id, flat = frame
            topic, id = text(name), text(entry_id)
            self.ids[topic] = id
            return Entry(self._given.get(topic, topic), id, pairs_of(flat))
        if word == "topic-subscribe":
            topic, first, lost = text(frame[1]), text(frame[2]), int(frame[4])
            if lost:
                self._on_gap(Gap(self._given.get(topic, topic), first, lost))
            elif self.ids[topic] not in ("-", "+"):
                self.ids[topic] = first  # whatever happens to the connection, it is from here that it goes on
            if int(frame[3]) >= len(self.ids):  # it says so of all of them before it says any entry
                self.are_known = True
        elif word == "topic-gap":
            topic = text(frame[1])
            self._on_gap(Gap(self._given.get(topic, topic), text(frame[2]), int(frame[3])))
        elif word == "topic-unsubscribe":  # which nobody here has asked for
            raise ConnectionError(f"{text(frame[1])} is another member's now")
        return None


def next_delay_s(delay_s: float) -> float:
    """Return how long to wait after one more attempt has failed."""
    return min(max(2 * delay_s, FIRST_DELAY_S), LAST_DELAY_S)
