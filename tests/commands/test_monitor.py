"""MONITOR."""

from __future__ import annotations

from recorded_session import House


def test_a_monitor_sees_its_own_request_after_the_reply(house: House) -> None:
    monitor = house.session()
    assert monitor.do("MONITOR") == b"+OK\r\n"
    said = monitor.do("PING", 'a"b')
    assert said.startswith(b'$3\r\na"b\r\n+1700000000.000000 [0 127.0.0.1:50001] "PING" "a\\"b"\r\n')


def test_a_monitor_may_not_touch_the_keyspace(house: House) -> None:
    monitor, other = house.session(), house.session()
    monitor.do("MONITOR")
    assert monitor.do("PUBLISH", "c", "m") == b"-ERR Replica can't interact with the keyspace\r\n"
    assert monitor.do("DBSIZE") == b"-ERR Replica can't interact with the keyspace\r\n"
    assert other.do("PUBLISH", "c", "m") == b":0\r\n"
    monitor.do("RESET")
    assert monitor.do("PUBLISH", "c", "m") == b":0\r\n"
