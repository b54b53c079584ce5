"""Fields of hashes that expire: what is said of them, when they go, and who hears of it. No redis-server here knows any
of it: the replies and their order are those of Redis 8.0's source."""

from __future__ import annotations

import pytest
from parsed_session import ParsedSession
from recorded_session import House

from rlite_pubsub.storage import databases

NOW_MS = 1_700_000_000_000
LARGE = [word for number in range(600) for word in (f"n{number}", "v")]
NO_FIELDS = "Mandatory argument FIELDS is missing or not at the right position"
OTHER_COUNT = "The `numfields` parameter must match the number of arguments"


@pytest.fixture(params=["small", "large"])
def filled(request: pytest.FixtureRequest, client: ParsedSession) -> ParsedSession:
    """A client of a hash with the fields a, b and c."""
    client.do("HSET", "h", "a", "1", "b", "2", "c", "3", *(LARGE if request.param == "large" else []))
    assert client.do("OBJECT", "ENCODING", "h") == (b"hashtable" if request.param == "large" else b"listpack")
    return client


def test_fields_expire_alone_and_the_rest_stays(filled: ParsedSession, house: House) -> None:
    assert filled.do("HPEXPIRE", "h", "1500", "FIELDS", "3", "a", "b", "none") == [1, 1, -2]
    assert filled.do("HTTL", "h", "FIELDS", "4", "a", "b", "c", "none") == [2, 2, -1, -2]
    assert filled.do("HPTTL", "h", "FIELDS", "1", "a") == [1500]
    assert filled.do("HPEXPIRETIME", "h", "FIELDS", "1", "a") == [NOW_MS + 1500]
    assert filled.do("HEXPIRETIME", "h", "FIELDS", "1", "a") == [NOW_MS // 1000 + 2]
    length = filled.do("HLEN", "h")
    house.clock.now += 1.6
    assert filled.do("HMGET", "h", "a", "b", "c") == [None, None, b"3"]
    assert filled.do("HEXISTS", "h", "a") == 0 and filled.do("HSTRLEN", "h", "b") == 0
    assert filled.do("HLEN", "h") == length - 2
    assert b"a" not in filled.do("HKEYS", "h")
    assert filled.do("HTTL", "h", "FIELDS", "2", "a", "c") == [-2, -1]


def test_a_hash_whose_last_field_expires_is_gone(client: ParsedSession, house: House) -> None:
    client.do("HSET", "h", "a", "1")
    client.do("HPEXPIREAT", "h", str(NOW_MS + 10), "FIELDS", "1", "a")
    assert client.do("OBJECT", "ENCODING", "h") == b"listpackex"
    house.clock.now += 1
    assert client.do("HGETALL", "h") in ([], {})
    assert client.do("EXISTS", "h") == 0


def test_fields_expire_in_the_background_and_those_who_wish_hear_of_it(filled: ParsedSession, house: House) -> None:
    filled.do("CONFIG", "SET", "notify-keyspace-events", "EA")
    listener = ParsedSession(house)
    listener.do("PSUBSCRIBE", "__keyevent@0__:*")
    filled.do("HPEXPIRE", "h", "100", "FIELDS", "2", "a", "b")
    filled.do("HSET", "last", "a", "1")
    filled.do("HEXPIRE", "last", "1", "FIELDS", "1", "a")
    length = filled.do("HLEN", "h")
    house.clock.now += 2
    house.engine.housekeeping.step(house.clock.now)
    assert filled.do("DBSIZE") == 1 and filled.do("HLEN", "h") == length - 2
    heard = [listener.heard()]
    while (frame := listener.heard()) is not False:
        heard.append(frame)
    assert [frame[-2:] for frame in heard] == [
        [b"__keyevent@0__:hexpire", b"h"],
        [b"__keyevent@0__:hset", b"last"],
        [b"__keyevent@0__:hexpire", b"last"],
        [b"__keyevent@0__:hexpired", b"h"],
        [b"__keyevent@0__:hexpired", b"last"],
        [b"__keyevent@0__:del", b"last"],
    ]
    assert house.data.read(lambda txn: list(databases.items(txn, databases.EXPIRING))) == []


@pytest.mark.parametrize(
    ("condition", "first", "second"),
    [("NX", 0, 1), ("XX", 1, 0), ("GT", 0, 0), ("LT", 1, 1)],
)
def test_conditions_ask_when_the_field_expires_now(
    filled: ParsedSession, condition: str, first: int, second: int
) -> None:
    filled.do("HEXPIRE", "h", "100", "FIELDS", "1", "a")
    assert filled.do("HEXPIRE", "h", "50", condition, "FIELDS", "2", "a", "b") == [first, second]
    assert filled.do("HEXPIRE", "h", "200", "GT", "FIELDS", "1", "a") == [1]


def test_what_is_over_already_is_removed_at_once(filled: ParsedSession) -> None:
    assert filled.do("HEXPIREAT", "h", "1", "FIELDS", "2", "a", "none") == [2, -2]
    assert filled.do("HGET", "h", "a") is None


def test_setting_a_field_makes_it_last_and_counting_does_not(filled: ParsedSession) -> None:
    filled.do("HEXPIRE", "h", "100", "FIELDS", "3", "a", "b", "c")
    filled.do("HSET", "h", "a", "5")
    filled.do("HINCRBY", "h", "b", "1")
    filled.do("HINCRBYFLOAT", "h", "c", "0.5")
    assert filled.do("HTTL", "h", "FIELDS", "3", "a", "b", "c") == [-1, 100, 100]
    assert filled.do("HPERSIST", "h", "FIELDS", "3", "a", "b", "none") == [-1, 1, -2]
    assert filled.do("HTTL", "h", "FIELDS", "2", "b", "c") == [-1, 100]


def test_hgetex_reads_and_says_when_fields_expire(filled: ParsedSession) -> None:
    assert filled.do("HGETEX", "h", "FIELDS", "2", "a", "none") == [b"1", None]
    assert filled.do("HGETEX", "h", "EX", "100", "FIELDS", "2", "a", "b") == [b"1", b"2"]
    assert filled.do("HGETEX", "h", "PERSIST", "FIELDS", "1", "a") == [b"1"]
    assert filled.do("HTTL", "h", "FIELDS", "2", "a", "b") == [-1, 100]
    assert filled.do("HGETEX", "h", "PXAT", "1", "FIELDS", "1", "b") == [b"2"]
    assert filled.do("HGET", "h", "b") is None
    assert filled.do("HGETEX", "none", "FIELDS", "2", "a", "b") == [None, None]


def test_hsetex_sets_all_or_nothing(filled: ParsedSession) -> None:
    assert filled.do("HSETEX", "h", "FNX", "FIELDS", "2", "a", "9", "new", "9") == 0
    assert filled.do("HSETEX", "h", "FXX", "FIELDS", "2", "a", "9", "new", "9") == 0
    assert filled.do("HMGET", "h", "a", "new") == [b"1", None]
    assert filled.do("HSETEX", "h", "FXX", "PX", "5000", "FIELDS", "2", "a", "8", "b", "7") == 1
    assert filled.do("HPTTL", "h", "FIELDS", "3", "a", "b", "c") == [5000, 5000, -1]
    assert filled.do("HSETEX", "h", "KEEPTTL", "FIELDS", "1", "a", "6") == 1
    assert filled.do("HSETEX", "h", "FIELDS", "1", "b", "6") == 1
    assert filled.do("HPTTL", "h", "FIELDS", "2", "a", "b") == [5000, -1]
    assert filled.do("HSETEX", "none", "FXX", "FIELDS", "1", "a", "1") == 0
    assert filled.do("EXISTS", "none") == 0


def test_hgetdel_takes_fields_out(filled: ParsedSession) -> None:
    assert filled.do("HGETDEL", "h", "FIELDS", "3", "a", "none", "a") == [b"1", None, None]
    assert filled.do("HGET", "h", "a") is None
    filled.do("HSET", "one", "a", "1")
    assert filled.do("HGETDEL", "one", "FIELDS", "1", "a") == [b"1"]
    assert filled.do("EXISTS", "one") == 0


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        ("HEXPIRE h -1 FIELDS 1 a", "invalid expire time, must be >= 0"),
        ("HEXPIRE h x FIELDS 1 a", "value is not an integer or out of range"),
        ("HEXPIRE h 70368744178 FIELDS 1 a", "invalid expire time in 'hexpire' command"),
        ("HPEXPIREAT h 70368744177664 FIELDS 1 a", "invalid expire time in 'hpexpireat' command"),
        ("HEXPIRE h 1 a FIELDS 1 a", NO_FIELDS),
        ("HEXPIRE h 1 NX XX 1 a", NO_FIELDS),
        ("HEXPIRE h 1 FIELDS 0 a", "Parameter `numFields` should be greater than 0"),
        ("HEXPIRE h 1 FIELDS 2 a", OTHER_COUNT),
        ("HTTL h FIELDS 0 a", "Number of fields must be a positive integer"),
        ("HPERSIST h a 1 FIELDS", NO_FIELDS),
        ("HGETDEL h FIELDS 2 a", OTHER_COUNT),
        ("HGETEX h EX 1 PX 1 FIELDS 1 a", NO_FIELDS),
        ("HSETEX h EX 1 PX 1 FIELDS 1 a b", "Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified"),
        ("HSETEX h FNX FXX FIELDS 1 a b", "Only one of FXX or FNX arguments can be specified"),
        ("HSETEX h FIELDS 2 a b c d e", "wrong number of arguments for 'hsetex' command"),
        ("HSETEX h what FIELDS 1 a b", "unknown argument: what"),
        ("HSETEX h FIELDS 0 a b", "invalid number of fields"),
    ],
)
def test_what_is_wrong_is_refused_and_changes_nothing(filled: ParsedSession, words: str, refusal: str) -> None:
    before = filled.do("HGETALL", "h")
    assert str(filled.do(*words.split())).removeprefix("ERR ") == refusal
    assert filled.do("HGETALL", "h") == before


