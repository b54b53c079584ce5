"""A manifest is the one that was written, or it is known to be damaged."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace

import pytest
from cold_logs import NEWS, STORE, log_of, seal
from patience import PATIENCE_S

from rlite_pubsub.cold import manifest
from rlite_pubsub.cold.errors import ForeignManifest, ManifestDamaged
from rlite_pubsub.cold.manifest import Manifest
from rlite_pubsub.cold.origin import Origin
from rlite_pubsub.cold.place import Place

ODD = Origin(STORE, b"a:b/\xff", 2**64 - 1)


def of_blocks(place: Place, origin: Origin = NEWS, count: int = 3) -> Manifest:
    blocks = [seal(place, log_of(50, 1000 * number), origin) for number in range(1, count + 1)]
    return manifest.of(origin, reversed(blocks))


@pytest.mark.parametrize("origin", [NEWS, ODD])
def test_a_manifest_comes_back_as_it_was(any_place: Place, origin: Origin) -> None:
    written = of_blocks(any_place, origin)
    manifest.write(any_place, written)
    assert manifest.read(any_place, written.path) == written
    assert [block.first[0] for block in written.blocks] == [1000, 2000, 3000]


def test_its_blocks_are_linked(place: Place) -> None:
    written = of_blocks(place)
    manifest.write(place, written)
    said = json.loads(place.read(written.path))
    names = [block.path for block in written.blocks]
    assert [each["previous"] for each in said["blocks"]] == [None, *names[:-1]]
    assert [each["next"] for each in said["blocks"]] == [*names[1:], None]
    assert said["topic"] == "news" and said["store"] == STORE and said["number"] == 7


def test_a_topic_without_a_block_has_no_manifest(place: Place) -> None:
    written = of_blocks(place)
    manifest.write(place, written)
    manifest.write(place, manifest.of(NEWS, []))
    with pytest.raises(ManifestDamaged, match=f"{written.path}: this manifest is not there"):
        manifest.read(place, written.path)


def test_no_changed_byte_goes_unseen(place: Place) -> None:
    written = of_blocks(place, count=1)
    manifest.write(place, written)
    whole = place.read(written.path)
    for at in range(len(whole)):
        place.write(written.path, whole[:at] + bytes((whole[at] ^ 1,)) + whole[at + 1 :])
        with pytest.raises(ManifestDamaged, match=written.path):
            manifest.read(place, written.path)
    for length in range(0, len(whole), 7):
        place.write(written.path, whole[:length])
        with pytest.raises(ManifestDamaged, match=written.path):
            manifest.read(place, written.path)
    manifest.write(place, written)
    assert manifest.read(place, written.path) == written


@pytest.mark.parametrize("text", [b"", b"[]", b"null", b'{"format": 2}', b"\xff\xfe", b'{"format": 1, "blocks": 5}'])
def test_what_is_no_manifest_is_refused_by_name(place: Place, text: bytes) -> None:
    place.write("news/7/_manifest.json", text)
    with pytest.raises(ManifestDamaged, match="news/7/_manifest.json: it cannot be read"):
        manifest.read(place, "news/7/_manifest.json")


def test_a_number_that_is_infinite_is_refused_by_name(place: Place) -> None:
    written = of_blocks(place)
    manifest.write(place, written)
    said = json.loads(place.read(written.path))
    said["blocks"][0]["sealed_ms"] = float("1e999")
    place.write(written.path, json.dumps(said).encode())
    with pytest.raises(ManifestDamaged, match=f"{written.path}: it cannot be read"):
        manifest.read(place, written.path)


def test_another_topics_manifest_is_not_taken(place: Place) -> None:
    written = of_blocks(place, ODD)
    manifest.write(place, written)
    place.write("news/7/_manifest.json", place.read(written.path))
    with pytest.raises(ManifestDamaged, match=f"it is the one of {written.path}"):
        manifest.read(place, "news/7/_manifest.json")


def test_two_stores_do_not_write_over_each_other(place: Place) -> None:
    written = of_blocks(place)
    manifest.write(place, written)
    with pytest.raises(ForeignManifest, match=f"{written.path}: it is of store {STORE}, and this is other"):
        manifest.write(place, written._replace(origin=NEWS._replace(store="other")))
    assert manifest.read(place, written.path) == written


def test_blocks_that_overlap_make_no_manifest(place: Place) -> None:
    one, other = (seal(place, log_of(50, first)) for first in (1000, 1005))
    manifest.write(place, Manifest(NEWS, (replace(one, groups=()), replace(other, groups=()))))
    with pytest.raises(ManifestDamaged, match="does not follow"):
        manifest.read(place, "news/7/_manifest.json")


@pytest.mark.parametrize("failpoint", ["cold-file-begun", "cold-file-written", "cold-file-renamed"])
def test_a_writer_that_is_killed_leaves_a_whole_manifest(place: Place, failpoint: str) -> None:
    before = of_blocks(place)
    manifest.write(place, before)
    program = (
        "import sys\nfrom rlite_pubsub.cold import manifest\nfrom rlite_pubsub.cold.places import open_place\n"
        "place = open_place(sys.argv[1], '/')\nfound = manifest.read(place, sys.argv[2])\n"
        "manifest.write(place, found._replace(blocks=found.blocks[1:]))\n"
    )
    environment = {**os.environ, "RLITE_FAILPOINT": failpoint}
    command = [sys.executable, "-c", program, place.url, before.path]
    killed = subprocess.run(command, env=environment, timeout=PATIENCE_S)
    assert killed.returncode == -signal.SIGKILL
    expected = before.blocks[1:] if failpoint == "cold-file-renamed" else before.blocks
    assert manifest.read(place, before.path).blocks == expected
