"""The errors of a cold store. Each names the file; none is pyarrow's or the OS's own, and none means that the rest
cannot be read."""

from __future__ import annotations

from rlite_pubsub.storage.errors import StoreError


class ColdError(StoreError):
    """Something is wrong in the cold store."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason

    def __reduce__(self) -> tuple[type[ColdError], tuple[str, str]]:
        return type(self), (self.path, self.reason)


class PlaceFailed(ColdError):
    """The place cannot be reached, or does not let us: that says nothing about what is in it."""


class BlockMissing(ColdError):
    """The file is not there."""


class BlockDamaged(ColdError):
    """The file is not what was written: cut off, or with other bytes."""


class ForeignBlock(ColdError):
    """A block, and whole, but not this one: another topic's, another store's, or other entries."""


class ManifestDamaged(ColdError):
    """The manifest is not there or cannot be read: it can be rebuilt from the blocks."""


class ForeignManifest(ColdError):
    """The manifest is another store's: two stores share one place."""


class EntryMalformed(ColdError):
    """What should be an entry is not one, or not the one of its id."""
