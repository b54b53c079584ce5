"""CLIENT PAUSE and UNPAUSE."""

from __future__ import annotations

import pytest
from recorded_session import House

OK = b"+OK\r\n"


def test_under_all_every_command_waits_and_is_executed_when_the_time_is_over(house: House) -> None:
    admin, client = house.session(), house.session()
    assert admin.do("CLIENT", "PAUSE", "1000") == OK
    assert client.do("PING") == b""
    assert client.do("ECHO", "a") == b""
    house.timers.advance(0.9)
    assert client.heard() == b""
    house.timers.advance(0.2)
    assert client.heard() == b"+PONG\r\n$1\r\na\r\n"


def test_under_all_even_unpause_waits(house: House) -> None:
    admin = house.session()
    admin.do("CLIENT", "PAUSE", "1000")
    assert admin.do("CLIENT", "UNPAUSE") == b""


def test_a_command_that_is_refused_is_refused_during_a_pause(house: House) -> None:
    client = house.session()
    house.session().do("CLIENT", "PAUSE", "1000")
    assert client.do("ECHO").startswith(b"-ERR wrong number")


def test_under_write_publish_waits_and_reading_does_not(house: House) -> None:
    admin, publisher = house.session(), house.session()
    admin.do("CLIENT", "PAUSE", "100000", "WRITE")
    assert publisher.do("PING") == b"+PONG\r\n"
    assert publisher.do("PUBLISH", "c", "m") == b""
    assert admin.do("CLIENT", "UNPAUSE") == OK
    house.timers.advance()
    assert publisher.heard() == b":0\r\n"


def test_the_released_go_on_after_the_reply_to_unpause_and_in_order(house: House) -> None:
    admin, first, second = house.session(), house.session(), house.session()
    admin.do("HELLO", "3")
    admin.do("SUBSCRIBE", "c")
    admin.do("CLIENT", "PAUSE", "100000", "WRITE")
    second.do("PUBLISH", "c", "two")
    first.do("PUBLISH", "c", "one")
    admin.waiting.append([b"CLIENT", b"UNPAUSE"])
    admin.resume()
    house.timers.advance()
    said = admin.heard()
    assert said.startswith(OK)
    assert said.index(b"two") < said.index(b"one")


def test_queueing_a_publish_waits_and_so_does_exec_with_one_in_its_queue(house: House) -> None:
    admin, early, late = house.session(), house.session(), house.session()
    early.do("MULTI")
    early.do("PUBLISH", "c", "m")
    late.do("MULTI")
    admin.do("CLIENT", "PAUSE", "1000", "WRITE")
    assert early.do("EXEC") == b""
    assert late.do("PING") == b"+QUEUED\r\n"
    assert late.do("PUBLISH", "c", "m") == b""
    house.timers.advance(2)
    assert early.heard() == b"*1\r\n:0\r\n"
    assert late.heard() == b"+QUEUED\r\n"


def test_exec_of_commands_that_only_read_does_not_wait(house: House) -> None:
    client = house.session()
    client.do("MULTI")
    client.do("PING")
    house.session().do("CLIENT", "PAUSE", "1000", "WRITE")
    assert client.do("EXEC") == b"*1\r\n+PONG\r\n"


def test_of_two_pauses_the_later_end_and_the_stricter_scope_hold(house: House) -> None:
    admin, client = house.session(), house.session()
    admin.do("CLIENT", "PAUSE", "10000", "WRITE")
    admin.do("CLIENT", "PAUSE", "1000", "ALL")
    assert client.do("PING") == b""
    house.timers.advance(2)
    house.engine.pause.expire(house.clock.now)
    assert client.heard() == b""
    house.timers.advance(9)
    assert client.heard() == b"+PONG\r\n"


def test_a_weaker_and_shorter_pause_takes_nothing_from_the_first(house: House) -> None:
    admin, client = house.session(), house.session()
    admin.waiting += [[b"MULTI"], [b"CLIENT", b"PAUSE", b"9000"], [b"CLIENT", b"PAUSE", b"1", b"WRITE"], [b"EXEC"]]
    admin.resume()
    assert client.do("PING") == b""
    house.timers.advance(2)
    house.engine.pause.expire(house.clock.now)
    assert client.heard() == b""


def test_who_watches_with_monitor_is_not_held(house: House) -> None:
    monitor = house.session()
    monitor.do("MONITOR")
    house.session().do("CLIENT", "PAUSE", "1000")
    assert b"+PONG" in monitor.do("PING")


@pytest.mark.parametrize("timeout", ["0", "9223372036854775807"])
def test_an_end_that_lies_in_the_past_pauses_nothing(house: House, timeout: str) -> None:
    client = house.session()
    assert client.do("CLIENT", "PAUSE", timeout) == OK
    assert client.do("PING") == b"+PONG\r\n"


def test_a_session_that_went_away_is_not_resumed(house: House) -> None:
    client = house.session()
    house.session().do("CLIENT", "PAUSE", "1000")
    client.do("PING")
    client.close_now()
    house.timers.advance(2)
    assert client.heard() == b""


def test_a_session_that_goes_between_release_and_resumption_is_not_resumed(house: House) -> None:
    admin, client = house.session(), house.session()
    admin.do("CLIENT", "PAUSE", "1000", "WRITE")
    client.do("PUBLISH", "c", "m")
    admin.do("CLIENT", "UNPAUSE")
    admin.do("CLIENT", "KILL", "ID", str(client.id))
    house.timers.advance()
    assert client.heard() == b""


def test_without_timers_the_cron_ends_a_pause(house: House) -> None:
    client = house.session()
    house.session().do("CLIENT", "PAUSE", "1000")
    client.do("PING")
    house.clock.now += 2
    house.engine.pause.expire(house.clock.now)
    assert client.heard() == b"+PONG\r\n"


def test_unblock_leaves_a_paused_client_alone(house: House) -> None:
    admin, client = house.session(), house.session()
    admin.do("CLIENT", "PAUSE", "1000", "WRITE")
    client.do("PUBLISH", "c", "m")
    assert admin.do("CLIENT", "UNBLOCK", str(client.id)) == b":0\r\n"
    assert admin.do("CLIENT", "UNBLOCK", str(client.id), "ERROR") == b":0\r\n"
    assert b" flags=b " in admin.do("CLIENT", "LIST", "ID", str(client.id))


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("x",), b"-ERR timeout is not an integer or out of range\r\n"),
        (("-1",), b"-ERR timeout is negative\r\n"),
        (("1", "some"), b"-ERR CLIENT PAUSE mode must be WRITE or ALL\r\n"),
        (
            ("1", "all", "x"),
            b"-ERR unknown subcommand or wrong number of arguments for 'pause'. Try CLIENT HELP.\r\n",
        ),
    ],
)
def test_what_makes_no_pause_is_refused(house: House, words: tuple[str, ...], error: bytes) -> None:
    assert house.session().do("client", "pause", *words) == error
