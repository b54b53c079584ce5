"""The rules of retention, as several processes know them."""

from __future__ import annotations

from pathlib import Path

from keeper import Keeper

from rlite_pubsub.durable.routes import DurableRoutes
from rlite_pubsub.keyspace.topic.rules import Rules
from rlite_pubsub.pubsub.hub import Hub
from rlite_pubsub.pubsub.kinds import CHANNELS, SHARDS
from rlite_pubsub.pubsub.neighbours import Neighbours
from rlite_pubsub.pubsub.route import NOBODY
from rlite_pubsub.storage.store import Store
from rlite_pubsub.storage.topics.topic_settings import NO_LIMITS, NOTHING_SAID, RetentionLimits, Rule

WEEK = RetentionLimits(age_ms=604_800_000)


def test_rules_survive_their_process_with_patterns_of_any_bytes(tmp_path: Path) -> None:
    keeper = Keeper(tmp_path)
    said = [(b"a\x00\xff*", WEEK), (b"", RetentionLimits(1, 2, 3)), (b"*" * 1000, NO_LIMITS)]
    keeper.rule(*said)
    other = Rules(keeper.data)
    assert other.refresh()
    assert not other.refresh()
    assert [(rule.pattern, rule.limits) for rule in other.all] == said
    keeper.data.close()


def test_first_rule_that_matches_counts_and_own_limits_go_before_it(tmp_path: Path) -> None:
    keeper = Keeper(tmp_path)
    keeper.rule((b"a.*", WEEK), (b"*", RetentionLimits(entries=9)))
    rules = keeper.rules
    assert rules.of(b"a.b") == WEEK and rules.pattern_of(b"a.b") == b"a.*"
    assert rules.of(b"b") == RetentionLimits(entries=9)
    assert rules.of(b"") is None
    assert rules.limits(NOTHING_SAID._replace(age_ms=0, size_bytes=7), b"a.b") == RetentionLimits(0, 0, 7)
    keeper.data.close()


def test_names_that_were_looked_up_are_not_kept_for_ever(tmp_path: Path) -> None:
    keeper = Keeper(tmp_path)
    keeper.rule((b"a*", WEEK))
    for number in range(20_000):
        assert keeper.rules.of(b"a%d" % number) == WEEK
    assert len(keeper.rules._found) < 10_000
    keeper.data.close()


def test_change_is_seen_by_the_next_publish_of_another_process(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        neighbours = Neighbours(store, lambda: None, DurableRoutes(store))
        hub = Hub(lambda counts: None, neighbours)
        hub.rules = Rules(store.data, store)
        hub.look_around()
        assert hub.route(CHANNELS, b"a") is NOBODY
        elsewhere = Rules(store.data, store)
        elsewhere.put([Rule(b"a", WEEK)])
        hub.look_around()
        assert hub.route(CHANNELS, b"a").topic == b"a"
        assert hub.route(CHANNELS, b"a").reply == NOBODY.reply
        assert hub.route(SHARDS, b"a") is NOBODY
        assert hub.route(CHANNELS, b"b") is NOBODY
        elsewhere.put([])
        hub.look_around()
        assert hub.route(CHANNELS, b"a") is NOBODY
