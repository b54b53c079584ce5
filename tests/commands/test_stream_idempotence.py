"""XADD's IDMP and IDMPAUTO, and XCFGSET, as Redis 8.6 has them."""

from __future__ import annotations

import pytest
from recorded_session import House, RecordedSession


def publish(session: RecordedSession, *words: str, key: str = "s") -> bytes:
    said = session.do("XADD", key, *words)
    assert said.startswith(b"$"), said
    return said.split(b"\r\n")[1]


def about(session: RecordedSession, key: str = "s") -> dict[str, int]:
    words = session.do("XINFO", "STREAM", key).split(b"\r\n")
    names = [b"idmp-duration", b"idmp-maxsize", b"pids-tracked", b"iids-tracked", b"iids-added", b"iids-duplicates"]
    return {name.decode(): int(words[words.index(name) + 1][1:]) for name in names if name in words}


def length(session: RecordedSession) -> bytes:
    return session.do("XLEN", "s")


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        ("IDMP p1 * f v", "Invalid stream ID specified"),
        ("IDMP p1 iid 1-1 f v", "IDMP/IDMPAUTO can be used only with auto-generated IDs"),
        ("IDMPAUTO p1 1-* f v", "IDMP/IDMPAUTO can be used only with auto-generated IDs"),
        ("IDMP p1 a IDMP p2 b * f v", "IDMP/IDMPAUTO specified multiple times"),
        ("IDMPAUTO p1 IDMP p2 b * f v", "IDMP/IDMPAUTO specified multiple times"),
        ("IDMPAUTO p1 IDMPAUTO p2 * f v", "IDMP/IDMPAUTO specified multiple times"),
    ],
)
def test_what_is_wrong_is_refused(session: RecordedSession, words: str, refusal: str) -> None:
    assert session.do("XADD", "s", *words.split()).startswith(b"-ERR " + refusal.encode())
    assert session.do("EXISTS", "s") == b":0\r\n"


def test_names_may_not_be_empty(session: RecordedSession) -> None:
    for words, name in ((("IDMP", "", "i"), b"IDMP"), (("IDMPAUTO", ""), b"IDMPAUTO")):
        refused = session.do("XADD", "s", *words, "*", "f", "v")
        assert refused == b"-ERR %b requires a non-empty producer ID\r\n" % name
    assert b"IDMP requires a non-empty idempotent ID" in session.do("XADD", "s", "IDMP", "p", "", "*", "f", "v")


def test_what_is_published_again_is_not_added_again(session: RecordedSession) -> None:
    first = publish(session, "IDMP", "p1", "payment", "*", "amount", "100")
    assert publish(session, "IDMP", "p1", "payment", "MAXLEN", "0", "*", "amount", "200") == first
    assert length(session) == b":1\r\n"
    assert publish(session, "IDMP", "p2", "payment", "*", "amount", "100") != first
    assert publish(session, "MAXLEN", "~", "100", "NOMKSTREAM", "IDMP", "p1", "*", "*", "amount", "1") != first
    assert about(session) == {
        "idmp-duration": 100,
        "idmp-maxsize": 100,
        "pids-tracked": 2,
        "iids-tracked": 3,
        "iids-added": 3,
        "iids-duplicates": 1,
    }


def test_its_entry_may_be_gone(session: RecordedSession) -> None:
    first = publish(session, "IDMP", "p", "i", "*", "f", "v")
    session.do("XDEL", "s", first)
    assert publish(session, "IDMP", "p", "i", "*", "f", "v") == first
    assert length(session) == b":0\r\n"


def test_what_a_publication_consists_of_may_be_its_name(session: RecordedSession) -> None:
    first = publish(session, "IDMPAUTO", "p", "*", "a", "1", "b", "2")
    assert publish(session, "IDMPAUTO", "p", "*", "b", "2", "a", "1") == first
    others = ["a 1", "a 1 b 3", "a 2 b 1", "b 1 a 2", "a 1 b 2 b 2", "a1 b 2 x"]
    ids = {publish(session, "IDMPAUTO", "p", "*", *words.split()) for words in others}
    assert len(ids | {first}) == 7 - 1  # a 2 b 1 is b 1 a 2
    assert publish(session, "IDMPAUTO", "other", "*", "a", "1", "b", "2") != first


def test_a_topic_that_is_not_there_is_not_made_for_nothing(session: RecordedSession) -> None:
    assert session.do("XADD", "s", "NOMKSTREAM", "IDMP", "p", "i", "*", "f", "v") == b"$-1\r\n"
    assert session.do("EXISTS", "s") == b":0\r\n"


