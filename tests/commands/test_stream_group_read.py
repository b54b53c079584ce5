"""XREADGROUP and XACK: entries are delivered once each, again to who had them, and are done once."""

from __future__ import annotations

import pytest

from rlite_pubsub.commands.groups.ack import packed
from rlite_pubsub.protocol.errors import CommandError
from rlite_pubsub.storage.topics import entry_ids

from .group_requests import BAD_ID, BAD_NUMBER, SYNTAX, WRONG_TYPE, GroupClient
from .recorded_session import House

UNBALANCED = "ERR Unbalanced XREAD list of streams: for each stream key an ID or '$' must be specified."
NO_DOLLAR = (
    "ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history of this consumer by "
    "specifying a proper ID, or use the > ID to get new messages. The $ ID would just return an empty result set."
)
BAD_IDLE = "ERR min-idle-time is not an integer or out of range"


@pytest.fixture
def client(house: House) -> GroupClient:
    client = GroupClient(house)
    client.add("1-1", "2-1", "3-1", "4-1", "5-1")
    client.do("XGROUP CREATE t g 0")
    return client


def no_group(key: str, group: str) -> str:
    return f"NOGROUP No such key '{key}' or consumer group '{group}' in XREADGROUP with GROUP option"


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        ("GROUP g c STREAMS t none > >", no_group("none", "g")),
        ("GROUP no c STREAMS t >", no_group("t", "no")),
        ("GROUP no c STREAMS t x", no_group("t", "no")),
        ("GROUP g c STREAMS text >", WRONG_TYPE),
        ("GROUP g c STREAMS t $", NO_DOLLAR),
        ("GROUP g c STREAMS t x", BAD_ID),
        ("GROUP g c STREAMS t t >", UNBALANCED),
        ("GROUP g c COUNT x STREAMS t >", BAD_NUMBER),
        ("GROUP g c BLOCK -1 STREAMS t >", "ERR timeout is negative"),
        ("GROUP g c BLOCK x STREAMS t >", "ERR timeout is not an integer or out of range"),
        ("GROUP g c NONSENSE STREAMS t >", SYNTAX),
        ("COUNT 1 COUNT 1 STREAMS t >", "ERR Missing GROUP option for XREADGROUP"),
        ("GROUP g c COUNT 1 COUNT 1", SYNTAX),
        ("GROUP g c CLAIM -1 STREAMS t >", "ERR min-idle-time must be a positive integer"),
        ("GROUP g c CLAIM -0 STREAMS t >", BAD_IDLE),
        ("GROUP g c CLAIM x STREAMS t >", BAD_IDLE),
    ],
)
def test_what_is_wrong_is_refused_in_redis_order_and_words(client: GroupClient, words: str, refusal: str) -> None:
    client.do("SET text x")
    assert client.do("XREADGROUP " + words) == refusal
    assert client.pending() == []


def test_each_entry_is_delivered_to_one_consumer(client: GroupClient) -> None:
    assert client.ids(client.do("XREADGROUP GROUP g a COUNT 2 STREAMS t >")) == [b"1-1", b"2-1"]
    assert client.ids(client.do("XREADGROUP GROUP g b STREAMS t >")) == [b"3-1", b"4-1", b"5-1"]
    assert client.do("XREADGROUP GROUP g a STREAMS t >") is None
    assert client.pending() == [
        (b"1-1", b"a", 0, 1),
        (b"2-1", b"a", 0, 1),
        (b"3-1", b"b", 0, 1),
        (b"4-1", b"b", 0, 1),
        (b"5-1", b"b", 0, 1),
    ]


def test_other_groups_get_every_entry_too(client: GroupClient) -> None:
    client.do("XGROUP CREATE t h 0")
    for group in "gh":
        assert len(client.ids(client.do(f"XREADGROUP GROUP {group} c STREAMS t >"))) == 5


def test_entries_come_as_xrange_sends_them(client: GroupClient) -> None:
    assert client.do("XREADGROUP GROUP g c STREAMS t >") == [[b"t", client.do("XRANGE t - +")]]


def test_resp3_answers_with_a_map_of_keys(house: House) -> None:
    client = GroupClient(house, protocol=3)
    for key in "tu":
        client.add("1-1", key=key)
        client.do(f"XGROUP CREATE {key} g 0")
    entries = [[b"1-1", [b"f", b"v1-1"]]]
    assert client.do("XREADGROUP GROUP g c STREAMS t u > >") == {b"t": entries, b"u": entries}
    assert client.do("XREADGROUP GROUP g c STREAMS t u > 0") == {b"u": entries}


