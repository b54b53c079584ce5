"""Topics of a server, as the planning of a query sees them: which there are, and where they begin and end."""

from __future__ import annotations

import re
from typing import NamedTuple

import redis

from rlite_pubsub.cold.origin import text_of
from rlite_pubsub.pipeline.connection import ask, ask_for_map
from rlite_pubsub.pipeline.errors import OptionRefused
from rlite_pubsub.pipeline.options import SourceOptions, id_of
from rlite_pubsub.storage.topics import entry_ids
from rlite_pubsub.storage.topics.entry_ids import Id

_MARKED_AT_ONCE = 250_000
"""Entries that the server looks at for one request: some 20 ms of its loop."""
_MOST_MARKS = 4096


class TopicExtent(NamedTuple):
    """The extent of a topic at one moment."""

    trimmed: Id
    """All up to and with this id is gone."""
    last: Id
    """The highest id that was ever given."""
    length: int


NOTHING = TopicExtent(entry_ids.MIN, entry_ids.MIN, 0)


def find_topics(client: redis.Redis, options: SourceOptions) -> dict[str, bytes]:
    """Return the topics that are subscribed to: text -> name. A named topic need not exist yet."""
    if options.subscribe_pattern is None:
        return {text: text.encode() for text in options.subscribe}
    pattern = re.compile(options.subscribe_pattern)
    found: dict[str, bytes] = {}
    for name in ask(client, "TOPIC.LIST"):
        text = text_of(name)
        if pattern.fullmatch(text):
            if text in found:
                raise OptionRefused(f"subscribePattern: two topics look like {text!r}")
            found[text] = name
    return found


def extent(client: redis.Redis, name: bytes) -> TopicExtent | None:
    """Return the extent of a topic; None if it does not exist."""
    try:
        known = ask_for_map(client, "TOPIC.INFO", name)
    except redis.ResponseError as refusal:
        if str(refusal) == "no such key":
            return None
        raise
    return TopicExtent(
        id_of(known[b"trimmed-id"].decode()), id_of(known[b"last-id"].decode()), int(known[b"length"])
    )


class Marks(NamedTuple):
    """The places where a range may be cut."""

    entries: int
    last: Id | None
    """The last entry's id."""
    step: int
    ids: list[Id]
    """Of each `step`-th entry."""


def marks(client: redis.Redis, name: bytes, after: Id, upto: Id, step: int, most: int | None = None) -> Marks:
    """Walk over a range, or its first `most` entries, slice by slice: the server goes on with other things between."""
    entries, last, found = 0, after, list[Id]()
    while most is None or entries < most:
        count = _MARKED_AT_ONCE // step * step or step
        if most is not None:
            count = min(count, most - entries)
        known = ask_for_map(
            client, "TOPIC.MARKS", name, b"(" + entry_ids.text(last), entry_ids.text(upto), step, "COUNT", count
        )
        if known[b"last"] is None:
            break
        entries += known[b"entries"]
        last = id_of(known[b"last"].decode())
        found += [id_of(mark.decode()) for mark in known[b"marks"]]
        if known[b"entries"] < count:
            break
        if len(found) > _MOST_MARKS and not entries % (2 * step):
            step *= 2
            found = found[1::2]
    return Marks(entries, last if entries else None, step, found)
