"""FORMAT.md, "Blocks", byte for byte: what was written once is read for ever.

    python tests/cold/test_golden.py     writes the golden files of this version, where there are none
"""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from cold_logs import Log, chunk_of, seal

from rlite_pubsub.cold import block, checking, footer, manifest, paths
from rlite_pubsub.cold.origin import Origin
from rlite_pubsub.cold.place import Place
from rlite_pubsub.cold.places import open_place
from rlite_pubsub.storage.topics.entry_ids import PART_MAX

GOLDEN = Path(__file__).parent / "golden" / f"format_{footer.FORMAT}"
SEALED_MS = 1_700_000_009_000
NEWS = Origin("00112233445566778899aabbccddeeff", b"news", 7)
ODD = Origin("00112233445566778899aabbccddeeff", b"_odd:\xff/", 2**64 - 1)

LOGS: dict[Origin, list[Log]] = {
    NEWS: [
        [
            ((1_700_000_000_000, 0), [b"value", b"hello"]),
            ((1_700_000_000_000, 1), [b"value", b"hello", b"value", b"again", b"key", b""]),
            ((1_700_000_000_001, 0), [b"", b""]),
        ],
        [((1_700_000_000_005, seq), [b"value", b"%d" % seq]) for seq in range(40)],
    ],
    ODD: [
        [
            ((0, 1), [b"\r\n", b"$5\r\nhello\r\n", b"\xff\x00", bytes(range(256))]),
            ((2**63 - 1, 2**63), [b"f", b"v"]),
            ((PART_MAX, PART_MAX), [b"f", b"v"]),
        ]
    ],
}
"""What the golden blocks hold."""


def write(place: Place) -> None:
    for origin, logs in LOGS.items():
        manifest.write(place, manifest.of(origin, [seal(place, log, origin, SEALED_MS) for log in logs]))


@pytest.fixture
def golden() -> Place:
    return open_place(str(GOLDEN), "/")


def test_golden_blocks_are_read_byte_for_byte(golden: Place) -> None:
    for origin, logs in LOGS.items():
        found = manifest.read(golden, paths.manifest_of(origin.topic, origin.number))
        assert found.origin == origin
        for info, log in zip(found.blocks, logs, strict=True):
            assert info.path == paths.block_of(origin.topic, origin.number, log[0][0], log[-1][0])
            assert (info.first, info.last, info.count, info.sealed_ms) == (log[0][0], log[-1][0], len(log), SEALED_MS)
            assert block.read_group(golden, info, 0).value == chunk_of(log).value
            block.verify(golden, info)
            assert block.info_of(golden, info.path) == (block.complete(golden, info), origin)
    assert not [each for each in checking.verify(golden) if each.kind != "ok"]


def test_blocks_are_drawn_as_they_were(golden: Place, tmp_path: Path) -> None:
    """Not their bytes: these change with the version of the library that compresses."""
    place = open_place("", tmp_path)
    write(place)
    assert [file.path for file in place.files()] == [file.path for file in golden.files()]
    for file in place.files():
        if file.path.endswith(paths.SUFFIX):
            one, other = (pq.read_metadata(Path(each.url) / file.path) for each in (place, golden))
            assert one.schema.equals(other.schema)
            assert _words(one) == _words(other)


def _words(metadata: pq.FileMetaData) -> dict[str, object]:
    """What a block says of itself, but for what depends on compression."""
    (key,) = metadata.metadata
    assert key == footer.KEY.encode()
    said: dict[str, object] = json.loads(metadata.metadata[key])
    groups = said["groups"]
    assert isinstance(groups, list)
    for group in groups:
        assert group["start"] >= 4 and group["stop"] > group["start"] and len(group["sha256"]) == 64
        del group["start"], group["stop"], group["sha256"]
    return said


def test_the_seal_stands_before_the_metadata(golden: Place) -> None:
    for file in golden.files():
        if file.path.endswith(paths.SUFFIX):
            data = golden.read(file.path)
            assert data[:4] == data[-4:] == b"PAR1"
            length = int.from_bytes(data[-8:-4], "little")
            start = len(data) - 8 - length - 72
            assert data[start : start + 8] == b"RLBLOCK1"
            assert data[start + 8 : start + 40] == sha256(data[:start]).digest()
            assert data[start + 40 : start + 72] == sha256(data[start + 72 : -8]).digest()


if __name__ == "__main__":
    assert not list(GOLDEN.rglob("*.parquet")), f"{GOLDEN} has golden files: raise footer.FORMAT instead"
    write(open_place(str(GOLDEN), "/"))
