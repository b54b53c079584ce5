"""Choosing the blocks that Spark's own Parquet reader may read, and proving that they are what was sealed.

A block is read as a file where nothing about it is left to know: all of it is in what is read, none of its entries was
deleted or trimmed, it was sealed under the topic's name, and it is in a folder. All else is the source's (fetching.py):
the entries that are in no block, and the ids between.

No byte is given to Spark before the sha256 of its file is proved. That is a pass over the bytes, which decodes nothing:
on this machine by threads, elsewhere by the executors. A file that changes afterwards Spark notices by the checksums of
its pages.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from rlite_pubsub.cold import block, paths
from rlite_pubsub.cold.errors import BlockMissing
from rlite_pubsub.cold.local_place import LocalPlace
from rlite_pubsub.pipeline.reading.planning import Window
from rlite_pubsub.storage.topics import entry_ids
from rlite_pubsub.storage.topics.entry_ids import Id

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rlite_pubsub.pipeline.catalog import Catalog
    from rlite_pubsub.storage.cold.cold_blocks import BlockInfo

_GLOB = re.compile(r"[{}\[\]*?\\:]")
"""Hadoop would not take such a path as it is."""


class WholeBlock(NamedTuple):
    """A block all of whose entries are read."""

    name: bytes
    place: LocalPlace
    info: BlockInfo

    @property
    def file(self) -> str:
        return str(self.place.folder / self.info.path)


def whole_blocks(catalog: Catalog, window: Window) -> list[WholeBlock]:
    """Return the whole blocks of this window, in order."""
    name, after, upto = window
    cold = catalog.cold(name)
    if not cold.blocks or after >= upto:
        return []
    place = catalog.place(cold)
    if not isinstance(place, LocalPlace) or _GLOB.search(str(place.folder)):
        return []
    low, high = max(after, cold.floor), min(upto, cold.sealed_to)
    home = f"{paths.folder_of(name, cold.number)}/"
    gone = sorted(cold.deleted)
    return [
        WholeBlock(name, place, one)
        for one in cold.blocks
        if low < one.first and one.last <= high and one.path.startswith(home) and not _is_between(gone, one)
    ]


def _is_between(gone: Sequence[Id], one: BlockInfo) -> bool:
    """Return whether any of these ids, which are in order, belongs to a block."""
    place = bisect_left(gone, one.first)
    return place < len(gone) and gone[place] <= one.last


def rest_of(catalog: Catalog, window: Window, whole: Sequence[WholeBlock]) -> list[Window]:
    """Return the parts of a window that are in none of these blocks: other blocks' ids, and what is in no block."""
    name, after, upto = window
    cold = catalog.cold(name)
    have = {one.info.path for one in whole}
    found: list[Window] = []
    before = -1
    for number, one in enumerate(cold.blocks):
        low = max(after, cold.floor, entry_ids.before(one.first) or entry_ids.MIN)
        high = min(upto, cold.sealed_to, one.last)
        if low >= high or one.path in have:
            continue
        if found and before == number - 1:
            low = found.pop()[1]
        found.append((name, low, high))
        before = number
    hot = max(after, cold.sealed_to) if cold.blocks else after
    return [*found, (name, hot, upto)] if hot < upto else found


def proved(spark: SparkSession, blocks: Sequence[WholeBlock]) -> list[WholeBlock]:
    """Return the blocks that are what was sealed, without those whose file is gone. Raises BlockDamaged,
    PlaceFailed."""
    if not blocks:
        return []
    cores = os.cpu_count() or 1
    if _is_here(spark):
        with ThreadPoolExecutor(min(cores, len(blocks))) as threads:
            are_there = list(threads.map(_prove, blocks))
    else:
        context = spark.sparkContext
        slices = min(len(blocks), context.defaultParallelism * 4)
        pairs = [(one.place, one.info) for one in blocks]
        are_there = context.parallelize(pairs, slices).map(_prove_pair).collect()
    return [one for one, is_there in zip(blocks, are_there, strict=True) if is_there]


def _is_here(spark: SparkSession) -> bool:
    """Return whether the executors see the same disk as we do."""
    from pyspark.errors import PySparkException

    try:
        return (spark.sparkContext.master or "").startswith("local")
    except PySparkException:  # a client of Spark Connect has none
        return True


def _prove(one: WholeBlock) -> bool:
    return _prove_pair((one.place, one.info))


def _prove_pair(pair: tuple[LocalPlace, BlockInfo]) -> bool:
    try:
        block.prove(*pair)
    except BlockMissing:
        return False
    return True


def ranges_text(rest: Sequence[Window]) -> str:
    """Return ranges as the source's option `ranges` takes them."""
    return " ".join(
        chain.from_iterable(
            (name.hex() or "-", entry_ids.text(after).decode(), entry_ids.text(upto).decode())
            for name, after, upto in rest
        )
    )
