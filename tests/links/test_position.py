"""Where positions stand: in the slot of their topic, and nobody else's."""

from __future__ import annotations

import pytest
from redis.crc import key_slot

from rlite_pubsub.links.position import OWN, Origins, Position, key_of, origin_in, stores_in

NAMES = (
    b"orders", b"", b"}", b"{", b"{}", b"{}x", b"a}b", b"a}b{c", b"a}{b}", b"{u}a", b"{u}b", b"x{u}", b"{{u}}", b"{u",
    b"{}{u}", b"}{", b"\xff}\x00",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_positions_are_in_the_slot_of_their_topic(name: bytes) -> None:
    assert key_slot(key_of(name)) == key_slot(name)
    assert key_of(name).startswith(b"__links__:{")


def test_no_two_topics_have_their_positions_in_one_place() -> None:
    names = {*NAMES, *(key_of(name) for name in NAMES)}
    assert len({key_of(name) for name in names}) == len(names)


def test_what_is_noted_is_read_again() -> None:
    position = Position(OWN, (5, 1), 7, 2)
    assert Position.of(position.value([b"b", b"a"])) == position
    assert stores_in([position.value([b"b", b"a"]), b"5-1"]) == {b"a", b"b"}


def test_an_entry_passes_once_and_its_origin_is_to_be_written() -> None:
    origins = Origins({b"origin:store/t": b"5-1", b"store/link": Position(OWN, (9, 9), 1, 0).value([])})
    assert not origins.pass_by(b"store/t", (5, 1))
    assert origins.changes() == []
    assert origins.pass_by(b"store/t", (5, 2))
    assert not origins.pass_by(b"store/t", (5, 2))
    assert origins.pass_by(b"other/t/u", (1, 0))
    assert origins.changes() == [b"origin:other/t/u", b"1-0", b"origin:store/t", b"5-2"]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ([b"n", b"1", b"link-origin", b"store/a/b/5-1"], (b"store/a/b", (5, 1))),
        ([b"n", b"1"], None),
        ([b"link-origin", b"store/a/5-1"], None),
        ([b"n", b"1", b"link-origin", b"5-1"], None),
        ([b"n", b"1", b"link-origin", b"store/a/b"], None),
        ([b"link-origin", b"store/a/5-1", b"n", b"1"], None),
    ],
)
def test_an_entry_says_where_it_comes_from_or_was_appended_where_it_is(
    words: list[bytes], found: tuple[bytes, tuple[int, int]] | None
) -> None:
    assert origin_in(words) == found
