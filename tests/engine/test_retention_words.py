"""How limits are spelled, in the directive `retain` and in TOPIC.CONFIG; what is refused, and why."""

from __future__ import annotations

import pytest

from rlite_pubsub.engine.settings.config_file import ConfigFileError, ConfigReader, rewritten
from rlite_pubsub.engine.settings.retention_words import age_ms, age_text, count, size_bytes, size_text
from rlite_pubsub.engine.settings.settings import SettingError, Settings
from rlite_pubsub.storage.topics.topic_settings import RetentionLimits, Rule

DAY_MS = 86_400_000


def set_to(words: str) -> tuple[Rule, ...]:
    settings = Settings({"retain": words})
    found: tuple[Rule, ...] = settings["retain"]
    return found


@pytest.mark.parametrize(
    ("word", "milliseconds"),
    [
        (b"1ms", 1),
        (b"30s", 30_000),
        (b"15min", 900_000),
        (b"24h", DAY_MS),
        (b"7D", 7 * DAY_MS),
        (b"2w", 14 * DAY_MS),
        (b"0s", None),
        (b"7", None),
        (b"7m", 420_000),
        (b"-7d", None),
        (b"7.5d", None),
        (b"07d", None),
        (b"7 d", None),
        (b"", None),
        (b"9999999999999999w", None),
    ],
)
def test_age(word: bytes, milliseconds: int | None) -> None:
    assert age_ms(word) == milliseconds


@pytest.mark.parametrize(
    ("word", "size"),
    [
        (b"100b", 100),
        (b"1k", 1000),
        (b"1kb", 1024),
        (b"512MB", 512 << 20),
        (b"1g", 10**9),
        (b"1gb", 1 << 30),
        (b"5m", 5_000_000),
        (b"0gb", None),
        (b"100", None),
        (b"9999999999999gb", None),
    ],
)
def test_size(word: bytes, size: int | None) -> None:
    assert size_bytes(word) == size


def test_count_is_a_number_from_one_on() -> None:
    assert [count(word) for word in (b"1", b"1000000", b"0", b"-1", b"x", b"", b"1" * 30)] == [
        1,
        1_000_000,
        *[None] * 5,
    ]


@pytest.mark.parametrize("milliseconds", [1, 999, 1000, 60_000, 90_000, 3_600_000, DAY_MS, 7 * DAY_MS])
def test_ages_are_printed_as_they_are_read(milliseconds: int) -> None:
    assert age_ms(age_text(milliseconds)) == milliseconds


@pytest.mark.parametrize("size", [1, 1000, 1024, 1 << 20, 3 << 30, (1 << 30) + 1])
def test_sizes_are_printed_as_they_are_read(size: int) -> None:
    assert size_bytes(size_text(size)) == size


def test_rules_have_limits_in_any_order() -> None:
    assert set_to("orders.* 7d ; logs.* 1gb ; x.* 1000 entries 1h 2mb") == (
        Rule(b"orders.*", RetentionLimits(age_ms=7 * DAY_MS)),
        Rule(b"logs.*", RetentionLimits(size_bytes=1 << 30)),
        Rule(b"x.*", RetentionLimits(3_600_000, 1000, 2 << 20)),
    )
    assert set_to("x.* 1000 entries 1h 2mb") == set_to("x.* 2mb 1000 entries 1h")
    assert set_to("7d 7d") == (Rule(b"7d", RetentionLimits(age_ms=7 * DAY_MS)),)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("orders.*", "needs a pattern and a limit"),
        ("orders.* 7d 8d", "one age"),
        ("orders.* 1gb 2gb", "one age"),
        ("orders.* 5 entries 6 entries", "one age"),
        ("orders.* 5m", "minutes from megabytes"),
        ("orders.* 5", "doesn't know the limit '5'"),
        ("orders.* many", "doesn't know the limit 'many'"),
        ("orders.* 0 entries", "doesn't know the limit '0'"),
        ("orders.* 7d ; logs.*", "needs a pattern and a limit"),
    ],
)
def test_bad_rules_are_refused_and_say_why(words: str, why: str) -> None:
    with pytest.raises(SettingError, match=why):
        Settings({"retain": words})


def test_lines_of_the_file_add_up_and_quotes_keep_a_pattern_whole() -> None:
    settings = Settings()
    ConfigReader(settings).read(b'retain "orders.*" 7d\nretain "two words" 1gb 10 entries\nretain "x 5 entries"\n')
    assert settings["retain"] == (
        Rule(b"orders.*", RetentionLimits(age_ms=7 * DAY_MS)),
        Rule(b"two words", RetentionLimits(entries=10, size_bytes=1 << 30)),
        Rule(b"x", RetentionLimits(entries=5)),
    )


def test_file_says_its_rules_again_when_it_is_rewritten() -> None:
    settings = Settings()
    ConfigReader(settings).read(b'retain "orders.*" 7d\n# mine\nretain "a \\"b" 1gb 10 entries\n')
    content = rewritten(b'retain "orders.*" 7d\n# mine\n', settings)
    again = Settings()
    ConfigReader(again).read(content)
    assert again["retain"] == settings["retain"] and len(again["retain"]) == 2
    assert content.startswith(b'retain "orders.*" 7d\n# mine\n')


def test_nothing_said_and_none_are_different() -> None:
    assert Settings()["retain"] is None
    assert set_to("none") == ()
    settings = Settings({"retain": "a 7d"})
    settings.set("retain", [b""])
    assert settings["retain"] == ()
    assert rewritten(b"", settings).count(b"retain none") == 1
    assert b"retain" not in rewritten(b"", Settings())


def test_bad_line_stops_the_start_and_is_named() -> None:
    with pytest.raises(ConfigFileError, match=r"line 2\n>>> 'retain a 5m'\nretain can't tell minutes from megabytes"):
        ConfigReader(Settings()).read(b"port 0\nretain a 5m\n")
