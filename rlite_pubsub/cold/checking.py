"""A cold store by itself, without its server: whether it is whole, and how its manifests are made again.

Each file is looked at alone; what is wrong with one is reported with its name and does not affect the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rlite_pubsub.cold import block, footer, manifest
from rlite_pubsub.cold.errors import (
    BlockDamaged,
    BlockMissing,
    ColdError,
    ForeignBlock,
    ManifestDamaged,
    PlaceFailed,
)
from rlite_pubsub.cold.manifest import Manifest
from rlite_pubsub.cold.origin import Origin
from rlite_pubsub.cold.place import Place
from rlite_pubsub.cold.survey import is_in, survey
from rlite_pubsub.storage.cold.cold_blocks import BlockInfo

OK = "ok"
STRAY = "stray"
"""A whole block that is in no manifest, and nothing is lost by that."""

_KINDS: dict[type[ColdError], str] = {
    BlockMissing: "missing",
    BlockDamaged: "damaged",
    ForeignBlock: "foreign",
    ManifestDamaged: "manifest",
    PlaceFailed: "unreachable",
}


class Checked(NamedTuple):
    """The result of checking a file."""

    path: str
    kind: str
    """`ok`, `stray`, or what is wrong: missing, damaged, foreign, manifest, unreachable."""
    reason: str = ""
    origin: Origin | None = None
    entries: int = 0
    """Entries that are proved to be there."""
    file_bytes: int = 0

    @property
    def is_wrong(self) -> bool:
        return self.kind not in (OK, STRAY)


def verify(place: Place, topic: bytes | None = None) -> Iterator[Checked]:
    """Look into every manifest and every block, of a topic or of all. Raises PlaceFailed if they cannot be listed."""
    found = survey(place)
    for failure in found.damaged:
        if is_in(failure.path, topic):
            yield _wrong(failure)
    for each in found.manifests:
        if topic in (None, each.origin.topic):
            yield Checked(each.path, OK, "", each.origin)
            for known in each.blocks:
                yield _verified(place, each.origin, known)
    for path in found.strays:
        if is_in(path, topic):
            yield _alone(place, path, STRAY, "whole, and in no manifest")
    for path in found.orphans:
        if is_in(path, topic):
            yield _alone(place, path, OK, "")


def _wrong(failure: ColdError, origin: Origin | None = None) -> Checked:
    return Checked(failure.path, _KINDS[type(failure)], failure.reason, origin)


def _verified(place: Place, origin: Origin, known: BlockInfo) -> Checked:
    try:
        block.verify(place, known)
        store = footer.known(place, known).origin.store
        if store != origin.store:
            raise ForeignBlock(known.path, f"it is of store {store}, and its manifest of {origin.store}")
    except ColdError as failure:
        return _wrong(failure, origin)
    return Checked(known.path, OK, "", origin, known.count, known.file_bytes)


def _alone(place: Place, path: str, kind: str, reason: str) -> Checked:
    """Return a block that only speaks for itself."""
    try:
        info, origin = block.info_of(place, path)
    except ColdError as failure:
        return _wrong(failure)
    return Checked(path, kind, reason, origin, info.count, info.file_bytes)


class Rebuilt(NamedTuple):
    """The result of rebuilding manifests."""

    manifests: tuple[Manifest, ...]
    left_out: tuple[Checked, ...]
    """Blocks of which another one, that was sealed later, has entries."""
    problems: tuple[Checked, ...]
    """Blocks that are in no manifest, because something is wrong with them."""


def rebuild(place: Place, topic: bytes | None = None, *, is_forced: bool = False) -> Rebuilt:
    """Make lost and damaged manifests again, from nothing but the blocks; by force also those that are whole.

    What only the store knows does not come back: entries that are deleted, blocks that were dropped and whose files are
    in their grace, and that a topic has blocks of another. Nothing is removed. Raises PlaceFailed, ForeignManifest."""
    found = survey(place)
    files = set(found.orphans)
    if is_forced:
        files.update(found.strays, (each.path for known in found.manifests for each in known.blocks))
    blocks, problems = alone(place, sorted(path for path in files if is_in(path, topic)))
    made: list[Manifest] = []
    left_out: list[Checked] = []
    for each, others in blocks:
        manifest.write(place, each)
        made.append(each)
        left_out += [
            Checked(other.path, STRAY, "a later block has its entries", each.origin, other.count, other.file_bytes)
            for other in others
        ]
    return Rebuilt(tuple(made), tuple(left_out), tuple(map(_wrong, problems)))


def alone(place: Place, files: Iterable[str]) -> tuple[list[tuple[Manifest, list[BlockInfo]]], list[ColdError]]:
    """Return what blocks show without any manifest: for each topic its manifest and the blocks that are not in it; and
    why some are unreadable. Raises PlaceFailed."""
    by_topic: dict[tuple[str, int], dict[str, tuple[BlockInfo, Origin]]] = {}
    problems: list[ColdError] = []
    for path in files:
        try:
            info, origin = block.info_of(place, path)
        except (BlockMissing, BlockDamaged, ForeignBlock) as failure:
            problems.append(failure)
        else:
            by_topic.setdefault((origin.store, origin.number), {})[path] = info, origin
    found = []
    for blocks in by_topic.values():
        chosen, others = _without_overlaps([info for info, _ in blocks.values()])
        last = max(chosen, key=lambda info: info.sealed_ms)
        found.append((manifest.of(blocks[last.path][1], chosen), others))  # under the name that the topic had last
    return sorted(found, key=lambda one: one[0].path), problems


def _without_overlaps(blocks: Iterable[BlockInfo]) -> tuple[list[BlockInfo], list[BlockInfo]]:
    """(blocks of which none has entries of another's, the others); what was sealed later counts."""
    chosen: list[BlockInfo] = []
    others: list[BlockInfo] = []
    for each in sorted(blocks, key=lambda one: (one.sealed_ms, one.count, one.path), reverse=True):
        is_apart = all(each.last < other.first or other.last < each.first for other in chosen)
        (chosen if is_apart else others).append(each)
    return chosen, others
