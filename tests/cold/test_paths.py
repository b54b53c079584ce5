"""Every topic has a folder of its own, whatever its name is."""

from __future__ import annotations

from urllib.parse import unquote_to_bytes

from hypothesis import given
from hypothesis import strategies as st

from rlite_pubsub.cold import paths


@given(st.binary(max_size=60))
def test_a_name_comes_back_from_its_folder(name: bytes) -> None:
    folder = paths.folder_name(name)
    if "~" not in folder:
        assert unquote_to_bytes(folder) == name
    else:
        assert not name or len(folder) == 150


@given(st.binary(max_size=400), st.binary(max_size=400))
def test_names_do_not_share_a_folder(one: bytes, other: bytes) -> None:
    assert (paths.folder_name(one) == paths.folder_name(other)) == (one == other)


@given(st.binary(max_size=400))
def test_a_folder_is_one_that_every_file_system_and_spark_can_have(name: bytes) -> None:
    folder = paths.folder_name(name)
    assert 0 < len(folder) <= 150
    assert folder.isascii() and not set(folder) & set("/:=*?\\ \0") and folder[0] not in "._"


def test_long_names_that_begin_alike_are_told_apart() -> None:
    assert paths.folder_name(b"x" * 150) == "x" * 150
    assert paths.folder_name(b"x" * 151) != paths.folder_name(b"x" * 152)


def test_a_block_is_found_by_its_ids() -> None:
    assert paths.block_of(b"a:b", 7, (1, 2), (3, 4)) == "a%3Ab/7/1-2_3-4.parquet"
    assert paths.manifest_of(b"_news", 7) == "%5Fnews/7/_manifest.json"
