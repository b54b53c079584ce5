"""Offsets: for each topic the id of the last entry that is done. `0-0` is before all entries.

So an offset is what a stream's progress shows, what a checkpoint holds, and what startingOffsets and endingOffsets
take: a read goes on behind the one, and up to and with the other.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from rlite_pubsub.cold.origin import text_of
from rlite_pubsub.pipeline.errors import DataLoss, TopicMissing
from rlite_pubsub.pipeline.options import EARLIEST, LATEST, Bound, SourceOptions, id_of
from rlite_pubsub.pipeline.topics import NOTHING, TopicExtent
from rlite_pubsub.storage.topics import entry_ids
from rlite_pubsub.storage.topics.entry_ids import Id

if TYPE_CHECKING:
    from rlite_pubsub.pipeline.catalog import Catalog
    from rlite_pubsub.pipeline.reading.planning import Window

Offsets = dict[str, str]
Extents = dict[str, tuple[bytes, TopicExtent | None]]
"""Of the topics that are read, at one moment: text -> its name, and how far it goes."""
_LOG = logging.getLogger("rlite_pubsub.pipeline")


def text(entry_id: Id) -> str:
    return entry_ids.text(entry_id).decode()


def starting(options: SourceOptions, topic: str, there: TopicExtent, default: str = EARLIEST) -> Id:
    """Behind which id a new query begins. Raises DataLoss where it was said, and that is gone."""
    if options.starting_ms is not None:
        wanted = entry_ids.before((min(options.starting_ms, entry_ids.PART_MAX), 0)) or entry_ids.MIN
        return max(wanted, there.trimmed)
    said = _said(options.starting, topic) or default
    if said == EARLIEST:
        return there.trimmed
    if said == LATEST:
        return there.last
    return kept(options, topic, id_of(said), there)


def ending(options: SourceOptions, topic: str, there: TopicExtent) -> Id:
    """Up to which id a batch reads."""
    if options.ending_ms is not None:
        return entry_ids.before((min(options.ending_ms, entry_ids.PART_MAX), 0)) or entry_ids.MIN
    said = _said(options.ending, topic) or LATEST
    if said == LATEST:
        return there.last
    if said == EARLIEST:
        return there.trimmed
    return id_of(said)


def _said(bound: Bound | None, topic: str) -> str | None:
    return bound.get(topic) if isinstance(bound, dict) else bound


def kept(options: SourceOptions, topic: str, done: Id, there: TopicExtent | None) -> Id:
    """Return where it really goes on after an id. Raises DataLoss if entries after it are gone, unless that is
    allowed: then the log says which."""
    if there is None:
        lost = f"there is no such topic any more, and {text(done)} of it was done" if done > entry_ids.MIN else ""
    elif there.last < done:
        lost = f"it ends at {text(there.last)}, but {text(done)} is done: it was made again"
    elif there.trimmed > done:
        lost = f"entries after {text(done)}, up to {text(there.trimmed)}, were trimmed away"
    else:
        return done
    if lost:
        lose(options, topic, lost)
    return (there or NOTHING).trimmed


def lose(options: SourceOptions, topic: str, what: str) -> None:
    """Raise DataLoss, unless that is allowed: then the log says what was skipped."""
    if options.fail_on_data_loss:
        raise DataLoss(topic, what)
    skipped(topic, what)


def skipped(topic: str, what: str) -> None:
    """Say what is not read though it was to be."""
    _LOG.warning("topic %r: %s. It is skipped: failOnDataLoss is false", topic, what)


# -- the windows of a batch


def extents(found: Catalog) -> Extents:
    """Return how far topics go now."""
    return {topic: (name, found.extent(name)) for topic, name in sorted(found.names().items())}


def windows(found: Catalog, options: SourceOptions, then: Extents) -> list[Window]:
    """Return the ids between which a batch reads each topic, of what there was `then`. Raises DataLoss where that is
    gone, and TopicMissing."""
    if options.ranges is not None:
        asked = list(options.ranges)
    else:
        asked = []
        for topic, (name, there) in then.items():
            extent = known(options, topic, there)
            asked.append((name, starting(options, topic, extent), min(ending(options, topic, extent), extent.last)))
    return [
        (name, kept(options, text_of(name), after, _now(found, options, name, upto)) if after < upto else after, upto)
        for name, after, upto in asked
    ]


def known(options: SourceOptions, topic: str, there: TopicExtent | None) -> TopicExtent:
    """Return the extent of a topic. Raises TopicMissing if it has none, and need not be missing."""
    if there is None and not options.allow_missing:
        raise TopicMissing(topic)
    return there or NOTHING


def _now(found: Catalog, options: SourceOptions, name: bytes, upto: Id) -> TopicExtent | None:
    """Return how far a topic goes that was there when the read was planned."""
    now = found.extent(name)
    if now is None or now.last < upto:
        lose(options, text_of(name), f"entries up to {text(upto)} were to be read, and it was deleted")
    return now