def test_the_oldest_of_a_producer_are_forgotten_first(session: RecordedSession) -> None:
    publish(session, "*", "f", "v")
    assert session.do("XCFGSET", "s", "IDMP-MAXSIZE", "3", "IDMP-DURATION", "60") == b"+OK\r\n"
    ids = {name: publish(session, "IDMP", "p1", name, "*", "f", name) for name in "abc"}
    elsewhere = publish(session, "IDMP", "p2", "a", "*", "f", "v")
    publish(session, "IDMP", "p1", "d", "*", "f", "v")
    assert publish(session, "IDMP", "p1", "a", "*", "f", "v") != ids["a"]
    assert publish(session, "IDMP", "p1", "c", "*", "f", "v") == ids["c"]
    assert publish(session, "IDMP", "p2", "a", "*", "f", "v") == elsewhere
    known = about(session)
    assert (known["pids-tracked"], known["iids-tracked"], known["iids-added"]) == (2, 4, 6)


def test_what_is_too_long_ago_is_forgotten(house: House, session: RecordedSession) -> None:
    ids = [publish(session, "IDMP", f"p{number}", "i", "*", "f", "v") for number in range(5)]
    house.clock.now += 99
    assert publish(session, "IDMP", "p0", "i", "*", "f", "v") == ids[0]
    house.clock.now += 1
    assert publish(session, "IDMP", "p0", "i", "*", "f", "v") != ids[0]
    publish(session, "IDMP", "new", "i", "*", "f", "v")
    known = about(session)
    assert (known["pids-tracked"], known["iids-tracked"], known["iids-added"]) == (2, 2, 7)


def test_other_limits_forget_all_and_the_same_ones_nothing(session: RecordedSession) -> None:
    first = publish(session, "IDMP", "p", "i", "*", "f", "v")
    for _ in range(3):
        assert session.do("XCFGSET", "s", "IDMP-DURATION", "100", "IDMP-MAXSIZE", "100") == b"+OK\r\n"
    assert publish(session, "IDMP", "p", "i", "*", "f", "v") == first
    assert session.do("XCFGSET", "s", "IDMP-MAXSIZE", "200") == b"+OK\r\n"
    assert (about(session)["iids-tracked"], about(session)["pids-tracked"], about(session)["iids-added"]) == (0, 0, 1)
    again = publish(session, "IDMP", "p", "i", "*", "f", "v")
    assert again != first
    assert publish(session, "IDMP", "p", "i", "*", "f", "v") == again


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        ("", "At least one parameter must be specified"),
        ("IDMP-DURATION", "syntax error"),
        ("INVALID 1", "syntax error"),
        ("IDMP-DURATION A", "value is not an integer or out of range"),
        ("IDMP-MAXSIZE 000", "value is not an integer or out of range"),
        ("IDMP-DURATION 0", "IDMP-DURATION must be between 1 and 86400 seconds"),
        ("IDMP-DURATION 86401", "IDMP-DURATION must be between 1 and 86400 seconds"),
        ("IDMP-MAXSIZE -1", "IDMP-MAXSIZE must be between 1 and 10000 entries"),
        ("IDMP-MAXSIZE 10001", "IDMP-MAXSIZE must be between 1 and 10000 entries"),
    ],
)
def test_limits_that_cannot_be_are_refused(session: RecordedSession, words: str, refusal: str) -> None:
    publish(session, "IDMP", "p", "i", "*", "f", "v")
    assert session.do("XCFGSET", "s", *words.split()) == b"-ERR %b\r\n" % refusal.encode()
    assert about(session)["iids-tracked"] == 1


def test_there_must_be_a_topic_to_limit(session: RecordedSession) -> None:
    assert session.do("XCFGSET", "s", "IDMP-DURATION", "5") == b"-ERR no such key\r\n"
    session.do("SET", "s", "v")
    assert session.do("XCFGSET", "s", "IDMP-DURATION", "5").startswith(b"-WRONGTYPE")


def test_it_goes_with_its_topic_wherever_that_goes(session: RecordedSession) -> None:
    first = publish(session, "IDMP", "p", "i", "*", "f", "v")
    session.do("RENAME", "s", "renamed")
    session.do("COPY", "renamed", "s")
    assert publish(session, "IDMP", "p", "i", "*", "f", "v") == first
    assert publish(session, "IDMP", "p", "i", "*", "f", "v", key="renamed") == first
    session.do("DEL", "s")
    publish(session, "IDMP", "p", "i", "*", "f", "v")
    assert (about(session)["iids-added"], length(session)) == (1, b":1\r\n")


def test_in_a_transaction_too(session: RecordedSession) -> None:
    session.do("MULTI")
    for name in ("a", "b", "a"):
        session.do("XADD", "s", "IDMP", "p", name, "*", "f", "v")
    words = session.do("EXEC").split(b"\r\n")
    assert words[2] == words[6] != words[4]
    assert length(session) == b":2\r\n"


def test_who_does_not_ask_for_it_sees_nothing_of_it(session: RecordedSession) -> None:
    publish(session, "*", "f", "v")
    assert about(session) == {}
