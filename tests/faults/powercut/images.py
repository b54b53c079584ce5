"""What a power cut may leave of a folder, by the log of recorder.c: of what was written and not synced, anything.

What a sync has covered is on the disk. Of each later write any sectors may be, in any order: a sector has what was
there at the last sync, or what any write since has put there. A file that has grown may be as long as it was, or as it
is now, with zeros where nothing has arrived.

A name that was made, renamed or unlinked is surely so once the folder that it is in was synced, and by nothing else: a
file may be on the disk without its name, and a folder with all that is in it. Of the changes of names that are not
sure, all may be there, or none; so many of the first (the journals of file systems keep their order); or of each folder
so many of the first (nothing else is promised).
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from struct import Struct
from typing import NamedTuple, TypeAlias

SECTOR_BYTES = 512
_HEAD = Struct("<cHIQQ")
MODES = ("all", "none", "writes", "sectors", "sectors", "late sectors")
NAMES = ("now", "sure", "journal", "folders", "folders")
Image: TypeAlias = dict[str, bytes]
"""Every file with its content."""
_FOLDER = "/"
"""The identity of each: folders are not renamed."""


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


class Change(NamedTuple):
    """Of one name."""

    number: int
    path: str
    identity: str
    """Which file it is now; "" if there is none any more."""


@dataclass
class Folder:
    """What is in it, surely; and what was done since."""

    sure: dict[str, str] = field(default_factory=dict)
    pending: list[Change] = field(default_factory=list)

    def settle(self, number: int) -> None:
        """The changes up to this one are on the disk."""
        self.sure = self.after(number)
        self.pending = [change for change in self.pending if change.number > number]

    def after(self, number: int) -> dict[str, str]:
        """The names, with the changes up to this one."""
        found = dict(self.sure)
        for change in self.pending:
            if change.number <= number:
                found.pop(change.path, None)
                if change.identity:
                    found[change.path] = change.identity
        return found


class Sync(NamedTuple):
    """One that has begun."""

    file: str
    folder: Folder | None
    changes: int
    """So many were made before."""


class Disk:
    """Of one folder, while its log is played."""

    def __init__(self, left: Image | None = None) -> None:
        """`left`: what was there before, surely."""
        self.files: dict[str, File] = {}
        self.folders: dict[str, Folder] = {"": Folder()}
        self._names_now: dict[str, str] = {}
        self._begun: dict[int, Sync] = {}
        self._covered: dict[int, int] = {}  # a sync's number: how many writes of its file it covers
        self._changes = 0
        self._made = 0
        for path, content in (left or {}).items():
            for folder in reversed([*_folders_above(path)]):
                if folder not in self.folders:
                    self.play(Record(b"K", folder, 0, 0, b""))
            self.play(Record(b"M", path, 0, 0, b""))
            self.files[self._names_now[path]].synced[:] = content
        for each in self.folders.values():
            each.settle(self._changes)

    def play(self, record: Record) -> None:
        kind, path = record.kind, record.path
        if kind in b"MWTD" and path not in self._names_now:
            self._made += 1
            identity = f"{path}#{self._made}"
            self.files[identity] = File()
            self._change({path: identity})
        identity = self._names_now.get(path, "")
        if kind in b"WDT":
            self.files[identity].pending.append(record)
        elif kind == b"F":
            self._write_through(identity, record.offset)
        elif kind == b"B":
            self._begun[record.time_ns] = Sync(identity, self.folders.get(path), self._changes)
            self._covered[record.time_ns] = len(self.files[identity].pending) if identity in self.files else 0
        elif kind == b"E":
            self._sync(record.offset)
        elif kind == b"K":
            self.folders.setdefault(path, Folder())
            self._change({path: _FOLDER})
        elif kind == b"U":
            self._change({path: ""})
        elif kind == b"R":
            self._change({path: "", record.data.decode(): identity})

    def image(self, mode: str, dice: random.Random) -> Image:
        """One of those that may be left."""
        names = self._names("now" if mode == "all" else "sure" if mode == "none" else dice.choice(NAMES), dice)
        return {
            name: self.files[identity].image(mode, dice)
            for name, identity in sorted(names.items())
            if identity != _FOLDER and all(folder in names for folder in _folders_above(name))
        }

    def _names(self, mode: str, dice: random.Random) -> dict[str, str]:
        if mode == "now":
            return self._names_now
        numbers = sorted({change.number for folder in self.folders.values() for change in folder.pending})
        cut = dice.choice([0, *numbers])
        found: dict[str, str] = {}
        for _, folder in sorted(self.folders.items()):
            own = dice.choice([0, *(change.number for change in folder.pending)]) if mode == "folders" else cut
            found |= folder.after(0 if mode == "sure" else own)
        return found

    def _change(self, names: dict[str, str]) -> None:
        """At once, if they are in one folder."""
        self._changes += 1
        for path, identity in names.items():
            self._names_now.pop(path, None)
            if identity:
                self._names_now[path] = identity
            self.folders[path.rpartition("/")[0]].pending.append(Change(self._changes, path, identity))

    def _write_through(self, identity: str, offset: int) -> None:
        """The last write there was synced by itself."""
        file = self.files[identity]
        place = max(at for at, one in enumerate(file.pending) if one.kind == b"D" and one.offset == offset)
        _put(file.synced, file.pending.pop(place))
        for number, sync in self._begun.items():
            if sync.file == identity and self._covered[number] > place:
                self._covered[number] -= 1

    def _sync(self, number: int) -> None:
        sync, count = self._begun.pop(number), self._covered.pop(number)
        if sync.folder is not None:
            sync.folder.settle(sync.changes)
        if sync.file in self.files:
            self.files[sync.file].apply(count)
            for other, begun in self._begun.items():
                if begun.file == sync.file:
                    self._covered[other] = max(0, self._covered[other] - count)


def _folders_above(path: str) -> Iterator[str]:
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


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


def write(image: Image, folder: Path) -> None:
    """Put an image there."""
    for name, content in image.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def taken(folder: Path) -> Image:
    """One that was put there."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


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
