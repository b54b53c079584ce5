"""Typed values, and how the kinds read and print them."""

from __future__ import annotations

import pytest

from rlite_pubsub.engine.settings.directives import DIRECTIVES, PRIMARY, markdown
from rlite_pubsub.engine.settings.settings import RefusedSetting, SettingError, Settings
from rlite_pubsub.pubsub.pressure import Limit


def test_every_default_is_printed_as_a_value_that_can_be_set() -> None:
    settings = Settings()
    for name, directive in DIRECTIVES.items():
        for line in directive.kind.lines(settings[name]):
            assert b"\n" not in line
        assert settings.is_default(name)


def test_values_are_typed() -> None:
    settings = Settings({"requirepass": "x", "save": "900 1 300 10", "bind": "10.0.0.1 -::1", "unixsocketperm": "700"})
    assert settings["maxclients"] == 10000
    assert settings["protected-mode"] is True
    assert settings["requirepass"] == b"x"
    assert settings["save"] == ((900, 1), (300, 10))
    assert settings["bind"] == (b"10.0.0.1", b"-::1")
    assert settings["unixsocketperm"] == 0o700
    assert settings["latency-tracking-info-percentiles"] == (50.0, 99.0, 99.9)


def test_alias_reads_and_sets_the_same_value() -> None:
    settings = Settings()
    settings.set("slave-priority", [b"7"])
    assert settings["replica-priority"] == settings["slave-priority"] == 7
    assert settings.text("slave-priority") == b"7"


def test_limits_of_one_class_leave_the_others_alone() -> None:
    settings = Settings()
    before = settings["client-output-buffer-limit"]
    settings.set("client-output-buffer-limit", [b"pubsub", b"32mb", b"8m", b"60"])
    after = settings["client-output-buffer-limit"]
    assert after.pubsub == Limit(32 << 20, 8_000_000, 60)
    assert (after.normal, after.replica) == (before.normal, before.replica)


def test_pubsub_limit_defaults_to_a_gigabyte_because_spilled_bytes_are_on_disk() -> None:
    assert Settings()["client-output-buffer-limit"].pubsub == Limit(1 << 30, 0, 0)


@pytest.mark.parametrize(
    ("word", "count"),
    [(b"1", 1), (b"1b", 1), (b"1k", 1000), (b"1KB", 1024), (b"2m", 2_000_000), (b"2mb", 2 << 20), (b"1g", 10**9),
     (b"1Gb", 1 << 30), (b"", 0), (b"kb", 0)],
)  # fmt: skip
def test_sizes_take_units_as_redis_does(word: bytes, count: int) -> None:
    settings = Settings()
    settings.set("maxmemory", [word])
    assert settings["maxmemory"] == count


def test_event_classes_are_spelled_out_in_the_value_and_short_in_print() -> None:
    settings = Settings()
    settings.set("notify-keyspace-events", [b"AnKE"])
    assert set(settings["notify-keyspace-events"]) == set(b"g$lshzxetdnKE")
    assert settings.text("notify-keyspace-events") == b"AKE"


def test_frequency_is_brought_within_bounds() -> None:
    settings = Settings({"hz": "100000"})
    assert settings["hz"] == 500
    settings.set("hz", [b"0"])
    assert settings["hz"] == 1


def test_nul_ends_a_word_but_not_a_password() -> None:
    settings = Settings()
    settings.set("masteruser", [b"a\0b"])
    settings.set("requirepass", [b"a\0b"])
    assert (settings["masteruser"], settings["requirepass"]) == (b"a", b"a\0b")


def test_listener_hears_only_real_changes() -> None:
    settings = Settings()
    heard: list[int] = []
    settings.on_change("slave-priority", heard.append)
    settings.set("replica-priority", [b"100"])
    settings.set("replica-priority", [b"5"])
    assert heard == [5]


def test_refusal_names_the_setting_at_fault_and_keeps_all_old_values() -> None:
    settings = Settings()
    with pytest.raises(RefusedSetting) as refusal:
        settings.set_all([("timeout", [b"1"]), ("maxclients", [b"0"])])
    assert refusal.value.name == "maxclients"
    assert (settings["timeout"], settings["maxclients"]) == (0, 10000)


def test_unknown_name_is_refused() -> None:
    with pytest.raises(SettingError):
        Settings({"nosuch": "1"})


def test_no_alias_hides_a_name() -> None:
    assert all(PRIMARY[name] == name for name in DIRECTIVES)


def test_reference_has_a_sentence_for_each_directive_with_a_meaning() -> None:
    rows = markdown().splitlines()[2:]
    assert len(rows) > 30
    assert all(row.endswith(". |") for row in rows)
