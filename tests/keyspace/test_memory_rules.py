"""What is kept of ephemeral topics: as the rules say, and never more than fits."""

from __future__ import annotations

import pytest

from rlite_pubsub.keyspace.ephemeral import MAX_TOPIC_BYTES, MemoryRules
from rlite_pubsub.keyspace.topic.rules import Rules
from rlite_pubsub.storage.environment import Environment
from rlite_pubsub.storage.topics.topic_settings import NOTHING_SAID, RetentionLimits, Rule


@pytest.fixture
def stored(data: Environment) -> Rules:
    rules = Rules(data)
    rules.put([Rule(b"small.*", RetentionLimits(1000, 5, 100)), Rule(b"large.*", RetentionLimits(size_bytes=1 << 40))])
    return rules


@pytest.fixture
def rules(data: Environment, stored: Rules) -> MemoryRules:
    return MemoryRules(data, stored)


def test_a_topic_that_no_rule_names_keeps_what_fits_into_memory(rules: MemoryRules) -> None:
    most = RetentionLimits(0, 0, MAX_TOPIC_BYTES)
    assert rules.of(b"t#ephemeral") == rules.limits(NOTHING_SAID, b"t#ephemeral") == most
    assert rules.pattern_of(b"t#ephemeral") is None


def test_less_may_be_kept_and_more_may_not(rules: MemoryRules) -> None:
    assert rules.limits(NOTHING_SAID, b"small.t#ephemeral") == RetentionLimits(1000, 5, 100)
    assert rules.limits(NOTHING_SAID, b"large.t#ephemeral").size_bytes == MAX_TOPIC_BYTES
    assert rules.limits(RetentionLimits(0, 7, 1 << 40), b"small.t#ephemeral") == RetentionLimits(0, 7, MAX_TOPIC_BYTES)
    assert rules.pattern_of(b"small.t#ephemeral") == b"small.*"


def test_rules_that_change_count_at_once(data: Environment, rules: MemoryRules, stored: Rules) -> None:
    stored.put([Rule(b"t*", RetentionLimits(entries=3))])
    data.read(rules.follow)
    assert rules.limits(NOTHING_SAID, b"t#ephemeral") == RetentionLimits(0, 3, MAX_TOPIC_BYTES)
