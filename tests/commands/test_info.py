"""INFO: its sections, what is asked for, and what is counted."""

from __future__ import annotations

import pytest
from recorded_session import House, RecordedSession

from rlite_pubsub import __version__
from rlite_pubsub.build import is_compiled
from rlite_pubsub.engine.counters import Stats
from rlite_pubsub.engine.stats.process import human
from rlite_pubsub.engine.stats.sampler import SAMPLES, Sampler
from rlite_pubsub.engine.table import TABLE

DEFAULT = [
    "Server", "Clients", "Memory", "Persistence", "Stats", "Replication", "CPU", "Modules", "Errorstats", "Cluster",
    "Keyspace", "Subscribers", "Topics", "Store", "Links",
]  # fmt: skip
ALL = [*DEFAULT[:8], "Commandstats", "Errorstats", "Latencystats", *DEFAULT[9:], "Warnings"]


def info(session: RecordedSession, *sections: str) -> str:
    header, _, text = session.do("INFO", *sections).decode().partition("\r\n")
    assert header == f"${len(text) - 2}"
    return text


def titles(session: RecordedSession, *sections: str) -> list[str]:
    return [line[2:] for line in info(session, *sections).split("\r\n") if line.startswith("# ")]


def fields(session: RecordedSession, *sections: str) -> dict[str, str]:
    lines = [line for line in info(session, *sections).split("\r\n") if line and not line.startswith("#")]
    return dict(line.split(":", 1) for line in lines)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ((), DEFAULT),
        (("default",), DEFAULT),
        (("all",), ALL),
        (("EVERYTHING",), ALL),
        (("cpu", "server"), ["Server", "CPU"]),
        (("keyspace", "all"), ALL),
        (("commandstats", "default"), [*DEFAULT[:8], "Commandstats", *DEFAULT[8:]]),
        (("module_list",), ["Modules"]),
        (("nosuch",), []),
        (("subscribers",), ["Subscribers"]),
        (("topics",), ["Topics"]),
        (("store",), ["Store"]),
        (("links",), ["Links"]),
        (("warnings",), ["Warnings"]),
    ],
)
def test_sections_come_in_redis_order_and_only_those_asked_for(
    session: RecordedSession, asked: tuple[str, ...], told: list[str]
) -> None:
    assert titles(session, *asked) == told


def test_sections_are_parted_by_an_empty_line(session: RecordedSession) -> None:
    assert info(session, "keyspace", "cluster") == "# Cluster\r\ncluster_enabled:0\r\n\r\n# Keyspace\r\n\r\n"


def test_in_resp3_it_is_verbatim_text(session: RecordedSession) -> None:
    session.do("HELLO", "3")
    assert session.do("INFO", "cluster") == b"=34\r\ntxt:# Cluster\r\ncluster_enabled:0\r\n\r\n"


def test_ready_checks_find_what_they_read(session: RecordedSession) -> None:
    found = fields(session)
    assert found["loading"] == "0"
    assert found["redis_version"] == "7.0.15"
    assert found["redis_mode"] == "standalone"
    assert found["role"] == "master"
    assert found["connected_clients"] == "1"
    assert found["maxmemory_policy"] == "noeviction"


def test_it_tells_which_version_this_is_and_whether_it_is_compiled(session: RecordedSession) -> None:
    found = fields(session, "server")
    assert found["rlite_pubsub_version"] == __version__
    assert found["rlite_pubsub_compiled"] == ("1" if is_compiled() else "0")


def test_uptime_follows_the_clock() -> None:
    house = House()
    session = house.session()
    house.clock.now += 2 * 86400 + 5
    assert fields(session)["uptime_in_seconds"] == str(2 * 86400 + 5)
    assert fields(session)["uptime_in_days"] == "2"


def test_names_and_messages_are_counted() -> None:
    house = House()
    session, subscriber = house.session(), house.session()
    subscriber.do("SUBSCRIBE", "a", "b")
    house.session().do("SUBSCRIBE", "a")
    subscriber.do("PSUBSCRIBE", "p*")
    session.do("PUBLISH", "a", "hello")
    found = fields(session)
    assert (found["pubsub_channels"], found["pubsub_patterns"], found["pubsubshard_channels"]) == ("2", "1", "0")
    assert (found["subscribed_sessions"], found["channel_subscriptions"]) == ("2", "3")
    assert (found["messages_published"], found["messages_delivered"]) == ("1", "2")


