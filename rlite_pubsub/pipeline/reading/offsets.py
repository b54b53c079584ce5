"""Offsets: for each topic the id of the last entry that is done. `0-0` is before all entries.

So an offset is what a stream's progress shows, what a checkpoint holds, and what startingOffsets and endingOffsets
take: a read goes on behind the one, and up to and with the other.
"""

from __future__ import annotations

from rlite_pubsub.pipeline.errors import DataLoss
from rlite_pubsub.pipeline.options import EARLIEST, LATEST, Bound, SourceOptions, id_of
from rlite_pubsub.pipeline.topics import TopicExtent
from rlite_pubsub.storage.topics import entry_ids
from rlite_pubsub.storage.topics.entry_ids import Id

Offsets = dict[str, str]


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
    allowed."""
    if there is None:
        if done > entry_ids.MIN and options.fail_on_data_loss:
            raise DataLoss(topic, f"there is no such topic any more, and {text(done)} of it was done")
        return entry_ids.MIN
    if there.last < done:
        if options.fail_on_data_loss:
            raise DataLoss(topic, f"it ends at {text(there.last)}, but {text(done)} is done: it was made again")
        return there.trimmed
    if there.trimmed > done:
        if options.fail_on_data_loss:
            raise DataLoss(topic, f"entries after {text(done)}, up to {text(there.trimmed)}, were trimmed away")
        return there.trimmed
    return done
