"""SLOWLOG, and what is kept of a slow request."""

from __future__ import annotations

import pytest
from recorded_session import House, RecordedSession

from rlite_pubsub.engine.stats.slowlog import outline
from rlite_pubsub.engine.table import TABLE

pytestmark = pytest.mark.settings(slowlog_log_slower_than="1000")


def note(session: RecordedSession, duration_us: int, *args: bytes) -> None:
    command = TABLE.resolve(list(args))
    session.engine.slowlog.note(session, command, list(args), duration_us)


def test_only_what_takes_as_long_as_the_setting_says_is_kept(house: House) -> None:
    session = house.session()
    note(session, 999, b"ping")
    note(session, 1000, b"ping")
    assert session.do("SLOWLOG", "LEN") == b":1\r\n"


def test_entry_tells_id_time_duration_arguments_address_and_name(house: House) -> None:
    session = house.session()
    session.do("CLIENT", "SETNAME", "ann")
    note(session, 1500, b"publish", b"a", b"b")
    assert session.do("SLOWLOG", "GET") == (
        b"*1\r\n*6\r\n:0\r\n:1700000000\r\n:1500\r\n*3\r\n$7\r\npublish\r\n$1\r\na\r\n$1\r\nb\r\n"
        b"$15\r\n127.0.0.1:50001\r\n$3\r\nann\r\n"
    )


def test_newest_is_first_and_only_as_many_as_asked_for(house: House) -> None:
    session = house.session()
    for duration_us in range(1000, 1012):
        note(session, duration_us, b"ping")
    assert session.do("SLOWLOG", "GET", "1").startswith(b"*1\r\n*6\r\n:11\r\n")
    assert session.do("SLOWLOG", "GET").startswith(b"*10\r\n")
    assert session.do("SLOWLOG", "GET", "-1").startswith(b"*12\r\n")
    assert session.do("SLOWLOG", "GET", "0") == b"*0\r\n"


@pytest.mark.parametrize("count", ["-2", "abc", "1.0", ""])
def test_a_count_below_minus_one_is_refused(house: House, count: str) -> None:
    assert house.session().do("SLOWLOG", "GET", count) == b"-ERR count should be greater than or equal to -1\r\n"


def test_a_shorter_limit_drops_the_oldest_at_once(house: House) -> None:
    session = house.session()
    for _ in range(3):
        note(session, 5000, b"ping")
    session.do("CONFIG", "SET", "slowlog-max-len", "1")
    assert session.do("SLOWLOG", "GET").startswith(b"*1\r\n*6\r\n:2\r\n")


def test_a_negative_setting_keeps_nothing_and_zero_everything(house: House) -> None:
    session = house.session()
    session.do("CONFIG", "SET", "slowlog-log-slower-than", "-1")
    note(session, 10_000_000, b"ping")
    assert session.do("SLOWLOG", "LEN") == b":0\r\n"
    session.do("CONFIG", "SET", "slowlog-log-slower-than", "0")
    session.do("SLOWLOG", "RESET")
    session.do("PING")
    assert session.do("SLOWLOG", "LEN") == b":2\r\n"  # the RESET, noted once it was over, and the PING


def test_commands_are_shown_one_by_one_while_short_ones_may_be_slow(house: House) -> None:
    assert house.engine.slowlog.coarse
    house.session().do("CONFIG", "SET", "slowlog-log-slower-than", "10")
    assert not house.engine.slowlog.coarse


def test_what_may_carry_secrets_is_never_kept(house: House) -> None:
    session = house.session()
    note(session, 5000, b"exec")
    assert session.do("SLOWLOG", "LEN") == b":0\r\n"


def test_ids_go_on_after_a_reset(house: House) -> None:
    session = house.session()
    note(session, 5000, b"ping")
    assert session.do("SLOWLOG", "RESET") == b"+OK\r\n"
    note(session, 5000, b"ping")
    assert session.do("SLOWLOG", "GET").startswith(b"*1\r\n*6\r\n:1\r\n")


def test_long_arguments_are_cut_and_the_rest_is_counted() -> None:
    assert outline([b"x" * 128]) == [b"x" * 128]
    assert outline([b"x" * 131]) == [b"x" * 128 + b"... (3 more bytes)"]


def test_many_arguments_are_cut_and_the_rest_is_counted() -> None:
    assert outline([b"x"] * 32) == [b"x"] * 32
    assert outline([b"x"] * 33) == [b"x"] * 31 + [b"... (2 more arguments)"]


def test_too_many_arguments_get_the_syntax_error(house: House) -> None:
    assert house.session().do("SLOWLOG", "GET", "1", "2") == (
        b"-ERR unknown subcommand or wrong number of arguments for 'GET'. Try SLOWLOG HELP.\r\n"
    )