def test_expiries_of_fields_survive_a_dump(filled: ParsedSession, house: House) -> None:
    filled.do("HEXPIRE", "h", "100", "FIELDS", "1", "a")
    before = filled.do("HGETALL", "h")
    assert filled.do("RESTORE", "again", "0", filled.do("DUMP", "h")) == b"OK"
    assert filled.do("HGETALL", "again") == before
    assert filled.do("HTTL", "again", "FIELDS", "2", "a", "b") == [100, -1]
    house.clock.now += 200
    assert filled.do("HMGET", "again", "a", "b") == [None, b"2"]
    house.engine.housekeeping.step(house.clock.now)
    assert filled.do("DUMP", "h")[-10:-8] == b"\x0a\x00", "7.0.15's form again, once no field expires any more"


def test_expiries_of_fields_survive_a_copy_and_a_rename(filled: ParsedSession, house: House) -> None:
    filled.do("HEXPIRE", "h", "100", "FIELDS", "1", "a")
    filled.do("COPY", "h", "copy")
    filled.do("RENAME", "h", "moved")
    house.engine.keyspace.stored.forget()
    assert filled.do("HTTL", "copy", "FIELDS", "2", "a", "b") == [100, -1]
    house.clock.now += 200
    house.engine.housekeeping.step(house.clock.now)
    assert filled.do("HMGET", "copy", "a", "b") == filled.do("HMGET", "moved", "a", "b") == [None, b"2"]
    assert house.data.read(lambda txn: list(databases.items(txn, databases.EXPIRING))) == []
