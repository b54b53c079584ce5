"""The layout of a backup target.

    backup.json                                what this is, and whose
    pieces/XX/SHA256.pages                     pages of data.mdb, a stretch of the file each, whoever needs them
    changes/CHAIN/NUMBER-TIME.pages            the pages that were changed since the one before
    snapshots/CHAIN/FIRST-LAST-TIME.json       a manifest: which pieces, and the changes FIRST+1 to LAST, are a state
    blocks/XX/SHA256.parquet                   blocks of the local cold store

CHAIN is when it was begun, ms since 1970, and a random word; NUMBER, FIRST and LAST count the changes of a chain from 1
(0: none yet); TIME is that of the state, ms since 1970: all numbers have their zeros, so that names sort as they do.
SHA256 is a digest in hex, XX its beginning. What is not named so is nobody's, and left alone.
"""

from __future__ import annotations

import re
import secrets
from typing import NamedTuple

HOME = "backup.json"
PIECES, CHANGES, SNAPSHOTS, BLOCKS = "pieces", "changes", "snapshots", "blocks"
_CHAIN = r"(?P<chain>\d{13}-[0-9a-f]{8})"
_CHANGE = re.compile(rf"{CHANGES}/{_CHAIN}/(?P<number>\d{{10}})-(?P<time>\d{{13}})\.pages")
_SNAPSHOT = re.compile(rf"{SNAPSHOTS}/{_CHAIN}/(?P<first>\d{{10}})-(?P<last>\d{{10}})-(?P<time>\d{{13}})\.json")
_BY_DIGEST = re.compile(rf"(?:{PIECES}|{BLOCKS})/[0-9a-f]{{2}}/(?P<digest>[0-9a-f]{{64}})\.(?:pages|parquet)")


class ChangeName(NamedTuple):
    """The parts of the name of a file of changes."""

    chain: str
    number: int
    time_ms: int

    @property
    def path(self) -> str:
        return f"{CHANGES}/{self.chain}/{self.number:010d}-{self.time_ms:013d}.pages"


class SnapshotName(NamedTuple):
    """The parts of the name of a manifest."""

    chain: str
    first: int
    last: int
    time_ms: int

    @property
    def path(self) -> str:
        return f"{SNAPSHOTS}/{self.chain}/{self.first:010d}-{self.last:010d}-{self.time_ms:013d}.json"


def new_chain(now_ms: int) -> str:
    return f"{now_ms:013d}-{secrets.token_hex(4)}"


def piece_of(digest: str) -> str:
    return f"{PIECES}/{digest[:2]}/{digest}.pages"


def block_of(digest: str) -> str:
    return f"{BLOCKS}/{digest[:2]}/{digest}.parquet"


def change_name(path: str) -> ChangeName | None:
    """Return the parts of the name; None if it is not such a file."""
    found = _CHANGE.fullmatch(path)
    return None if found is None else ChangeName(found["chain"], int(found["number"]), int(found["time"]))


def snapshot_name(path: str) -> SnapshotName | None:
    """Return the parts of the name; None if it is not such a file."""
    found = _SNAPSHOT.fullmatch(path)
    if found is None:
        return None
    return SnapshotName(found["chain"], int(found["first"]), int(found["last"]), int(found["time"]))


def digest_in(path: str) -> str | None:
    """Return the digest that a path has in it, of a piece or a block; None for any other path."""
    found = _BY_DIGEST.fullmatch(path)
    return None if found is None else found["digest"]