def test_a_consumer_reads_its_own_history_again(client: GroupClient) -> None:
    client.do("XREADGROUP GROUP g a COUNT 3 STREAMS t >")
    client.do("XREADGROUP GROUP g b STREAMS t >")
    client.house.clock.now += 1
    assert client.ids(client.do("XREADGROUP GROUP g a COUNT 2 STREAMS t 1-1")) == [b"2-1", b"3-1"]
    assert client.do("XREADGROUP GROUP g a STREAMS t 3-1") == [[b"t", []]]
    assert client.pending()[:3] == [(b"1-1", b"a", 1000, 1), (b"2-1", b"a", 0, 2), (b"3-1", b"a", 0, 2)]


def test_history_has_nothing_of_entries_that_are_gone_but_their_ids(client: GroupClient) -> None:
    client.do("XREADGROUP GROUP g a COUNT 2 STREAMS t >")
    client.do("XDEL t 1-1")
    assert client.do("XREADGROUP GROUP g a STREAMS t 0") == [[b"t", [[b"1-1", None], [b"2-1", [b"f", b"v2-1"]]]]]
    assert client.session.do(*"XREADGROUP GROUP g a COUNT 1 STREAMS t 0".split()).endswith(b"$3\r\n1-1\r\n*-1\r\n")
    client.do("HELLO 3")
    assert client.session.do(*"XREADGROUP GROUP g a COUNT 1 STREAMS t 0".split()).endswith(b"$3\r\n1-1\r\n_\r\n")


def test_noack_leaves_nothing_pending_and_makes_the_consumer(client: GroupClient) -> None:
    client.do("XREADGROUP GROUP g c NOACK STREAMS t >")
    assert client.pending() == []
    assert client.do("XINFO CONSUMERS t g") == [[b"name", b"c", b"pending", 0, b"idle", 0]]
    assert client.do("XINFO GROUPS t")[0][9] == 5


def test_a_read_that_finds_nothing_new_does_not_make_a_consumer(client: GroupClient) -> None:
    client.do("XGROUP SETID t g $")
    assert client.do("XREADGROUP GROUP g c STREAMS t >") is None
    assert client.do("XINFO CONSUMERS t g") == []
    assert client.do("XREADGROUP GROUP g c STREAMS t 0") == [[b"t", []]]
    assert len(client.do("XINFO CONSUMERS t g")) == 1


def test_acknowledgements_of_any_order_count_each_id_once(client: GroupClient) -> None:
    client.do("XREADGROUP GROUP g a STREAMS t >")
    assert client.do("XACK t g 4-1 2-1 4-1 9-9 0-0") == 2
    assert client.do("XACK t g 1-1 2-1 3-1 4-1 5-1") == 3
    assert client.do("XACK t g 1-1") == 0
    assert client.do("XPENDING t g") == [0, None, None, None]


def test_nothing_is_acknowledged_where_one_id_is_none(client: GroupClient) -> None:
    client.do("XREADGROUP GROUP g a STREAMS t >")
    assert client.do("XACK t g 1-1 x") == BAD_ID
    assert client.do("XACK none g x") == 0
    assert client.do("XACK t no x") == 0
    client.do("SET text x")
    assert client.do("XACK text g x") == WRONG_TYPE
    assert len(client.pending()) == 5


@pytest.mark.parametrize(
    "ids",
    [
        [b"1-1", b"2-2"],
        [b"1", b"2-2"],
        [b"1-1-1", b"2"],
        [b"18446744073709551615-18446744073709551615"],
        [b"18446744073709551616-1"],
        [b"007-1", b"0-08"],
        [b"-1", b"1-"],
        [b"1-1,2-2"],
        [b"0" * 126 + b"-1"],
        [b"0" * 125 + b"-1"],
        [b"1-" + b"9" * 60],
        [b" 1-1", b"1-+1", b"1--1"],
        [b"1_0-1"],
        [b""],
        [b"1-1", b""],
        [b"1-1\0x"],
    ],
)
def test_ids_read_all_at_once_are_what_they_are_one_by_one(ids: list[bytes]) -> None:
    from rlite_pubsub.engine.arguments.stream_ids import strict_id

    try:
        expected: object = b"".join([entry_ids.pack(strict_id(text)) for text in ids])
    except CommandError as refusal:
        expected = refusal.text
    try:
        found: object = packed(ids)
    except CommandError as refusal:
        found = refusal.text
    assert found == expected


def test_a_megabyte_of_ids_is_acknowledged(client: GroupClient) -> None:
    client.do("XREADGROUP GROUP g a STREAMS t >")
    ids = [b"%d-1" % number for number in range(100_000)]
    assert client.do("XACK", "t", "g", *ids) == 5


