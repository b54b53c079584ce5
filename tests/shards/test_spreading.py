"""Which segment of a queue goes where."""

from __future__ import annotations

import random

import pytest

from rlite_pubsub.engine.shards.directory import Member
from rlite_pubsub.shards.spreading import SegmentPlace, evenly

ADA, BOB, CAT = (Member(bytes([letter]) * 40, b"127.0.0.1", 7000 + letter) for letter in b"abc")
MEMBERS = (ADA, BOB, CAT)


def segment(number: int, member: Member, size_bytes: int) -> SegmentPlace:
    return SegmentPlace(b"{%x}jobs" % number, member, 10, size_bytes, "0-1", "0-2", None)


def moved(parts: list[SegmentPlace]) -> list[SegmentPlace]:
    targets = {part.name: member for part, member in evenly(parts, MEMBERS)}
    return [part._replace(member=targets.get(part.name, part.member)) for part in parts]


def test_segments_of_one_size_are_shared_out() -> None:
    after = moved([segment(number, ADA, 100) for number in range(9)])
    assert sorted(part.member for part in after) == [ADA] * 3 + [BOB] * 3 + [CAT] * 3


@pytest.mark.parametrize("seed", range(20))
def test_what_is_spread_evenly_stays_where_it_is(seed: int) -> None:
    dice = random.Random(seed)
    sizes = [dice.choice([100, 100, dice.randrange(1000)]) for _ in range(dice.randrange(1, 30))]
    after = moved([segment(number, dice.choice(MEMBERS), size) for number, size in enumerate(sizes)])
    loads = [sum(part.size_bytes for part in after if part.member == member) for member in MEMBERS]
    assert max(loads) - min(loads) <= max(sizes)
    assert evenly(after, MEMBERS) == []
