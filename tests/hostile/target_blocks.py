"""Blocks and manifests of a cold store, damaged: what is read of them is what was written, or an error that names the
file; the others are read as before; a manifest comes back from its blocks."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

from cold_logs import NEWS, STORE, log_of, read_all, seal
from damage import damaged
from victim import MAX_GROWTH_BYTES, Found, Holds

from rlite_pubsub.cold import block, checking, footer, manifest, restoring
from rlite_pubsub.cold.errors import ColdError
from rlite_pubsub.cold.local_place import LocalPlace
from rlite_pubsub.cold.origin import Origin
from rlite_pubsub.cold.places import open_place
from rlite_pubsub.storage.cold.cold_blocks import BlockInfo

TOKENS = [
    b"\0",
    b"\xff" * 4,
    b"PAR1",
    b"RLBLOCK1",
    b'"',
    b"}",
    b"[",
    b"null",
    b"-1",
    b"1e999",
    b"9" * 30,
    b"\\u0000",
    b"\x15\x02",
]
ODD = Origin(STORE, b"\xffodd:one", 9)
LARGE = Origin(STORE, b"large", 11)
"""Its block has two row groups."""


class Blocks:
    """Attacks a cold store in `folder` from within this process."""

    def __init__(self, folder: Path) -> None:
        place = open_place("", folder)
        assert isinstance(place, LocalPlace)
        self._place = place
        self._blocks: dict[str, BlockInfo] = {}
        self._origins: dict[str, Origin] = {}
        for origin, counts in ((NEWS, (60, 200, 1)), (ODD, (60, 300)), (LARGE, (17_000,))):
            infos = [seal(place, log_of(count, 1_000_000 * at), origin) for at, count in enumerate(counts, 1)]
            self._blocks |= {info.path: info for info in infos}
            made = manifest.of(origin, infos)
            manifest.write(place, made)
            self._origins |= {path: origin for path in (made.path, *(info.path for info in infos))}
        self._truth = {path: read_all(place, info) for path, info in self._blocks.items()}
        self._files = {file.path: bytes(place.read(file.path)) for file in place.files()}
        self._pieces = {path: self._groups(info) for path, info in self._blocks.items()}
        self._calm_bytes = 0
        self.holds: Holds = {}

    def attack(self, chance: Random) -> None:
        path = chance.choice(sorted(self._files))
        if self._origins[path] is LARGE and chance.random() < 0.95:
            return  # it takes long
        whole = self._files[path]
        others = [other for other in self._files.values() if other is not whole]
        bad = chance.choice(others) if chance.random() < 0.05 else damaged(chance, whole, TOKENS)
        if bad == whole:
            return
        try:
            self._place.write(path, bad)
            footer.known.cache_clear()
            self._look(path)
        finally:
            self._place.write(path, whole)

    def _look(self, path: str) -> None:
        damage = {each.path for each in checking.verify(self._place, self._origins[path].topic) if each.is_wrong}
        if damage != {path}:
            raise Found(f"{path} is damaged, and {damage or 'nothing'} is said to be")
        if path in self._blocks:
            for number, truth in enumerate(self._pieces[path]):
                try:
                    if bytes(block.read_group(self._place, self._blocks[path], number).blob) != truth:
                        raise Found(f"row group {number} of {path} is read otherwise than it was written")
                except ColdError:
                    continue
        else:
            checking.rebuild(self._place, is_forced=True)
            if self._place.read(path) != self._files[path]:
                raise Found(f"{path} does not come back from its blocks")
        read = 0
        for part in restoring.restore(self._place, self._origins[path].topic):
            if not isinstance(part, ColdError):
                read += sum(1 for _ in restoring.entries_in(part))
        origin = self._origins[path]
        least = sum(info.count for each, info in self._blocks.items() if each != path and self._origins[each] is origin)
        if not least <= read <= least + (self._blocks[path].count if path in self._blocks else 0):
            raise Found(f"{read} entries were read while {path} is damaged, and the others have {least}")

    def _groups(self, info: BlockInfo) -> list[bytes]:
        return [bytes(block.read_group(self._place, info, number).blob) for number in range(len(info.groups))]

    def check_memory(self) -> int:
        for line in Path(f"/proc/{os.getpid()}/status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                own = int(line.split()[1]) * 1024
        self._calm_bytes = self._calm_bytes or own
        if own - self._calm_bytes > MAX_GROWTH_BYTES:
            raise Found(f"its own memory went from {self._calm_bytes >> 20} MB to {own >> 20} MB")
        return own - self._calm_bytes

    def close(self) -> None:
        """Nothing runs."""
