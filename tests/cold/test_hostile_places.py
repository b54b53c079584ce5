"""A cold store that is anybody's: what is no file is not opened, and a manifest of brackets is a damaged manifest."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rlite_pubsub.cold import manifest, place, survey
from rlite_pubsub.cold.errors import ManifestDamaged, PlaceFailed
from rlite_pubsub.cold.local_place import LocalPlace

PATH = "topic/1/_manifest.json"


@pytest.fixture
def cold(tmp_path: Path) -> LocalPlace:
    (tmp_path / "topic" / "1").mkdir(parents=True)
    return LocalPlace(tmp_path)


@pytest.mark.parametrize("text", [b"[" * 200_000, b'{"format": 1, "number": 1e999}', b"\xff\xfe", b"null"])
def test_a_manifest_of_anything_is_a_damaged_manifest(cold: LocalPlace, text: bytes) -> None:
    (cold.folder / PATH).write_bytes(text)
    with pytest.raises(ManifestDamaged):
        manifest.read(cold, PATH)
    assert [damaged.path for damaged in survey.survey(cold).damaged] == [PATH]


@pytest.mark.parametrize("what", ["fifo", "device"])
def test_what_is_no_file_is_not_opened(cold: LocalPlace, what: str) -> None:
    if what == "fifo":
        os.mkfifo(cold.folder / PATH)
    else:
        (cold.folder / PATH).symlink_to("/dev/zero")
    with pytest.raises(PlaceFailed, match="regular file"):
        manifest.read(cold, PATH)


def test_what_is_too_large_for_memory_is_read_by_ranges_only(
    cold: LocalPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, "MOST_WHOLE_BYTES", 100)
    (cold.folder / PATH).write_bytes(bytes(101))
    assert cold.read(PATH, 0, 50) == bytes(50)
    with pytest.raises(PlaceFailed, match="101 bytes"):
        cold.read(PATH)