def test_who_waits_gets_what_comes_and_what_it_had_stays_delivered(client: GroupClient) -> None:
    client.do("XGROUP SETID t g $")
    waiters = [GroupClient(client.house) for _ in range(3)]
    for number, waiter in enumerate(waiters):
        assert waiter.do(f"XREADGROUP GROUP g c{number} BLOCK 0 COUNT 1 STREAMS t >") is None
    client.do("MULTI")
    client.do("XADD t 6-1 f v")
    client.do("XADD t 7-1 f v")
    client.do("EXEC")
    assert [waiter.ids(waiter.heard()) for waiter in waiters[:2]] == [[b"6-1"], [b"7-1"]]
    assert waiters[2].heard() is None
    client.do("XADD t 8-1 f v")
    assert waiters[2].heard() == [[b"t", [[b"8-1", [b"f", b"v"]]]]]
    assert [row[1] for row in client.pending()] == [b"c0", b"c1", b"c2"]


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        ("DEL t", "UNBLOCKED the stream key no longer exists"),
        ("SET t x", "UNBLOCKED the stream key no longer exists"),
        ("XGROUP DESTROY t g", "NOGROUP the consumer group this client was blocked on no longer exists"),
    ],
)
def test_who_waits_is_told_that_there_is_nothing_to_wait_for(client: GroupClient, words: str, refusal: str) -> None:
    client.do("XGROUP SETID t g $")
    waiters = [GroupClient(client.house) for _ in range(2)]
    for waiter in waiters:
        waiter.do("XREADGROUP GROUP g c BLOCK 0 STREAMS t >")
    client.do(words)
    assert [waiter.heard() for waiter in waiters] == [refusal, refusal]


def test_a_topic_that_ran_dry_is_waited_for(client: GroupClient) -> None:
    client.do("XTRIM t MAXLEN 0")
    waiter = GroupClient(client.house)
    assert waiter.do("XREADGROUP GROUP g c BLOCK 0 STREAMS t >") is None
    client.house.engine.keyspace.ready[0, b"t"] = None  # type: ignore[union-attr]
    assert waiter.heard() is None
    client.add("6-1")
    assert waiter.ids(waiter.heard()) == [b"6-1"]


def test_a_last_id_that_was_set_is_nothing_to_answer_with(client: GroupClient) -> None:
    client.do("XGROUP SETID t g $")
    waiter = GroupClient(client.house)
    waiter.do("XREADGROUP GROUP g c BLOCK 0 STREAMS t >")
    client.do("XSETID t 9-9")
    client.house.engine.keyspace.ready[0, b"t"] = None  # type: ignore[union-attr]
    assert waiter.heard() is None


def test_a_topic_that_takes_the_place_of_another_is_new_to_who_waits(client: GroupClient) -> None:
    client.do("XGROUP SETID t g $")
    client.add("2-1", key="u")
    client.do("XGROUP CREATE u g 0")
    client.do("XDEL u 2-1")
    waiter = GroupClient(client.house)
    waiter.do("XREADGROUP GROUP g c BLOCK 0 STREAMS t >")
    client.do("RENAME u t")
    assert waiter.heard() == [[b"t", []]]


def test_what_has_come_and_gone_in_one_transaction_is_answered_with_nothing(client: GroupClient) -> None:
    client.do("XGROUP SETID t g $")
    waiter = GroupClient(client.house)
    waiter.do("XREADGROUP GROUP g c BLOCK 0 STREAMS t >")
    for words in ("MULTI", "XADD t 6-1 f v", "XDEL t 6-1", "EXEC"):
        client.do(words)
    assert waiter.heard() == [[b"t", []]]


def test_claim_takes_what_is_idle_first_and_the_longest_idle_first_of_all(client: GroupClient) -> None:
    client.do("XREADGROUP GROUP g a COUNT 1 STREAMS t >")
    client.house.clock.now += 1
    client.do("XREADGROUP GROUP g a COUNT 2 STREAMS t >")
    client.do("XCLAIM t g a 0 3-1 IDLE 5000 JUSTID")
    client.house.clock.now += 0.1
    reply = client.do("XREADGROUP GROUP g b CLAIM 1000 COUNT 3 STREAMS t >")
    assert reply == [
        [
            b"t",
            [
                [b"3-1", [b"f", b"v3-1"], 5100, 1],
                [b"1-1", [b"f", b"v1-1"], 1100, 1],
                [b"4-1", [b"f", b"v4-1"], 0, 0],
            ],
        ]
    ]
    assert client.pending() == [
        (b"1-1", b"b", 0, 2),
        (b"2-1", b"a", 100, 1),
        (b"3-1", b"b", 0, 2),
        (b"4-1", b"b", 0, 1),
    ]
    assert client.ids(client.do("XREADGROUP GROUP g b CLAIM 100 COUNT 1 STREAMS t >")) == [b"2-1"]


