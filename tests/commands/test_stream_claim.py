"""XPENDING, XCLAIM and XAUTOCLAIM."""

from __future__ import annotations

import pytest

from .group_requests import BAD_ID, BAD_NUMBER, SYNTAX, WRONG_TYPE, GroupClient
from .recorded_session import House

NO_GROUP = "NOGROUP No such key '%s' or consumer group '%s'"


@pytest.fixture
def client(house: House) -> GroupClient:
    """1-1 to 3-1 are pending with a for 300 ms, and 4-1 with b for 100 ms; 5-1 is not delivered yet."""
    client = GroupClient(house)
    client.add("1-1", "2-1", "3-1", "4-1", "5-1")
    client.do("XGROUP CREATE t g 0")
    client.do("XREADGROUP GROUP g a COUNT 3 STREAMS t >")
    house.clock.now += 0.2
    client.do("XREADGROUP GROUP g b COUNT 1 STREAMS t >")
    house.clock.now += 0.1
    return client


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        ("XPENDING t g -", SYNTAX),
        ("XPENDING t g - + 1 c 1 2 3", SYNTAX),
        ("XPENDING none g - + x", BAD_NUMBER),
        ("XPENDING none g IDLE x + 1", BAD_NUMBER),
        ("XPENDING none g IDLE 1 + 1", SYNTAX),
        ("XPENDING none g x + 1", BAD_ID),
        ("XPENDING none g (18446744073709551615-18446744073709551615 + 1", "ERR invalid start ID for the interval"),
        ("XPENDING none g - (0-0 1", "ERR invalid end ID for the interval"),
        ("XPENDING none g", NO_GROUP % ("none", "g")),
        ("XPENDING t no - + 1", NO_GROUP % ("t", "no")),
        ("XPENDING text g", WRONG_TYPE),
        ("XCLAIM none g c x 1-1", NO_GROUP % ("none", "g")),
        ("XCLAIM text g c x 1-1", WRONG_TYPE),
        ("XCLAIM t g c x 1-1", "ERR Invalid min-idle-time argument for XCLAIM"),
        ("XCLAIM t g c 0 1-1 IDLE x", "ERR Invalid IDLE option argument for XCLAIM"),
        ("XCLAIM t g c 0 1-1 TIME x", "ERR Invalid TIME option argument for XCLAIM"),
        ("XCLAIM t g c 0 1-1 RETRYCOUNT x", "ERR Invalid RETRYCOUNT option argument for XCLAIM"),
        ("XCLAIM t g c 0 1-1 LASTID x", BAD_ID),
        ("XCLAIM t g c 0 1-1 IDLE", "ERR Unrecognized XCLAIM option 'IDLE'"),
        ("XCLAIM t g c 0 1-1 FORCE 2-1", "ERR Unrecognized XCLAIM option '2-1'"),
        ("XAUTOCLAIM none g c x 0", "ERR Invalid min-idle-time argument for XAUTOCLAIM"),
        ("XAUTOCLAIM none g c 0 x", BAD_ID),
        ("XAUTOCLAIM none g c 0 0 COUNT 0", "ERR COUNT must be > 0"),
        ("XAUTOCLAIM none g c 0 0 COUNT x", "ERR COUNT must be > 0"),
        ("XAUTOCLAIM none g c 0 0 NONSENSE", SYNTAX),
        ("XAUTOCLAIM none g c 0 0", NO_GROUP % ("none", "g")),
        ("XAUTOCLAIM text g c 0 0", WRONG_TYPE),
    ],
)
def test_what_is_wrong_is_refused_in_redis_order_and_words(client: GroupClient, words: str, refusal: str) -> None:
    client.do("SET text x")
    before = client.pending()
    assert client.do(words) == refusal
    assert client.pending() == before


def test_the_summary_names_the_ends_and_who_has_how_many(client: GroupClient) -> None:
    assert client.do("XPENDING t g") == [4, b"1-1", b"4-1", [[b"a", b"3"], [b"b", b"1"]]]
    client.do("XACK t g 1-1 4-1")
    assert client.do("XPENDING t g") == [2, b"2-1", b"3-1", [[b"a", b"2"]]]


def test_pending_entries_are_told_by_range_idleness_and_consumer(client: GroupClient) -> None:
    def told(words: str) -> list[bytes]:
        return [row[0] for row in client.do(f"XPENDING t g {words}")]

    assert client.do("XPENDING t g - + 2") == [[b"1-1", b"a", 300, 1], [b"2-1", b"a", 300, 1]]
    assert told("2 + 10") == [b"2-1", b"3-1", b"4-1"]
    assert told("(1-1 (4-1 10") == [b"2-1", b"3-1"]
    assert told("- + 10 b") == [b"4-1"]
    assert told("3-1 3-1 10 a") == [b"3-1"]
    assert told("- (3-1 10 a") == [b"1-1", b"2-1"]
    assert told("- + 10 nobody") == []
    assert told("IDLE 200 - + 10") == [b"1-1", b"2-1", b"3-1"]
    assert told("IDLE 200 - + 10 b") == []
    assert told("- + 0") == []
    assert told("- + -5") == []


def test_what_is_claimed_changes_hands_and_is_answered(client: GroupClient) -> None:
    reply = client.do("XCLAIM t g b 200 3-1 1-1 4-1 5-1 9-9")
    assert [entry[0] for entry in reply] == [b"3-1", b"1-1"]
    assert client.pending() == [
        (b"1-1", b"b", 0, 2),
        (b"2-1", b"a", 300, 1),
        (b"3-1", b"b", 0, 2),
        (b"4-1", b"b", 100, 1),
    ]


