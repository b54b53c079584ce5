"""The model of a disk that loses power: what it must have kept, and what it may have lost. If it lied, images would
prove nothing."""

from __future__ import annotations

import random

from tests.faults.powercut.images import MODES, Disk, Record


def did(kind: bytes, path: str, number: int = 0, data: bytes = b"") -> Record:
    """Something that is in a log: `number` is where it was written, or which sync it is."""
    return Record(kind, path, number, number, data)


def images(*log: Record) -> list[dict[str, bytes]]:
    """Many that may be left behind it."""
    disk = Disk()
    for record in log:
        disk.play(record)
    return [disk.image(mode, random.Random(seed)) for mode in MODES for seed in range(60)]


WRITTEN = [did(b"M", "f"), did(b"W", "f", 0, b"new")]
SYNCED = [*WRITTEN, did(b"B", "f", 7), did(b"E", "f", 7)]
FOLDER_SYNCED = [did(b"B", "", 8), did(b"E", "", 8)]


def test_what_was_synced_with_its_name_is_there() -> None:
    assert all(image == {"f": b"new"} for image in images(*SYNCED, *FOLDER_SYNCED))


def test_name_is_not_sure_by_a_sync_of_its_file() -> None:
    found = images(*SYNCED)
    assert {} in found and {"f": b"new"} in found


def test_what_is_in_a_file_is_not_sure_by_a_sync_of_its_folder() -> None:
    found = images(*WRITTEN, *FOLDER_SYNCED)
    assert all("f" in image for image in found)
    assert {"f": b""} in found and {"f": b"new"} in found


def test_rename_is_done_or_not_and_surely_once_the_folder_is_synced() -> None:
    renamed = [*SYNCED, *FOLDER_SYNCED, did(b"R", "f", 0, b"g")]
    found = images(*renamed)
    assert {"f": b"new"} in found and {"g": b"new"} in found
    assert all(len(image) == 1 for image in found)
    assert all(image == {"g": b"new"} for image in images(*renamed, did(b"B", "", 9), did(b"E", "", 9)))


def test_change_of_a_name_during_a_sync_of_its_folder_is_not_sure() -> None:
    found = images(*SYNCED, *FOLDER_SYNCED, did(b"B", "", 9), did(b"U", "f"), did(b"E", "", 9))
    assert {} in found and {"f": b"new"} in found


def test_folder_without_its_name_has_lost_what_is_in_it() -> None:
    made = [did(b"K", "a"), did(b"M", "a/f"), did(b"W", "a/f", 0, b"new"), did(b"B", "a/f", 7), did(b"E", "a/f", 7)]
    inside = [did(b"B", "a", 8), did(b"E", "a", 8)]
    assert {} in images(*made, *inside)
    assert all(image == {"a/f": b"new"} for image in images(*made, *inside, did(b"B", "", 9), did(b"E", "", 9)))


def test_changes_of_names_come_in_the_order_of_a_journal_or_in_that_of_each_folder() -> None:
    folders = [did(b"K", "a"), did(b"K", "b"), *FOLDER_SYNCED]
    found = [sorted(image) for image in images(*folders, did(b"M", "a/1"), did(b"M", "b/2"), did(b"M", "a/3"))]
    assert [] in found and ["a/1"] in found and ["a/1", "b/2"] in found and ["a/1", "a/3", "b/2"] in found
    assert ["b/2"] in found, "of each folder by itself"
    assert not any("a/3" in image and "a/1" not in image for image in found)


def test_write_through_is_there_before_what_was_written_earlier() -> None:
    written = [*SYNCED, *FOLDER_SYNCED, did(b"W", "f", 0, b"x"), did(b"D", "f", 1, b"y")]
    assert {"f": b"new"} in images(*written)
    found = images(*written, did(b"F", "f", 1))
    assert all(image["f"][1:] == b"yw" for image in found)
    assert {image["f"][:1] for image in found} == {b"n", b"x"}


def test_any_sector_of_what_was_not_synced_may_be_there() -> None:
    old, new = b"o" * 1024, b"n" * 1024
    found = images(did(b"W", "f", 0, old), did(b"B", "f", 7), did(b"E", "f", 7), *FOLDER_SYNCED, did(b"W", "f", 0, new))
    assert {(image["f"][0], image["f"][512]) for image in found} == {(a, b) for a in b"on" for b in b"on"}
