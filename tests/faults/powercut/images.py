"""What a power cut may leave of a folder, by the log of recorder.c: of what was written and not synced, anything.

What a sync has covered is on the disk. Of each later write any sectors may be, in any order: a sector has what was
there at the last sync, or what any write since has put there. A file that has grown may be as long as it was, or as it
is now, with zeros where nothing has arrived. A file that was made, renamed or unlinked may still be as before, as long
as nothing in the folder was synced since: the journals of file systems keep the order of such changes.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from struct import Struct
from typing import NamedTuple

SECTOR_BYTES = 512
_HEAD = Struct("<cHIQQ")
MODES = ("all", "none", "writes", "sectors", "sectors", "late sectors")


class Record(NamedTuple):
    """One thing that was done."""

    kind: bytes
    path: str
    offset: int
    time_ns: int
    data: bytes


@dataclass
class File:
    """As the disk surely has it, and what may be there of what was written since."""

    synced: bytearray = field(default_factory=bytearray)
    pending: list[Record] = field(default_factory=list)

    def apply(self, count: int) -> None:
        """So many of the oldest are on the disk."""
        for record in self.pending[:count]:
            _put(self.synced, record)
        del self.pending[:count]

    def image(self, mode: str, dice: random.Random) -> bytes:
        """One of those that may be left."""
        if mode == "none":
            return bytes(self.synced)
        if mode == "writes":
            kept = [record for record in self.pending if dice.random() < 0.5]
        elif mode == "late sectors":  # only the last of it has not arrived
            kept = self.pending[: -dice.randint(1, 4)]
        else:
            kept = self.pending
        found = bytearray(self.synced)
        for record in kept:
            _put(found, record)
        if "sectors" in mode:
            rest = self.pending[len(kept) :] if mode == "late sectors" else self.pending
            _tear(found, bytes(self.synced) if mode == "sectors" else bytes(found), rest, dice)
        return bytes(found)


class Disk:
    """Of one folder, while its log is played."""

    def __init__(self) -> None:
        self.files: dict[str, File] = {}
        self.names: dict[str, str] = {}  # as they are surely on the disk: a name, and which file it is
        self._names_now: dict[str, str] = {}
        self._begun: dict[int, dict[str, int]] = {}  # a sync's number: how many writes of its file it covers
        self._made = 0

    def play(self, record: Record) -> None:
        kind, path = record.kind, record.path
        if kind in b"MWTD" and path not in self._names_now:
            self._made += 1
            self._names_now[path] = f"{path}#{self._made}"
            self.files[self._names_now[path]] = File()
        identity = self._names_now.get(path, "")
        if kind in b"WD" or kind == b"T":
            self.files[identity].pending.append(record)
        elif kind == b"F":
            self._sync(
                identity,
                next(
                    at + 1
                    for at, one in reversed(list(enumerate(self.files[identity].pending)))
                    if one.kind == b"D" and one.offset == record.offset
                ),
                only_last=True,
            )
        elif kind == b"B":
            self._begun[record.time_ns] = {identity: len(self.files[identity].pending)} if identity else {}
        elif kind == b"E":
            for one, count in self._begun.pop(record.offset).items():
                self._sync(one, count)
        elif kind == b"U":
            self._names_now.pop(path, None)
        elif kind == b"R":
            self._names_now[record.data.decode()] = self._names_now.pop(path)

    def image(self, mode: str, dice: random.Random) -> dict[str, bytes]:
        """One of those that may be left: every file with its content."""
        names = self._names_now if mode == "all" or (mode != "none" and dice.random() < 0.5) else self.names
        return {name: self.files[identity].image(mode, dice) for name, identity in names.items()}

    def _sync(self, identity: str, count: int, only_last: bool = False) -> None:
        file = self.files[identity]
        if only_last:
            _put(file.synced, file.pending.pop(count - 1))
        else:
            for other in self._begun.values():
                if identity in other:
                    other[identity] = max(0, other[identity] - count)
            file.apply(count)
        self.names = dict(self._names_now)


def read(log: Path) -> Iterator[Record]:
    """Its records, in order."""
    packed = log.read_bytes()
    at = 0
    while at < len(packed):
        kind, path_bytes, data_bytes, offset, time_ns = _HEAD.unpack_from(packed, at)
        at += _HEAD.size
        path = packed[at : at + path_bytes].decode()
        at += path_bytes
        yield Record(kind, path, offset, time_ns, packed[at : at + data_bytes])
        at += data_bytes


def write(image: dict[str, bytes], folder: Path) -> None:
    """Put an image there."""
    for name, content in image.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _put(content: bytearray, record: Record) -> None:
    if record.kind == b"T":
        del content[record.offset :]
        content.extend(bytes(record.offset - len(content)))
        return
    end = record.offset + len(record.data)
    content.extend(bytes(max(0, end - len(content))))
    content[record.offset : end] = record.data


def _tear(content: bytearray, before: bytes, writes: list[Record], dice: random.Random) -> None:
    """Each sector that was written to has one of the versions that it has had since the last sync."""
    versions: dict[int, list[bytes]] = {}
    current = bytearray(before)
    for record in writes:
        _put(current, record)
        if record.kind == b"T":
            continue
        for sector in range(record.offset // SECTOR_BYTES, -(-(record.offset + len(record.data)) // SECTOR_BYTES)):
            at = sector * SECTOR_BYTES
            old = before[at : at + SECTOR_BYTES].ljust(SECTOR_BYTES, b"\0")
            versions.setdefault(sector, [old]).append(bytes(current[at : at + SECTOR_BYTES]).ljust(SECTOR_BYTES, b"\0"))
    size = len(current) if dice.random() < 0.8 else len(before)
    content[:] = current[:size]
    for sector, found in versions.items():
        at = sector * SECTOR_BYTES
        if at < size:
            content[at : min(at + SECTOR_BYTES, size)] = dice.choice(found)[: size - at]
