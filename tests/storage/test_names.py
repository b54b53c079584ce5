"""Names as parts of keys: any bytes of any length, and no two are ever taken for each other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlite_pubsub.storage import key_parts

LONGEST = key_parts.LONGEST_SHORT_BYTES
some_names = st.one_of(st.binary(max_size=4), st.binary(max_size=600))


@given(some_names, st.binary(max_size=8), st.binary(max_size=8))
def test_a_name_comes_back_from_key_and_value(name: bytes, before: bytes, after: bytes) -> None:
    key = before + key_parts.key_part(name) + after
    found, end = key_parts.split(key, len(before), key_parts.value_part(name))
    assert found == name
    assert key[end:] == after


@given(some_names, some_names)
def test_no_name_is_the_beginning_of_another(one: bytes, other: bytes) -> None:
    assert one == other or not key_parts.key_part(one).startswith(key_parts.key_part(other))


@pytest.mark.parametrize("length", [0, 1, LONGEST, LONGEST + 1, 511, 100_000])
def test_every_length_fits_a_key(length: int) -> None:
    assert len(key_parts.key_part(b"x" * length)) <= 255
    assert key_parts.value_part(b"x" * length) == (b"x" * length if length > LONGEST else b"")


def test_a_short_name_that_looks_like_a_long_ones_key_is_not_taken_for_it() -> None:
    long = key_parts.key_part(b"x" * 1000)
    for short in (long, long[1:], long[1:31]):
        assert not key_parts.key_part(short).startswith(long) and not long.startswith(key_parts.key_part(short))
