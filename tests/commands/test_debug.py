"""DEBUG: who may, and the samples that it sends."""

from __future__ import annotations

import logging
import time

import pytest
from recorded_session import House, RecordedSession

pytestmark = pytest.mark.settings(enable_debug_command="yes")


def test_it_is_refused_unless_it_is_enabled() -> None:
    assert b"DEBUG command not allowed" in House().session().do("DEBUG", "SLEEP", "0")
    assert House(enable_debug_command="local").session().do("DEBUG", "SLEEP", "0") == b"+OK\r\n"


def test_sleep_stops_everything_for_as_long_as_asked(session: RecordedSession, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    for seconds in ("0.5", "1e-3", "-1", "abc", "2x"):
        assert session.do("DEBUG", "SLEEP", seconds) == b"+OK\r\n"
    assert slept == [0.5, 0.001, 0.0, 0.0, 2.0]


def test_log_writes_to_the_log(session: RecordedSession, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert session.do("DEBUG", "LOG", "### hello") == b"+OK\r\n"
    assert "DEBUG LOG: ### hello" in caplog.text


def test_error_is_sent_in_one_line_and_not_counted(session: RecordedSession) -> None:
    assert session.do("DEBUG", "ERROR", "FOO a\r\nb") == b"-FOO a  b\r\n"
    assert session.engine.stats.total_errors == 0


def test_pausing_the_cron_pauses_sampling(session: RecordedSession) -> None:
    session.do("DEBUG", "PAUSE-CRON", "1")
    assert session.engine.sampler.paused
    session.do("DEBUG", "PAUSE-CRON", "0")
    assert not session.engine.sampler.paused


@pytest.mark.parametrize(
    ("kind", "two", "three"),
    [
        ("string", b"$11\r\nHello World\r\n", None),
        ("integer", b":12345\r\n", None),
        ("double", b"$5\r\n3.141\r\n", b",3.141\r\n"),
        ("bignum", b"$37\r\n1234567999999999999999999999999999999\r\n", b"(1234567999999999999999999999999999999\r\n"),
        ("null", b"$-1\r\n", b"_\r\n"),
        ("array", b"*3\r\n:0\r\n:1\r\n:2\r\n", None),
        ("set", b"*3\r\n:0\r\n:1\r\n:2\r\n", b"~3\r\n:0\r\n:1\r\n:2\r\n"),
        ("map", b"*6\r\n:0\r\n:0\r\n:1\r\n:1\r\n:2\r\n:0\r\n", b"%3\r\n:0\r\n#f\r\n:1\r\n#t\r\n:2\r\n#f\r\n"),
        ("true", b":1\r\n", b"#t\r\n"),
        ("verbatim", b"$25\r\nThis is a verbatim\nstring\r\n", b"=29\r\ntxt:This is a verbatim\nstring\r\n"),
        (
            "attrib",
            b"$39\r\nSome real reply following the attribute\r\n",
            b"|1\r\n$14\r\nkey-popularity\r\n*2\r\n$7\r\nkey:123\r\n:90\r\n"
            b"$39\r\nSome real reply following the attribute\r\n",
        ),
        (
            "push",
            b"-ERR RESP2 is not supported by this command\r\n",
            b">2\r\n$16\r\nserver-cpu-usage\r\n:42\r\n$40\r\nSome real reply following the push reply\r\n",
        ),
    ],
)
def test_protocol_sends_each_type_of_reply(
    session: RecordedSession, kind: str, two: bytes, three: bytes | None
) -> None:
    assert session.do("DEBUG", "PROTOCOL", kind) == two
    session.do("HELLO", "3")
    assert session.do("DEBUG", "PROTOCOL", kind) == (two if three is None else three)


@pytest.mark.parametrize(
    ("words", "reply"),
    [
        (("NOSUCH",), b"-ERR unknown subcommand or wrong number of arguments for 'NOSUCH'. Try DEBUG HELP.\r\n"),
        (("SLEEP",), b"-ERR unknown subcommand or wrong number of arguments for 'SLEEP'. Try DEBUG HELP.\r\n"),
        (("OBJECT", "k"), b"-ERR no such key\r\n"),
        (("HTSTATS", "16"), b"-ERR Out of range database\r\n"),
        (("HTSTATS-KEY", "k"), b"-ERR no such key\r\n"),
        (("POPULATE", "x"), b"-ERR value is out of range, must be positive\r\n"),
        (("POPULATE", "-1"), b"-ERR value is out of range, must be positive\r\n"),
        (("RELOAD", "x"), b"-ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options.\r\n"),
        (("RELOAD", "NOSAVE", "noflush"), b"+OK\r\n"),
        (("LOADAOF",), b"+OK\r\n"),
        (("SET-ACTIVE-EXPIRE", "0"), b"+OK\r\n"),
        (("DIGEST",), b"+" + b"0" * 40 + b"\r\n"),
        (("DIGEST-VALUE", "a", "b"), b"*2\r\n" + (b"+" + b"0" * 40 + b"\r\n") * 2),
        (("QUICKLIST-PACKED-THRESHOLD", "100b"), b"+OK\r\n"),
        (
            ("QUICKLIST-PACKED-THRESHOLD", "4gb"),
            b"-ERR argument must be a memory value bigger than 1 and smaller than 4gb\r\n",
        ),
    ],
)
def test_what_suites_ask_for_is_answered_as_redis_does(
    session: RecordedSession, words: tuple[str, ...], reply: bytes
) -> None:
    assert session.do("DEBUG", *words) == reply


def test_every_setting_can_be_written_to_the_file(session: RecordedSession, tmp_path: object) -> None:
    assert session.do("DEBUG", "CONFIG-REWRITE-FORCE-ALL").startswith(b"-ERR CONFIG-REWRITE-FORCE-ALL failed")
    session.engine.config_file = f"{tmp_path}/redis.conf"
    assert session.do("DEBUG", "CONFIG-REWRITE-FORCE-ALL") == b"+OK\r\n"
    with open(f"{tmp_path}/redis.conf") as file:
        assert "\nslowlog-max-len 128\n" in file.read()


def test_populate_adds_keys_where_there_are_none(session: RecordedSession) -> None:
    session.do("SET", "key:1", "mine")
    assert session.do("DEBUG", "POPULATE", "3") == b"+OK\r\n"
    assert session.do("MGET", "key:0", "key:1", "key:2") == b"*3\r\n$7\r\nvalue:0\r\n$4\r\nmine\r\n$7\r\nvalue:2\r\n"
    assert session.do("DEBUG", "POPULATE", "1", "long", "10") == b"+OK\r\n"
    assert session.do("DEBUG", "POPULATE", "1", "short", "3") == b"+OK\r\n"
    assert session.do("MGET", "long:0", "short:0") == b"*2\r\n$10\r\nvalue:0\0\0\0\r\n$3\r\nval\r\n"
    assert session.do("DBSIZE") == b":5\r\n"



@pytest.mark.parametrize(
    ("words", "length"),
    [
        ("SET k hello", 6),
        ("SET k 12345", 3),
        ("RPUSH k a b 1", 18),
        ("SADD k a b", 5),
        ("SADD k 1 2 300000", 21),
        ("HSET k f v", 14),
        ("ZADD k 1 a 2.5 b", 21),
    ],
)
@pytest.mark.settings(enable_debug_command="yes")
def test_object_tells_the_serialized_length_of_redis(session: RecordedSession, words: str, length: int) -> None:
    session.do(*words.split())
    assert b" serializedlength:%d " % length in session.do("DEBUG", "OBJECT", "k")