@pytest.mark.parametrize(
    ("options", "row"),
    [
        ("", (b"2-1", b"c", 0, 2)),
        ("JUSTID", (b"2-1", b"c", 0, 1)),
        ("IDLE 7000", (b"2-1", b"c", 7000, 2)),
        ("IDLE -5", (b"2-1", b"c", 0, 2)),
        ("TIME 1700000000000", (b"2-1", b"c", 300, 2)),
        ("TIME 1700000099999", (b"2-1", b"c", 0, 2)),
        ("RETRYCOUNT 9", (b"2-1", b"c", 0, 9)),
        ("RETRYCOUNT 0 JUSTID", (b"2-1", b"c", 0, 0)),
        ("RETRYCOUNT -1", (b"2-1", b"c", 0, 2)),
    ],
)
def test_options_set_times_and_counts(client: GroupClient, options: str, row: tuple[bytes, bytes, int, int]) -> None:
    client.do(f"XCLAIM t g c 0 2-1 {options}".strip())
    assert client.pending()[1] == row
    client.house.clock.now += 1
    assert client.pending()[1][2] == row[2] + 1000


def test_force_makes_pending_what_is_not_unless_it_is_gone(client: GroupClient) -> None:
    client.do("XDEL t 4-1")
    assert client.do("XCLAIM t g c 99999 4-1 5-1 6-1 FORCE JUSTID") == [b"5-1"]
    assert client.pending()[3:] == [(b"5-1", b"c", 0, 1)]
    client.do("XACK t g 5-1")
    client.do("XCLAIM t g c 0 5-1 FORCE")
    assert client.pending()[3:] == [(b"5-1", b"c", 0, 2)]


def test_a_claim_of_what_is_gone_ends_its_being_pending(client: GroupClient) -> None:
    client.do("XDEL t 2-1")
    assert client.do("XCLAIM t g nobody 0 2-1") == []
    assert [row[0] for row in client.pending()] == [b"1-1", b"3-1", b"4-1"]
    assert b"nobody" not in [consumer[1] for consumer in client.do("XINFO CONSUMERS t g")]


def test_lastid_moves_the_group_forwards_only(client: GroupClient) -> None:
    client.do("XCLAIM t g a 0 1-1 LASTID 2-0 JUSTID")
    assert client.do("XINFO GROUPS t")[0][7] == b"4-1"
    client.do("XCLAIM t g a 0 9-9 LASTID 5-0")
    assert client.do("XINFO GROUPS t")[0][7] == b"5-0"


def test_autoclaim_goes_through_what_is_pending_step_by_step(client: GroupClient) -> None:
    next_id, claimed, deleted = client.do("XAUTOCLAIM t g c 0 - COUNT 2")
    assert (next_id, [entry[0] for entry in claimed], deleted) == (b"3-1", [b"1-1", b"2-1"], [])
    next_id, claimed, deleted = client.do(f"XAUTOCLAIM t g c 0 {next_id.decode()} COUNT 2 JUSTID")
    assert (next_id, claimed, deleted) == (b"0-0", [b"3-1", b"4-1"], [])
    assert [row[1:] for row in client.pending()] == [(b"c", 0, 2), (b"c", 0, 2), (b"c", 0, 1), (b"c", 0, 1)]


def test_autoclaim_leaves_what_is_not_idle_for_long_enough(client: GroupClient) -> None:
    assert client.do("XAUTOCLAIM t g c 200 (1-1 JUSTID") == [b"0-0", [b"2-1", b"3-1"], []]
    assert client.pending()[3] == (b"4-1", b"b", 100, 1)
    assert client.do("XAUTOCLAIM t g nobody 9999 0") == [b"0-0", [], []]
    assert len(client.do("XINFO CONSUMERS t g")) == 3


def test_autoclaim_tells_what_is_gone_and_ends_its_being_pending(client: GroupClient) -> None:
    client.do("XDEL t 1-1 3-1")
    assert client.do("XAUTOCLAIM t g c 99999 0 COUNT 1") == [b"2-1", [], [b"1-1"]]
    assert client.do("XAUTOCLAIM t g c 0 0 JUSTID") == [b"0-0", [b"2-1", b"4-1"], [b"3-1"]]
    assert [row[0] for row in client.pending()] == [b"2-1", b"4-1"]


def test_autoclaim_looks_at_ten_for_each_that_it_may_take(client: GroupClient) -> None:
    for number in range(6, 40):
        client.add(f"{number}-1")
    client.do("XREADGROUP GROUP g a STREAMS t >")
    client.do("XCLAIM t g a 0 39-1 IDLE 100000 JUSTID")
    assert client.do("XAUTOCLAIM t g c 50000 0 COUNT 2 JUSTID") == [b"21-1", [], []]
    assert client.do("XAUTOCLAIM t g c 50000 21-1 COUNT 2 JUSTID") == [b"0-0", [b"39-1"], []]


def test_a_count_that_no_memory_holds_is_refused(client: GroupClient) -> None:
    refusal = "ERR Insufficient memory, failed allocating transient memory, COUNT too high."
    assert client.do(f"XAUTOCLAIM t g c 0 0 COUNT {2**63 // 16 - 1}") == refusal
    assert client.do(f"XAUTOCLAIM t g c 0 0 COUNT {2**63 // 16}") == "ERR COUNT must be > 0"
