"""The pattern index finds what asking every pattern finds, in order, and forgets what is removed."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from rlite_pubsub.protocol.glob import Glob
from rlite_pubsub.pubsub import patterns
from rlite_pubsub.pubsub.patterns import PatternIndex


def bytes_of(alphabet: bytes, max_size: int) -> st.SearchStrategy[bytes]:
    return st.lists(st.sampled_from(list(alphabet)), max_size=max_size).map(bytes)


PATTERNS = bytes_of(b"ab*", 6) | bytes_of(b"abc*?[]^-\\", 12) | bytes_of(b"abcdef**", 50)
CHANNELS = bytes_of(b"ab", 6) | bytes_of(b"abc", 12) | bytes_of(b"abcdef", 60)


def matching_one_by_one(index: PatternIndex, channel: bytes) -> list[bytes]:
    return [pattern for pattern in index if Glob(pattern).matches(channel)]


def is_empty(index: PatternIndex) -> bool:
    return not any(getattr(index, name) for name in ("_entries", "_ends", "_grams"))


class AnyUse(RuleBasedStateMachine):
    """Random additions, removals and look-ups, beside a list."""

    def __init__(self) -> None:
        super().__init__()
        self.index = PatternIndex()
        self.held: list[bytes] = []

    @rule(pattern=PATTERNS)
    def add(self, pattern: bytes) -> None:
        self.index.add(pattern)
        if pattern not in self.held:
            self.held.append(pattern)

    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        if self.held:
            pattern = data.draw(st.sampled_from(self.held))
            self.index.remove(pattern)
            self.held.remove(pattern)

    @rule(channel=CHANNELS)
    def look_up(self, channel: bytes) -> None:
        assert self.index.matching(channel) == [p for p in self.held if Glob(p).matches(channel)]

    @invariant()
    def holds_the_patterns_in_order(self) -> None:
        assert list(self.index) == self.held
        assert len(self.index) == len(self.held)

    def teardown(self) -> None:
        for pattern in self.held:
            self.index.remove(pattern)
        assert is_empty(self.index)


TestAnyUse = AnyUse.TestCase
TestAnyUse.settings = settings(max_examples=150, stateful_step_count=60, deadline=None)


@settings(max_examples=300, deadline=None)
@given(st.lists(PATTERNS, max_size=40), st.lists(CHANNELS, min_size=1, max_size=10), st.sampled_from([1, 4, 1000]))
def test_channel_gets_every_pattern_whether_it_is_cut_or_all_are_asked(
    held: list[bytes], channels: list[bytes], bytes_cut_per_pattern_asked: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(patterns, "_BYTES_CUT_PER_PATTERN_ASKED", bytes_cut_per_pattern_asked)
        patch.setattr(patterns, "_CROWD", 1)
        index = PatternIndex()
        for pattern in held:
            index.add(pattern)
        for channel in channels:
            assert index.matching(channel) == matching_one_by_one(index, channel)


def index_of(held: list[bytes]) -> PatternIndex:
    index = PatternIndex()
    for pattern in held:
        index.add(pattern)
    return index


def asked_for(index: PatternIndex, channel: bytes) -> int:
    """How many patterns a look-up asks: the work that grows."""
    return sum(map(len, index._buckets(channel)))


SHAPES = {
    "exact": (b"news.%d", b"news.4321"),
    "prefix": (b"news.%d.*", b"news.4321.sport"),
    "suffix": (b"*.%d", b"news.4321"),
    "inner": (b"*abc%d.*", b"xxabc4321.yy"),
    "shared prefix": (b"news.*.%d.*", b"news.uk.4321.sport"),
    "shared ends": (b"news.*.%d.*.end", b"news.uk.4321.x.end"),
    "with classes": (b"[nm]ews?.%d.[ab]*", b"news..4321.a"),
    "long prefix": (b"a" * 100 + b".%d.*", b"a" * 100 + b".4321.x"),
}


@pytest.mark.parametrize(("pattern", "channel"), SHAPES.values(), ids=SHAPES.keys())
def test_one_of_ten_thousand_patterns_is_found_by_asking_few(pattern: bytes, channel: bytes) -> None:
    index = index_of([pattern % number for number in range(10_000)])
    assert index.matching(channel) == [pattern % 4321]
    assert asked_for(index, channel) <= 60


def test_prefixes_of_ten_thousand_lengths_are_looked_up_in_few_cuts() -> None:
    index = index_of([b"x" * length + b"y*" for length in range(10_000)])
    assert len(index._ends) + len(index._grams) < 50
    assert index.matching(b"x" * 5000 + b"yes") == [b"x" * 5000 + b"y*"]


def test_pattern_of_forty_bytes_costs_less_than_a_kilobyte() -> None:
    held = [b"*:%032d:*.uk" % number for number in range(2_000)]
    tracemalloc.start()
    index = index_of(held)
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert taken / len(index) < 1000


def test_patterns_come_in_the_order_in_which_they_were_added() -> None:
    held = [b"*", b"news.*", b"*.uk", b"*s.u*", b"news.uk", b"?ews.uk"]
    assert index_of(held).matching(b"news.uk") == held
    assert index_of(held[::-1]).matching(b"news.uk") == held[::-1]


def test_pattern_added_again_after_its_removal_comes_last() -> None:
    index = index_of([b"a*", b"*"])
    index.add(b"a*")
    assert index.matching(b"ab") == [b"a*", b"*"]
    index.remove(b"a*")
    index.add(b"a*")
    assert index.matching(b"ab") == [b"*", b"a*"]


def test_pattern_that_can_never_match_is_held_but_never_asked() -> None:
    index = index_of([b"[]", b"a[]*"])
    assert list(index) == [b"[]", b"a[]*"]
    assert asked_for(index, b"a]") == 0
    index.remove(b"[]")
    index.remove(b"a[]*")
    assert is_empty(index)


def test_pattern_not_held_cannot_be_removed() -> None:
    index = index_of([b"a*"])
    with pytest.raises(KeyError):
        index.remove(b"b*")
    assert list(index) == [b"a*"]


def test_emptied_index_holds_nothing() -> None:
    held = [pattern % number for pattern, _ in SHAPES.values() for number in range(300)]
    held += [b"*", b"?[ab]*", b"", b"*a*"]
    index = index_of(held)
    for pattern in reversed(held):
        index.remove(pattern)
    assert is_empty(index)
    assert index.matching(b"news.1") == []
