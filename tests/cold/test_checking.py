"""What is wrong in a cold store is found and named, the rest is read, and manifests come back from blocks."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from cold_logs import NEWS, SEALED_MS, STORE, chunk_of, log_of, seal

from rlite_pubsub.cold import checking, manifest
from rlite_pubsub.cold.checking import Checked
from rlite_pubsub.cold.errors import BlockDamaged, BlockMissing, ColdError, PlaceFailed
from rlite_pubsub.cold.local_place import LocalPlace
from rlite_pubsub.cold.manifest import Manifest
from rlite_pubsub.cold.origin import Origin
from rlite_pubsub.cold.place import Place
from rlite_pubsub.cold.places import open_place
from rlite_pubsub.cold.restoring import RestoredEntries, restore
from rlite_pubsub.storage.cold.cold_blocks import BlockInfo

ODD = Origin(STORE, b"\xffodd:one", 9)


def fill(place: Place) -> list[Manifest]:
    """Two topics: three blocks and two."""
    made = []
    for origin, count in ((NEWS, 3), (ODD, 2)):
        blocks = [seal(place, log_of(60, 1000 * number), origin) for number in range(1, count + 1)]
        made.append(manifest.of(origin, blocks))
        manifest.write(place, made[-1])
    return made


def wrong(place: Place, topic: bytes | None = None) -> dict[str, str]:
    """What is wrong, by path."""
    return {each.path: each.kind for each in checking.verify(open_place(place.url, "/"), topic) if each.is_wrong}


def file_of(place: Place, path: str) -> Path:
    assert isinstance(place, LocalPlace)
    return place.folder / path


def flip(place: Place, path: str) -> None:
    """Change a bit of the first page."""
    whole = bytearray(place.read(path))
    whole[100] ^= 8
    place.write(path, bytes(whole))


def test_a_whole_store_is_found_to_be_whole(any_place: Place) -> None:
    news, odd = fill(any_place)
    found = list(checking.verify(any_place))
    assert {each.kind for each in found} == {"ok"}
    assert sum(each.entries for each in found) == 5 * 60
    assert {each.path for each in found} == {file.path for file in any_place.files()}
    assert {each.origin for each in checking.verify(any_place, ODD.topic)} == {ODD}


def test_each_file_that_is_wrong_is_named(place: Place) -> None:
    news, odd = fill(place)
    place.delete(news.blocks[0].path)
    flip(place, news.blocks[1].path)
    shutil.copy(file_of(place, odd.blocks[1].path), file_of(place, news.blocks[2].path))
    flip(place, odd.path)
    assert wrong(place) == {
        news.blocks[0].path: "missing",
        news.blocks[1].path: "damaged",
        news.blocks[2].path: "foreign",
        odd.path: "manifest",
    }
    assert wrong(place, NEWS.topic).keys() == {block.path for block in news.blocks}
    assert wrong(place, ODD.topic) == {odd.path: "manifest"}


def test_a_block_of_another_store_is_foreign_even_in_its_manifest(place: Place) -> None:
    theirs = seal(place, log_of(50), NEWS._replace(store="another"))
    manifest.write(place, manifest.of(NEWS, [theirs]))
    assert wrong(place) == {theirs.path: "foreign"}


def test_a_block_that_no_manifest_has_is_a_stray_and_nothing_is_wrong(place: Place) -> None:
    fill(place)
    stray = seal(place, log_of(10, 9000))
    assert wrong(place) == {}
    (found,) = (each for each in checking.verify(place) if each.kind == "stray")
    assert (found.path, found.entries) == (stray.path, 10)


def test_files_that_are_not_ours_are_left_alone(place: Place) -> None:
    made = fill(place)
    place.write("README.txt", b"hello")
    place.write("news/7/notes", b"hello")
    place.write("other/1/data.parquet", b"hello")
    assert wrong(place) == {"other/1/data.parquet": "damaged", "other/1/_manifest.json": "manifest"}
    rebuilt = checking.rebuild(place)
    assert not rebuilt.manifests and [each.path for each in rebuilt.problems] == ["other/1/data.parquet"]
    assert [manifest.read(place, each.path) for each in made] == made
    assert place.read("README.txt") == b"hello"


@pytest.mark.parametrize("damage", ["lost", "corrupt", "half", "empty"])
def test_a_manifest_is_rebuilt_equal_from_the_blocks(any_place: Place, damage: str) -> None:
    made = fill(any_place)
    texts = [any_place.read(each.path) for each in made]
    for each, text in zip(made, texts, strict=True):
        if damage == "lost":
            any_place.delete(each.path)
        else:
            half = text[: len(text) // 2]
            damaged = {"corrupt": half + b"?" + text[len(half) + 1 :], "half": half, "empty": b""}[damage]
            any_place.write(each.path, damaged)
    assert {each.path for each in checking.verify(any_place) if each.is_wrong} == {each.path for each in made}
    rebuilt = checking.rebuild(any_place)
    assert sorted(rebuilt.manifests) == sorted(made)
    assert not rebuilt.problems and not rebuilt.left_out
    assert [any_place.read(each.path) for each in made] == texts
    assert not [each for each in checking.verify(any_place) if each.is_wrong]


def test_manifests_that_are_whole_are_not_rebuilt(place: Place) -> None:
    made = fill(place)
    seal(place, log_of(10, 9000))  # a dropped block in its grace, as far as anybody can see
    assert checking.rebuild(place) == ((), (), ())
    assert [manifest.read(place, each.path) for each in made] == made
    forced = checking.rebuild(place, NEWS.topic, is_forced=True)
    assert [len(each.blocks) for each in forced.manifests] == [4]


def test_what_is_wrong_stays_out_of_a_rebuilt_manifest_and_is_named(place: Place) -> None:
    news, _ = fill(place)
    place.delete(news.path)
    flip(place, news.blocks[1].path)
    rebuilt = checking.rebuild(place)
    assert [each.blocks for each in rebuilt.manifests] == [(news.blocks[0], news.blocks[2])]
    assert [(each.path, each.kind) for each in rebuilt.problems] == [(news.blocks[1].path, "damaged")]


def test_of_blocks_that_overlap_the_later_one_counts(place: Place) -> None:
    small = [seal(place, log_of(60, first), NEWS, SEALED_MS + first) for first in (1000, 2000)]
    compacted = seal(place, [*log_of(60, 1000), *log_of(60, 2000)], NEWS, SEALED_MS + 5000)
    rebuilt = checking.rebuild(place)
    assert [[block.path for block in each.blocks] for each in rebuilt.manifests] == [[compacted.path]]
    assert {each.path for each in rebuilt.left_out} == {block.path for block in small}


def test_a_renamed_topic_has_its_manifest_under_its_last_name(place: Place) -> None:
    renamed = NEWS._replace(topic=b"olds")
    blocks = [seal(place, log_of(60, 1000), NEWS, 1), seal(place, log_of(60, 2000), renamed, 2)]
    expected = manifest.of(renamed, blocks)
    manifest.write(place, expected)
    assert wrong(place) == {} and not [each for each in checking.verify(place) if each.kind == "stray"]
    place.delete(expected.path)
    assert checking.rebuild(place).manifests == (expected,)


def test_a_place_that_fails_ends_a_rebuild_before_it_forgets_blocks(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    news, _ = fill(place)
    place.delete(news.path)
    real = LocalPlace.read

    def read(self: LocalPlace, path: str, start: int = 0, length: int | None = None) -> bytes:
        if path == news.blocks[1].path:
            raise PlaceFailed(path, "the network is down")
        return real(self, path, start, length)

    with monkeypatch.context() as failing, pytest.raises(PlaceFailed, match=news.blocks[1].path):
        failing.setattr(LocalPlace, "read", read)
        checking.rebuild(place)
    assert checking.rebuild(place).manifests == (news,)


def entries_of(found: list[RestoredEntries | ColdError]) -> dict[bytes, bytes]:
    """What was restored of each topic."""
    by_topic: dict[bytes, bytes] = {}
    for each in found:
        if isinstance(each, RestoredEntries):
            by_topic[each.origin.topic] = by_topic.get(each.origin.topic, b"") + each.part.wire
    return by_topic


@pytest.mark.parametrize("with_manifests", [True, False])
def test_all_entries_are_restored(any_place: Place, with_manifests: bool) -> None:
    made = fill(any_place)
    if not with_manifests:
        for each in made:
            any_place.delete(each.path)
    found = list(restore(any_place))
    news = b"".join(chunk_of(log_of(60, first)).blob for first in (1000, 2000, 3000))
    odd = b"".join(chunk_of(log_of(60, first)).blob for first in (1000, 2000))
    assert entries_of(found) == {NEWS.topic: news, ODD.topic: odd}
    assert entries_of(list(restore(any_place, ODD.topic))) == {ODD.topic: odd}


def test_a_range_is_restored_to_the_entry(place: Place) -> None:
    fill(place)
    log = [*log_of(60, 1000), *log_of(60, 2000), *log_of(60, 3000)]
    start, end = (1005, 1), (2003, 0)
    expected = chunk_of([each for each in log if start <= each[0] <= end]).blob
    assert entries_of(list(restore(place, NEWS.topic, start, end))) == {NEWS.topic: expected}
    assert not list(restore(place, NEWS.topic, (1500, 0), (1600, 0)))


def test_what_cannot_be_restored_is_said_in_its_place(place: Place) -> None:
    news, _ = fill(place)
    flip(place, news.blocks[0].path)
    place.delete(news.blocks[1].path)
    first, second, last = restore(open_place(place.url, "/"), NEWS.topic)
    assert isinstance(first, BlockDamaged) and first.path == news.blocks[0].path
    assert isinstance(second, BlockMissing) and second.path == news.blocks[1].path
    assert isinstance(last, RestoredEntries) and last.part.wire == chunk_of(log_of(60, 3000)).blob


def test_a_manifest_that_points_out_of_the_place_reads_nothing(place: Place, tmp_path: Path) -> None:
    info = seal(place, log_of(10))
    evil = BlockInfo("../../etc/passwd", info.first, info.last, 10, 1, 1, info.sha256, 1, ())
    manifest.write(place, manifest.of(NEWS, [evil]))
    found = [each for each in checking.verify(place) if each.is_wrong]
    assert found == [Checked("../../etc/passwd", "unreachable", "not a path within a cold store", NEWS)]
