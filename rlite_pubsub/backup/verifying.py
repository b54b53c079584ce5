"""Checks that everything in a target is what was written, and that everything that a state needs is there: by the same
checks that a restore makes of each file. Only the last of them is left to it: that LMDB can read the pages together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from rlite_pubsub.backup import blocks, layout
from rlite_pubsub.backup.errors import BackupError
from rlite_pubsub.backup.manifest import Block, check_state
from rlite_pubsub.backup.restoring import Succession, check_places, state_after
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
    pieces: dict[tuple[str, int], bytes] = {}
    needed: dict[Block, None] = {}
    for chain in target.chains():
        yield from _snapshots(target, chain, pieces, needed)
        yield from _changes(target, chain, needed)
    for (digest, pages), meta_page in pieces.items():
        path = layout.piece_of(digest)
        yield Verified(path, _fault(lambda: check_places(path, target.piece(path, digest, pages), meta_page)))  # noqa: B023
    for block in needed:
        path = layout.block_of(block.sha256)
        fault = _fault(lambda: blocks.read(target.place, path, block.sha256))  # noqa: B023
        yield Verified(path, fault and f"{fault} (block {block.path} of the cold store)")


def _snapshots(
    target: BackupTarget, chain: Chain, pieces: dict[tuple[str, int], bytes], needed: dict[Block, None]
) -> Iterator[Verified]:
    there = {change.number for change in chain.changes}
    for snapshot in chain.snapshots:
        try:
            found = target.manifest(snapshot)
            check_state(found)
        except (BackupError, ColdError) as failure:
            yield Verified(snapshot.path, failure.reason)
            continue
        for piece in found.pieces:
            pieces.setdefault((piece.sha256, piece.pages), found.meta)
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
            check_places(change.path, piece, state_after(change.path, piece)[1])
            new_blocks = [Block(**each) for each in piece.head["blocks"]]
        except (BackupError, ColdError) as failure:
            follows = None
            yield Verified(change.path, failure.reason)
        except TypeError as failure:
            follows = None
            yield Verified(change.path, f"its list of blocks is none ({failure})")
        else:
            needed.update(dict.fromkeys(new_blocks))
            yield Verified(change.path, "")
        at = change.number


def _fault(read: Callable[[], object]) -> str:
    try:
        read()
    except (BackupError, ColdError) as failure:
        return failure.reason
    return ""
