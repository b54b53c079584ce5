"""The contents of a cold store, by its files: whole manifests, their blocks, and blocks that are in none.

Nobody refers to a *stray*: a worker that sealed, compacted or archived was killed behind its name and before the rest,
and the process that repeated its work gave the block another name. `collect` removes it, but nothing that anybody has,
or may be about to have: no manifest has the block, nor the store that it says it is of, and it is a day old, as its
place says. One that can't be read is left for `cold verify` to name.
"""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple

from rlite_pubsub.cold import footer, manifest, paths
from rlite_pubsub.cold.errors import ColdError, ManifestDamaged
from rlite_pubsub.cold.manifest import Manifest
from rlite_pubsub.cold.place import Place

STRAY_AGE_S = 24 * 3600.0
LOOK_MS = 3600 * 1000


class Survey(NamedTuple):
    """The contents of one place."""

    manifests: tuple[Manifest, ...]
    damaged: tuple[ManifestDamaged, ...]
    """Manifests that are there and cannot be read, and those that ought to be there."""
    strays: tuple[str, ...]
    """Blocks that no manifest has, beside one that is whole: they are dropped, or their sealing was cut short."""
    orphans: tuple[str, ...]
    """Blocks that no manifest has, because theirs is lost."""


def survey(place: Place) -> Survey:
    """Look at the names of all files, and into the manifests. Raises PlaceFailed."""
    files = [file.path for file in place.files()]
    manifests: list[Manifest] = []
    damaged: dict[str, ManifestDamaged] = {}
    for path in files:
        if path.endswith(f"/{paths.MANIFEST}"):
            try:
                manifests.append(manifest.read(place, path))
            except ManifestDamaged as failure:
                damaged[path] = failure
    linked = {block.path for each in manifests for block in each.blocks}
    whole = {each.path for each in manifests}
    strays: list[str] = []
    orphans: list[str] = []
    for path in files:
        if path.endswith(paths.SUFFIX) and path not in linked:
            home = beside(path)
            (strays if home in whole else orphans).append(path)
            if home not in whole and home not in damaged:
                damaged[home] = ManifestDamaged(home, "this manifest is not there: it can be rebuilt from the blocks")
    return Survey(tuple(manifests), tuple(damaged[path] for path in sorted(damaged)), tuple(strays), tuple(orphans))


def beside(path: str) -> str:
    """Return the manifest in a block's folder."""
    return f"{path.rpartition('/')[0]}/{paths.MANIFEST}"


def is_in(path: str, topic: bytes | None) -> bool:
    """Return whether a file is in the folder of a topic (or of any)."""
    return topic is None or path.startswith(f"{paths.folder_name(topic)}/")


def collect(place: Place, found: Survey, store: str, known: Container[str], now_s: float) -> list[str]:
    """Remove the strays of this store that are old enough; their paths. `known`: what the store has. Raises
    ColdError."""
    old = {
        file.path
        for file in place.files()
        if file.modified_s is not None and now_s - file.modified_s >= STRAY_AGE_S
    }
    removed = []
    for path in found.strays:
        if path in old and path not in known and _is_of(place, path, store):
            place.delete(path)
            removed.append(path)
    return removed


def _is_of(place: Place, path: str, store: str) -> bool:
    try:
        return footer.read(place, path).origin.store == store
    except (ColdError, FileNotFoundError):
        return False
