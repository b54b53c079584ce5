"""The directory: merged by epochs, the same for all who know the same, and nothing else is taken for one."""

from __future__ import annotations

import random

import pytest

from rlite_pubsub.engine.shards.directory import Member, ShardDirectory, founded, read
from rlite_pubsub.engine.shards.slots import SLOTS, slot_of

ADA, BOB, CAT = (Member(bytes([letter]) * 40, b"127.0.0.1", 7000 + letter) for letter in b"abc")


def test_slots_are_those_of_redis_cluster() -> None:
    """As redis-server 7.0.15 answers CLUSTER KEYSLOT; compat_tests asks it for many more."""
    assert [slot_of(key) for key in (b"foo", b"{a}foo", b"bar", b"hello")] == [12182, 15495, 5061, 866]
    assert slot_of(b"x{}y") != slot_of(b"")
    assert slot_of(b"{{a}") == slot_of(b"{a")


def test_a_whole_is_shared_out_evenly_and_keys_stay_where_they_are() -> None:
    directory = founded([BOB, CAT, ADA], {16383: ADA, 5: CAT})
    counts = [sum(last + 1 - first for first, last in directory.runs_of(member)) for member in (ADA, BOB, CAT)]
    assert sum(counts) == SLOTS and max(counts) - min(counts) <= 1
    assert directory.owners[16383] == ADA
    assert directory.owners[5] == CAT


def test_directories_merge_to_the_same_in_any_order() -> None:
    dice = random.Random(3)
    first = founded([ADA, BOB, CAT], {})
    states = [first]
    for _ in range(40):
        state = dice.choice(states)
        slot = dice.randrange(SLOTS)
        owner = state.owners[slot]
        newest = max((each.holdings[slot] for each in states), key=lambda held: held or (0, b""))
        if owner is not None and newest == state.holdings[slot]:  # who has it, and knows that
            states.append(state.given([slot], dice.choice([ADA, BOB, CAT])))
    one = states[0]
    for state in states:
        one = one.merged(state)
    dice.shuffle(states)
    other = states[0]
    for state in states:
        other = state.merged(other)
    assert one.text == other.text
    assert one.merged(other).text == one.text


def test_an_old_directory_takes_nothing_back() -> None:
    old = founded([ADA, BOB], {})
    slot = next(slot for slot, owner in enumerate(old.owners) if owner == ADA)
    new = old.given([slot], BOB)
    assert old.merged(new).owners[slot] == new.merged(old).owners[slot] == BOB


def test_two_lists_of_members_with_one_epoch_become_one_list() -> None:
    first = founded([ADA], {})
    one, other = first.with_members([ADA, BOB]), first.with_members([ADA, CAT])
    assert one.merged(other).members == other.merged(one).members


def test_a_slot_whose_owner_is_no_member_is_nobodys() -> None:
    directory = founded([ADA, BOB], {}).with_members([ADA])
    assert set(directory.owners) == {ADA, None}


def test_a_directory_is_read_as_it_was_written() -> None:
    directory = founded([ADA, BOB, CAT], {}).given([1, 2, 3], CAT)
    assert read(directory.text).text == directory.text


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{}",
        b"[1]",
        b'{"format":2,"epoch":1,"members":[],"runs":[]}',
        b'{"format":1,"epoch":1,"members":[],"runs":[]}',
        b'{"format":1,"epoch":1,"members":[["x","h",1]],"runs":[]}',
        b'{"format":1,"epoch":1,"members":[["%b","h",0]],"runs":[]}' % (b"a" * 40),
        b'{"format":1,"epoch":1,"members":[["%b","a b",1]],"runs":[]}' % (b"a" * 40),
        b'{"format":1,"epoch":1,"members":[["%b","h",1]],"runs":[[0,16384,1,"%b"]]}' % (b"a" * 40, b"a" * 40),
        b'{"format":1,"epoch":1,"members":[["%b","h",1]],"runs":[[0,5,1,"%b"],[5,6,1,"%b"]]}' % ((b"a" * 40,) * 3),
        b'{"format":1,"epoch":true,"members":[["%b","h",1]],"runs":[]}' % (b"a" * 40),
        b"[" * 100_000,
    ],
)
def test_what_is_no_directory_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError):
        read(text)


def test_a_directory_does_not_change() -> None:
    directory = founded([ADA, BOB], {})
    text = directory.text
    directory.given([0], BOB)
    directory.merged(ShardDirectory(9, [CAT], ()))
    assert directory.text == text