def test_calls_failures_and_rejections_are_counted_for_each_command(session: RecordedSession) -> None:
    session.do("CONFIG", "RESETSTAT")
    session.do("PING")
    session.do("PING", "a", "b")
    session.do("ECHO")
    session.do("EXEC")
    found = fields(session, "commandstats")
    assert found["cmdstat_ping"].startswith("calls=2,") and found["cmdstat_ping"].endswith(",failed_calls=1")
    assert found["cmdstat_echo"] == "calls=0,usec=0,usec_per_call=0.00,rejected_calls=1,failed_calls=0"
    assert found["cmdstat_exec"].endswith("rejected_calls=0,failed_calls=1")
    assert "cmdstat_config|resetstat" in found


def test_errors_are_counted_by_their_first_word(session: RecordedSession) -> None:
    session.do("CONFIG", "RESETSTAT")
    session.do("NOSUCH")
    session.do("SCRIPT", "KILL")
    assert fields(session, "errorstats") == {"errorstat_ERR": "count=1", "errorstat_NOTBUSY": "count=1"}
    assert fields(session)["total_error_replies"] == "2"


def test_a_made_up_name_cannot_forge_a_field() -> None:
    house = House()
    house.engine.stats.count_error(b"A:B#C\r\nD some text")
    assert fields(house.session(), "errorstats") == {"errorstat_A_B_C__D": "count=1"}


def test_percentiles_are_those_that_are_set() -> None:
    house = House()
    session = house.session()
    house.engine.stats.count_call(TABLE.commands[b"publish"], 100, failed=False)
    session.do("CONFIG", "SET", "latency-tracking-info-percentiles", "0.0 99.9 100")
    assert fields(session, "latencystats")["latency_percentiles_usec_publish"] == "p0=99.840,p99.9=100.351,p100=100.351"


def test_no_percentiles_are_shown_once_tracking_is_off(session: RecordedSession) -> None:
    session.do("PING")
    session.do("CONFIG", "SET", "latency-tracking", "no")
    assert info(session, "latencystats") == "# Latencystats\r\n\r\n"


def test_a_rate_is_the_mean_of_the_last_samples() -> None:
    stats = Stats()
    sampler = Sampler(stats)
    for number in range(SAMPLES + 1):
        stats.commands_processed = number * 10
        sampler.sample(number / 10)
    assert round(sampler.commands.per_second) == 100


def test_a_reset_counter_makes_no_negative_rate() -> None:
    stats = Stats()
    sampler = Sampler(stats)
    stats.commands_processed = 1000
    sampler.sample(1.0)
    stats.reset()
    sampler.sample(1.1)
    assert sampler.commands.per_second == 0


def test_the_peak_never_falls(session: RecordedSession) -> None:
    sampler = session.engine.sampler
    sampler.peak_bytes = 1 << 50
    assert fields(session, "memory")["used_memory_peak_human"] == "1.00P"


@pytest.mark.parametrize(("size", "text"), [(0, "0B"), (1023, "1023B"), (1536, "1.50K"), (3 << 30, "3.00G")])
def test_sizes_are_told_as_people_like_them(size: int, text: str) -> None:
    assert human(size) == text


def test_scripts_hold_nothing_of_what_they_have_left_behind(session: RecordedSession) -> None:
    def held(field: bytes) -> int:
        return int(session.do("INFO", "memory").partition(field + b":")[2].partition(b"\r\n")[0])

    session.do("EVAL", "return #redis.call('INFO', 'memory')", "0")
    for number in range(2000):
        session.do("EVAL", "return ARGV[1]", "0", str(number))
    assert held(b"used_memory_lua") < 10_000
    keeping = "local kept = {} for i = 1, 30000 do kept[i] = i end"
    library = f"#!lua name=l\n{keeping} redis.register_function('f', function() return #kept end)"
    assert session.do("FUNCTION", "LOAD", library) == b"$1\r\nl\r\n"
    assert session.do("FCALL", "f", "0") == b":30000\r\n"
    assert held(b"used_memory_vm_functions") > 300_000