def test_claim_leaves_what_it_claimed_pending_even_with_noack(client: GroupClient) -> None:
    client.do("XREADGROUP GROUP g a COUNT 1 STREAMS t >")
    assert len(client.ids(client.do("XREADGROUP GROUP g b NOACK CLAIM 0 STREAMS t >"))) == 5
    assert client.pending() == [(b"1-1", b"b", 0, 2)]


def test_claim_means_nothing_for_history(client: GroupClient) -> None:
    client.do("XREADGROUP GROUP g a COUNT 1 STREAMS t >")
    assert client.do("XREADGROUP GROUP g a CLAIM 0 STREAMS t 0") == [[b"t", [[b"1-1", [b"f", b"v1-1"]]]]]


def test_claim_passes_over_what_is_gone(client: GroupClient) -> None:
    client.do("XREADGROUP GROUP g a STREAMS t >")
    client.do("XTRIM t MAXLEN 0")
    assert client.do("XREADGROUP GROUP g b CLAIM 0 STREAMS t >") is None


def test_who_waits_with_claim_gets_what_becomes_idle_meanwhile(client: GroupClient) -> None:
    client.do("XREADGROUP GROUP g a STREAMS t >")
    client.do("XACK t g 1-1 2-1 3-1 4-1")
    waiter = GroupClient(client.house)
    assert waiter.do("XREADGROUP GROUP g b BLOCK 0 CLAIM 1000 STREAMS t >") is None
    client.house.timers.advance(0.5)
    assert waiter.heard() is None
    client.house.timers.advance(0.5)
    assert waiter.heard() == [[b"t", [[b"5-1", [b"f", b"v5-1"], 1000, 1]]]]


def test_who_waits_with_claim_gets_what_others_were_given_meanwhile(client: GroupClient) -> None:
    client.do("XGROUP SETID t g $")
    waiters = [GroupClient(client.house) for _ in range(2)]
    for number, waiter in enumerate(waiters):
        waiter.do(f"XREADGROUP GROUP g c{number} BLOCK 0 CLAIM 1000 STREAMS t >")
    client.house.timers.advance(0.4)
    client.add("6-1")
    assert waiters[0].heard() == [[b"t", [[b"6-1", [b"f", b"v6-1"], 0, 0]]]]
    client.house.timers.advance(0.7)
    assert waiters[1].heard() is None
    client.house.timers.advance(0.4)
    assert waiters[1].ids(waiters[1].heard()) == [b"6-1"]


def test_who_waits_with_claim_waits_no_longer_than_what_is_pending_needs(client: GroupClient) -> None:
    client.do("XREADGROUP GROUP g a STREAMS t >")
    client.house.clock.now += 0.6
    waiter = GroupClient(client.house)
    assert waiter.do("XREADGROUP GROUP g b BLOCK 0 CLAIM 1000 STREAMS t >") is None
    client.house.timers.advance(0.4)
    assert len(waiter.ids(waiter.heard())) == 5


def test_who_waits_and_names_no_count_gets_a_thousand(client: GroupClient) -> None:
    client.do("XGROUP SETID t g $")
    waiter = GroupClient(client.house)
    waiter.do("XREADGROUP GROUP g c BLOCK 0 STREAMS t >")
    client.do("MULTI")
    for number in range(6, 1100):
        client.do(f"XADD t {number}-1 f v")
    client.do("EXEC")
    assert len(waiter.ids(waiter.heard())) == 1000


def test_many_reads_that_were_served_at_once_leave_no_looks_behind(client: GroupClient) -> None:
    client.do("XGROUP SETID t g $")
    waiter, patient = GroupClient(client.house), GroupClient(client.house)
    for number in range(6, 1000):
        waiter.do("XREADGROUP GROUP g c BLOCK 0 CLAIM 3600000 STREAMS t >")
        client.add(f"{number}-1")
        assert waiter.ids(waiter.heard()) == [b"%d-1" % number]
    client.do("XREADGROUP GROUP g a STREAMS t >")
    patient.do("XREADGROUP GROUP g b BLOCK 0 COUNT 1 CLAIM 3600000 STREAMS t >")
    assert len(client.house.engine.idle_claims._looks) < 100
    assert len(client.house.timers._waiting) < 10
    client.house.timers.advance(3600)
    assert patient.ids(patient.heard()) == [b"6-1"]
