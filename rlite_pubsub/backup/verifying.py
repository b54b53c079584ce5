"""Checks that everything in a target is what was written, and that everything that a state needs is there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from rlite_pubsub.backup import blocks, layout
from rlite_pubsub.backup.errors import BackupError
from rlite_pubsub.backup.manifest import Block
from rlite_pubsub.backup.restoring import Succession
from rlite_pubsub.backup.target import BackupTarget, Chain
from rlite_pubsub.cold.errors import ColdError


class Verified(NamedTuple):
    """A file that is needed."""

    path: str
    fault: str
    """What is wrong with it; "" if nothing is."""


def verify(target: BackupTarget) -> Iterator[Verified]:
    """Each file that is needed, once. Raises BackupError where this is no target; PlaceFailed where it can't be
    listed."""
    target.check()
    pieces: dict[str, None] = {}
    needed: dict[Block, None] = {}
    for chain in target.chains():
        yield from _snapshots(target, chain, pieces, needed)
        yield from _changes(target, chain, needed)
    for digest in pieces:
        path = layout.piece_of(digest)
        yield Verified(path, _fault(lambda: target.piece(path, digest)))  # noqa: B023
    for block in needed:
        path = layout.block_of(block.sha256)
        fault = _fault(lambda: blocks.read(target.place, path, block.sha256))  # noqa: B023
        yield Verified(path, fault and f"{fault} (block {block.path} of the cold store)")


def _snapshots(
    target: BackupTarget, chain: Chain, pieces: dict[str, None], needed: dict[Block, None]
) -> Iterator[Verified]:
    there = {change.number for change in chain.changes}
    for snapshot in chain.snapshots:
        try:
            found = target.manifest(snapshot)
        except (BackupError, ColdError) as failure:
            yield Verified(snapshot.path, failure.reason)
            continue
        pieces.update(dict.fromkeys(piece.sha256 for piece in found.pieces))
        needed.update(dict.fromkeys(found.blocks))
        missing = sorted(set(range(snapshot.first + 1, snapshot.last + 1)) - there)
        fault = f"its change {missing[0]} is not there: it can't be restored" if missing else ""
        yield Verified(snapshot.path, fault)


def _changes(target: BackupTarget, chain: Chain, needed: dict[Block, None]) -> Iterator[Verified]:
    if not chain.snapshots:
        return  # nobody can restore these
    follows: Succession | None = None
    at = -1
    for change in chain.changes:
        if change.number != at + 1 or follows is None:
            follows = Succession(change.number - 1)
        try:
            piece = target.piece(change.path)
            follows.check(change.path, piece)
        except (BackupError, ColdError) as failure:
            follows = None
            yield Verified(change.path, failure.reason)
        else:
            needed.update(dict.fromkeys(Block(**each) for each in piece.head["blocks"]))
            yield Verified(change.path, "")
        at = change.number


def _fault(read: Callable[[], object]) -> str:
    try:
        read()
    except (BackupError, ColdError) as failure:
        return failure.reason
    return ""
