"""The records of what is kept: settings, the order of what is due, rules and the walk."""

from __future__ import annotations

from rlite_pubsub.storage.environment import Environment, Txn
from rlite_pubsub.storage.topics import topic_settings
from rlite_pubsub.storage.topics.topic_settings import NEVER, NO_LIMITS, UNSAID, RetentionLimits, Rule, TopicSettings

PLACE = bytes(range(20))


def test_settings_are_what_was_put(environment: Environment) -> None:
    settings = TopicSettings(PLACE, 5, RetentionLimits(UNSAID, 0, 2**62), 3, 2**63)
    environment.write(lambda txn: topic_settings.put(txn, 7, settings, None))
    assert environment.read(lambda txn: topic_settings.get(txn, 7)) == settings
    assert environment.read(lambda txn: topic_settings.get(txn, 8)) is None


def test_first_due_is_the_earliest_however_often_it_moves(environment: Environment) -> None:
    first, second = TopicSettings(PLACE, 50), TopicSettings(PLACE, 30)

    def work(txn: Txn) -> list[tuple[int, int] | None]:
        seen = [topic_settings.first_due(txn)]
        topic_settings.put(txn, 1, first, None)
        topic_settings.put(txn, 2, second, None)
        seen.append(topic_settings.first_due(txn))
        topic_settings.put(txn, 2, second._replace(due_ms=70), second)
        seen.append(topic_settings.first_due(txn))
        topic_settings.put(txn, 1, first._replace(due_ms=NEVER), first)
        seen.append(topic_settings.first_due(txn))
        topic_settings.remove_due(txn, 70, 2)
        return [*seen, topic_settings.first_due(txn)]

    assert environment.write(work) == [None, (30, 2), (50, 1), (70, 2), None]


def test_what_is_due_is_not_taken_for_a_topic_nor_a_rule_for_what_is_due(environment: Environment) -> None:
    def work(txn: Txn) -> tuple[object, object]:
        topic_settings.put_rules(txn, [Rule(b"x", NO_LIMITS)])
        return topic_settings.first_due(txn), topic_settings.get(txn, 1)

    assert environment.write(work) == (None, None)


def test_new_rules_begin_a_walk(environment: Environment) -> None:
    old = RetentionLimits(age_ms=2**62)
    rules = [Rule(b"a*", RetentionLimits(1, 2, 3)), Rule(b"", NO_LIMITS), Rule(b"\x00" * 3000, old)]
    assert environment.read(topic_settings.packed_rules) == b""
    assert environment.read(topic_settings.walk) is None
    environment.write(lambda txn: topic_settings.put_rules(txn, rules))
    assert list(topic_settings.unpack_rules(environment.read(topic_settings.packed_rules))) == rules
    assert environment.read(topic_settings.walk) == b""
    environment.write(lambda txn: topic_settings.put_walk(txn, PLACE))
    assert environment.read(topic_settings.walk) == PLACE
    environment.write(lambda txn: topic_settings.put_walk(txn, None))
    assert environment.read(topic_settings.walk) is None
