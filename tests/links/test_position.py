"""Where positions stand: in the slot of their topic, and nobody else's."""

from __future__ import annotations

import pytest
from redis.crc import key_slot

from rlite_pubsub.links.position import OWN, Position, key_of, stores_in

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
    assert stores_in([position.value([b"b", b"a"])]) == {b"a", b"b"}
