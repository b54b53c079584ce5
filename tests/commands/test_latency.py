"""LATENCY: spikes, their history, graph and diagnosis, and the histograms of commands."""

from __future__ import annotations

import pytest
from recorded_session import House

from rlite_pubsub.commands.server.latency import sparkline
from rlite_pubsub.engine.stats.latency import MAX_SAMPLES
from rlite_pubsub.engine.table import TABLE

pytestmark = pytest.mark.settings(latency_monitor_threshold="100")


def test_what_is_quicker_than_the_threshold_is_no_spike(house: House) -> None:
    house.engine.latency.note(b"command", 99)
    assert house.session().do("LATENCY", "LATEST") == b"*0\r\n"


def test_without_a_threshold_nothing_is_watched() -> None:
    house = House()
    house.engine.latency.note(b"command", 99_999)
    house.engine.latency.note_command(TABLE.commands[b"ping"], 99_999_000)
    assert house.session().do("LATENCY", "LATEST") == b"*0\r\n"


def test_threshold_is_live(house: House) -> None:
    session = house.session()
    session.do("CONFIG", "SET", "latency-monitor-threshold", "5")
    house.engine.latency.note_command(TABLE.commands[b"info"], 5000)
    assert session.do("LATENCY", "LATEST").startswith(b"*1\r\n")


def test_fast_commands_are_an_event_of_their_own(house: House) -> None:
    house.engine.latency.note_command(TABLE.commands[b"ping"], 100_000)
    house.engine.latency.note_command(TABLE.commands[b"info"], 99_999)
    assert list(house.engine.latency.events) == [b"fast-command"]


def test_latest_tells_the_last_spike_and_the_worst(house: House) -> None:
    house.engine.latency.note(b"command", 300)
    house.clock.now += 10
    house.engine.latency.note(b"command", 200)
    assert house.session().do("LATENCY", "LATEST") == b"*1\r\n*4\r\n$7\r\ncommand\r\n:1700000010\r\n:200\r\n:300\r\n"


def test_within_a_second_only_the_worst_spike_is_kept(house: House) -> None:
    for ms in (200, 300, 100):
        house.engine.latency.note(b"command", ms)
    assert house.session().do("LATENCY", "HISTORY", "command") == b"*1\r\n*2\r\n:1700000000\r\n:300\r\n"


def test_history_is_bounded_and_oldest_first(house: House) -> None:
    for _ in range(MAX_SAMPLES + 5):
        house.clock.now += 1
        house.engine.latency.note(b"command", 200)
    times = [time for time, _ in house.engine.latency.events[b"command"].samples]
    assert times == list(range(1_700_000_006, 1_700_000_006 + MAX_SAMPLES))


def test_reset_forgets_what_is_named_in_any_case_and_counts(house: House) -> None:
    session = house.session()
    for event in (b"command", b"fast-command", b"fork"):
        house.engine.latency.note(event, 200)
    assert session.do("LATENCY", "RESET", "COMMAND", "nosuch") == b":1\r\n"
    assert session.do("LATENCY", "RESET") == b":2\r\n"
    assert session.do("LATENCY", "HISTORY", "fork") == b"*0\r\n"


def test_graph_of_nothing_is_an_error(house: House) -> None:
    assert house.session().do("LATENCY", "GRAPH", "fork") == b"-ERR No samples available for event 'fork'\r\n"


def test_graph_shows_the_age_of_each_spike(house: House) -> None:
    house.engine.latency.note(b"command", 100)
    house.clock.now += 7200
    house.engine.latency.note(b"command", 500)
    graph = house.session().do("LATENCY", "GRAPH", "command").decode()
    assert "command - high 500 ms, low 100 ms (all time high 500 ms)\n" + "-" * 80 + "\n" in graph
    assert graph.endswith(" #\n |\n |\n_|\n  \n20\nhs\n\r\n")


def test_sparkline_of_equal_values_is_flat() -> None:
    assert sparkline([(5, "a"), (5, "b")]) == "  \n  \n  \n__\n  \nab\n"


def test_sparkline_breaks_after_eighty_columns() -> None:
    lines = sparkline([(number, "x") for number in range(81)]).split("\n")
    assert [len(line) for line in lines] == [80] * 6 + [0] + [1] * 6 + [0]


def test_doctor_says_how_to_begin_when_nothing_is_watched() -> None:
    assert b"latency-monitor-threshold" in House().session().do("LATENCY", "DOCTOR")


def test_doctor_names_each_event_and_advises(house: House) -> None:
    assert b"All is well" in house.session().do("LATENCY", "DOCTOR")
    house.engine.latency.note(b"command", 200)
    house.engine.latency.note(b"fast-command", 200)
    report = house.session().do("LATENCY", "DOCTOR").decode()
    assert "1. command: 1 spikes, 200 ms on average" in report
    assert "2. fast-command:" in report
    assert "SLOWLOG GET" in report


def test_doctor_advises_to_turn_on_the_slow_log(house: House) -> None:
    session = house.session()
    session.do("CONFIG", "SET", "slowlog-log-slower-than", "-1")
    house.engine.latency.note(b"command", 200)
    assert b"CONFIG SET slowlog-log-slower-than 100000" in session.do("LATENCY", "DOCTOR")


def test_histogram_counts_calls_of_a_command_and_of_subcommands(house: House) -> None:
    session = house.session()
    session.do("CONFIG", "RESETSTAT")
    for _ in range(3):
        session.do("CLIENT", "ID")
    reply = session.do("LATENCY", "HISTOGRAM", "client", "nosuch")
    assert reply.startswith(b"*2\r\n$9\r\nclient|id\r\n*4\r\n$5\r\ncalls\r\n:3\r\n$14\r\nhistogram_usec\r\n*")
    assert reply == session.do("LATENCY", "HISTOGRAM", "CLIENT|ID")
    assert session.do("LATENCY", "HISTOGRAM", "client|getname") == b"*0\r\n"


def test_histogram_of_all_leaves_out_what_was_not_called(house: House) -> None:
    session = house.session()
    session.do("CONFIG", "RESETSTAT")
    assert session.do("LATENCY", "HISTOGRAM").startswith(b"*2\r\n$16\r\nconfig|resetstat\r\n")
