"""XADD, XRANGE, XREAD, XDEL, XTRIM, XSETID and XINFO STREAM, as a client sees them."""

from __future__ import annotations

from typing import Any

import hiredis
import pytest

from rlite_pubsub.commands.streams.read import _BLOCKED_COUNT
from rlite_pubsub.storage.topics.entry_ids import PART_MAX

from .recorded_session import House, RecordedSession

pytestmark = pytest.mark.settings(notify_keyspace_events="KEA")

ONLY_OF_GROUPS = "ERR The %s option is only supported by XREADGROUP. You called XREAD instead."
UNBALANCED = "ERR Unbalanced XREAD list of streams: for each stream key an ID or '$' must be specified."
NEW_ONES_OF_GROUPS = (
    "ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option."
)
NOT_ABOVE = "ERR The ID specified in XADD is equal or smaller than the target stream top item"
BAD_ID = "ERR Invalid stream ID specified as stream command argument"
SYNTAX = "ERR syntax error"
WRONG_TYPE = "WRONGTYPE Operation against a key holding the wrong kind of value"


@pytest.fixture
def client(house: House) -> RecordedSession:
    return house.session()


def parsed(said: bytes) -> Any:
    replies = hiredis.Reader()
    replies.feed(said)
    reply = replies.gets()
    assert replies.gets() is False
    return reply


def do(client: RecordedSession, request: str, *more: bytes) -> Any:
    reply = parsed(client.do(*request.split(), *more))
    return str(reply) if isinstance(reply, Exception) else reply


def add(client: RecordedSession, *numbers: int, key: str = "s") -> None:
    for number in numbers:
        do(client, f"XADD {key} {number}-0 n {number}")


def numbers(entries: list[Any]) -> list[int]:
    return [int(entry[1][1]) for entry in entries]


# -- XADD


def test_an_id_of_ours_is_the_clock_and_grows_even_if_the_clock_does_not(house: House, client: RecordedSession) -> None:
    assert [do(client, "XADD s * a b") for _ in range(3)] == [b"1700000000000-%d" % seq for seq in range(3)]
    house.clock.now -= 100
    assert do(client, "XADD s * a b") == b"1700000000000-3"


def test_half_an_id_goes_on_from_the_last_or_begins_at_zero(client: RecordedSession) -> None:
    assert [do(client, f"XADD s {text} a b") for text in ("0-*", "0-*", "5-*", "5-*", "6")] == [
        b"0-1", b"0-2", b"5-0", b"5-1", b"6-0",
    ]  # fmt: skip
    assert do(client, "XADD s 5-* a b") == NOT_ABOVE


def test_ids_come_to_an_end(client: RecordedSession) -> None:
    do(client, f"XADD s 5-{PART_MAX} a b")
    assert do(client, "XADD s 5-* a b") == "ERR Elements are too large to be stored"
    do(client, f"XADD s {PART_MAX}-{PART_MAX} a b")
    for text in ("*", f"{PART_MAX}-*", "1-1"):
        assert do(client, f"XADD s {text} a b") == (
            "ERR The stream has exhausted the last possible ID, unable to add more items"
        )


def test_a_clock_behind_the_last_possible_millisecond_takes_the_next_sequence(client: RecordedSession) -> None:
    do(client, f"XADD s {PART_MAX - 1}-{PART_MAX} a b")
    assert do(client, "XADD s * a b") == b"%d-0" % PART_MAX


def test_a_refused_entry_makes_no_topic(client: RecordedSession) -> None:
    for request in ("XADD s 0-0 a b", "XADD s 1-1 a", "XADD s x a b", "XADD s MAXLEN -1 * a b", "XADD s LIMIT 1 * a b"):
        assert do(client, request).startswith("ERR ")
    assert do(client, "XADD s NOMKSTREAM * a b") is None
    assert do(client, "EXISTS s") == 0


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        ("MAXLEN 1 MINID 1", "ERR syntax error, MAXLEN and MINID options at the same time are not compatible"),
        ("MAXLEN x", "ERR value is not an integer or out of range"),
        ("MAXLEN ~ -1", "ERR The MAXLEN argument must be >= 0."),
        ("MINID ~ -", BAD_ID),
        ("MAXLEN ~ 1 LIMIT -1", "ERR The LIMIT argument must be >= 0."),
        ("MAXLEN = 1 LIMIT 0", "ERR syntax error, LIMIT cannot be used without the special ~ option"),
        ("LIMIT 1", "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy"),
        ("FOO", BAD_ID),
    ],
)
def test_options_are_refused_in_redis_words(client: RecordedSession, options: str, refusal: str) -> None:
    assert do(client, f"XADD s {options} * a b") == refusal


def test_words_of_any_bytes_and_ten_thousand_fields_come_back_as_they_were(client: RecordedSession) -> None:
    odd = [b"", b"\r\n", b"\x00\xff", b"$3\r\nfoo\r\n"]
    do(client, "XADD s 1", *odd)
    many = [b"%d" % number for number in range(20_000)]
    do(client, "XADD s 2", *many)
    assert do(client, "XRANGE s - +") == [[b"1-0", odd], [b"2-0", many]]


def test_what_happens_is_told_in_redis_order(client: RecordedSession, house: House) -> None:
    listener = house.session()
    listener.do("SUBSCRIBE", "__keyspace@0__:s")
    add(client, 1, 2)
    do(client, "XADD s MAXLEN 1 3 a b")
    do(client, "XDEL s 9")
    do(client, "XDEL s 3")
    do(client, "XTRIM s MAXLEN 5")
    do(client, "XSETID s 9")
    told = listener.heard().split(b"\r\n")
    assert [word for word in told if word in (b"xadd", b"xdel", b"xtrim", b"xsetid")] == [
        b"xadd", b"xadd", b"xadd", b"xtrim", b"xdel", b"xsetid",
    ]  # fmt: skip


# -- ranges


def test_ranges_have_bounds_within_and_without(client: RecordedSession) -> None:
    add(client, *range(1, 101))
    assert numbers(do(client, "XRANGE s 3 5")) == [3, 4, 5]
    assert numbers(do(client, "XRANGE s (3-0 (5-0")) == [4]
    assert numbers(do(client, "XRANGE s - + COUNT 2")) == [1, 2]
    assert numbers(do(client, "XREVRANGE s + - COUNT 2")) == [100, 99]
    assert numbers(do(client, "XREVRANGE s 5 (3-0")) == [5, 4]
    assert numbers(do(client, "XREVRANGE s + -")) == list(range(100, 0, -1))
    assert do(client, "XRANGE s 5 3") == []


def test_a_count_of_zero_is_a_null_and_of_a_missing_key_an_empty_array(client: RecordedSession) -> None:
    add(client, 1)
    assert client.do("XRANGE", "s", "-", "+", "COUNT", "0") == b"*-1\r\n"
    assert client.do("XRANGE", "s", "-", "+", "COUNT", "-5") == b"*-1\r\n"
    assert client.do("XRANGE", "none", "-", "+", "COUNT", "0") == b"*0\r\n"
    client.do("HELLO", "3")
    assert client.do("XREVRANGE", "s", "+", "-", "COUNT", "0") == b"_\r\n"


def test_ids_and_options_are_looked_at_before_the_key(client: RecordedSession) -> None:
    do(client, "SET str x")
    assert do(client, "XRANGE str x +") == BAD_ID
    assert do(client, "XRANGE str - + COUNT") == SYNTAX
    assert do(client, "XRANGE str - +") == WRONG_TYPE
    assert do(client, "XDEL str x") == WRONG_TYPE
    assert do(client, "XDEL none x") == 0
    assert do(client, "XTRIM str FOO 1") == SYNTAX
    assert do(client, "XSETID none x") == BAD_ID


# -- XREAD


def test_a_read_shows_only_the_keys_that_have_something(client: RecordedSession) -> None:
    add(client, 1, 2, 3)
    add(client, 7, key="t")
    assert do(client, "XREAD COUNT 1 STREAMS s none t 1 0 7") == [[b"s", [[b"2-0", [b"n", b"2"]]]]]
    assert client.do("XREAD", "STREAMS", "s", "t", "$", "$") == b"*-1\r\n"
    client.do("HELLO", "3")
    assert client.do("XREAD", "STREAMS", "s", "2").startswith(b"%1\r\n$1\r\ns\r\n*1\r\n")


def test_a_last_id_that_is_gone_has_nothing_behind_it(client: RecordedSession) -> None:
    add(client, 1, 2)
    do(client, "XDEL s 2-0")
    assert do(client, "XREAD STREAMS s 1") is None
    do(client, "XSETID s 9")
    assert do(client, "XREAD STREAMS s 1") is None
    assert do(client, f"XREAD STREAMS s {PART_MAX}-{PART_MAX}") is None


def test_a_plus_reads_the_last_entry_there_is(client: RecordedSession) -> None:
    assert do(client, "XREAD STREAMS s +") is None
    add(client, 1, 2, 3)
    do(client, "XDEL s 3-0")
    assert do(client, "XREAD STREAMS s +") == [[b"s", [[b"2-0", [b"n", b"2"]]]]]


@pytest.mark.parametrize(
    ("request_", "refusal"),
    [
        ("XREAD STREAMS s t 0", UNBALANCED),
        ("XREAD COUNT x STREAMS s 0", "ERR value is not an integer or out of range"),
        ("XREAD BLOCK x STREAMS s 0", "ERR timeout is not an integer or out of range"),
        ("XREAD BLOCK -1 STREAMS s 0", "ERR timeout is negative"),
        ("XREAD NOACK STREAMS s 0", ONLY_OF_GROUPS % "NOACK"),
        ("XREAD GROUP g c STREAMS s 0", ONLY_OF_GROUPS % "GROUP"),
        ("XREAD COUNT 1 BLOCK 1", SYNTAX),
        ("XREAD STREAMS str >", WRONG_TYPE),
        ("XREAD STREAMS s >", NEW_ONES_OF_GROUPS),
        ("XREAD STREAMS s -", BAD_ID),
    ],
)
def test_reads_are_refused_in_redis_words(client: RecordedSession, request_: str, refusal: str) -> None:
    do(client, "SET str x")
    assert do(client, request_) == refusal


def test_whoever_waited_is_given_what_comes_and_no_more_than_a_thousand(house: House, client: RecordedSession) -> None:
    readers = [house.session() for _ in range(3)]
    for reader in readers:
        assert reader.do("XREAD", "BLOCK", "0", "STREAMS", "t", "s", "0", "0") == b""
    client.do("MULTI")
    for number in range(1, _BLOCKED_COUNT + 5):
        client.do("XADD", "s", f"{number}-0", "n", str(number))
    client.do("EXEC")
    for reader in readers:
        [[key, entries]] = parsed(reader.heard())
        assert key == b"s"
        assert numbers(entries) == list(range(1, _BLOCKED_COUNT + 1))


# -- removing


def test_a_mass_of_ids_is_deleted_at_once_and_the_rest_stays(client: RecordedSession) -> None:
    add(client, *range(1, 2001))
    wanted = [b"%d-0" % number for number in range(2000, 0, -1) if number % 3] + [b"5-5", b"1-0", b"99999-0"]
    assert do(client, "XDEL s", *wanted) == sum(1 for number in range(1, 2001) if number % 3)
    assert numbers(do(client, "XRANGE s - +")) == [number for number in range(1, 2001) if not number % 3]
    assert do(client, "XLEN s") == 666


def test_a_bad_id_among_good_ones_deletes_nothing(client: RecordedSession) -> None:
    add(client, 1, 2)
    assert do(client, "XDEL s 1-0 x") == BAD_ID
    assert do(client, "XLEN s") == 2


def test_an_approximate_trim_removes_whole_nodes_within_its_limit(client: RecordedSession) -> None:
    do(client, "CONFIG SET stream-node-max-entries 10")
    add(client, *range(1, 101))
    assert do(client, "XTRIM s MAXLEN ~ 55") == 40
    assert do(client, "XTRIM s MAXLEN ~ 30 LIMIT 25") == 20
    assert do(client, "XTRIM s MAXLEN ~ 35") == 0
    assert do(client, "XTRIM s MINID ~ 81-0") == 20
    assert do(client, "XTRIM s MINID 86-0") == 5
    assert do(client, "XTRIM s MAXLEN ~ 10 LIMIT 4") == 0
    assert do(client, "XTRIM s MAXLEN ~ 10 LIMIT 5") == 5
    assert do(client, "XADD s MAXLEN ~ 1 101-0 a b") == b"101-0"
    assert do(client, "XLEN s") == 1


def test_a_setting_counts_for_what_is_added_after_it(client: RecordedSession) -> None:
    do(client, "CONFIG SET stream-node-max-entries 10")
    add(client, *range(1, 16))
    do(client, "CONFIG SET stream-node-max-entries 2")
    add(client, *range(16, 21))
    assert do(client, "XTRIM s MAXLEN ~ 3") == 10 + 5 + 2
    assert do(client, "XTRIM s MAXLEN ~ 1") == 2


# -- XSETID and XINFO


def test_the_last_id_is_set_no_lower_than_the_top_entry(client: RecordedSession) -> None:
    add(client, 1, 5)
    assert do(client, "XSETID s 4-0") == "ERR The ID specified in XSETID is smaller than the target stream top item"
    assert do(client, "XSETID s 9-0 ENTRIESADDED 1") == (
        "ERR The entries_added specified in XSETID is smaller than the target stream length"
    )
    assert do(client, "XSETID s 9-0 MAXDELETEDID 9-1") == (
        "ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id"
    )
    assert do(client, "XSETID s 9-0 ENTRIESADDED 7 MAXDELETEDID 3-0") == b"OK"
    assert do(client, "XADD s 9-0 a b") == NOT_ABOVE
    assert do(client, "XSETID none 9-0") == "ERR no such key"


def test_count_beyond_63_bits_is_printed_as_redis_prints_it(client: RecordedSession) -> None:
    add(client, 1)
    assert do(client, "XSETID s 1-0 ENTRIESADDED 9223372036854775807") == b"OK"
    do(client, "XGROUP CREATE s g 1-0")
    add(client, 2)
    assert b":-9223372036854775808\r\n" in client.do("XINFO", "STREAM", "s")
    assert b"2-0" in client.do("XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", ">")
    assert b"$3\r\nlag\r\n:0\r\n" in client.do("XINFO", "GROUPS", "s")
    reply = client.do("DUMP", "s")
    dump = reply[reply.index(b"\n") + 1 : -2]
    assert client.do("RESTORE", "s2", "0", dump) == b"+OK\r\n"


def test_after_the_top_was_deleted_and_the_last_id_set_back_entries_are_added_below(client: RecordedSession) -> None:
    add(client, 1, 5)
    do(client, "XDEL s 5-0")
    do(client, "XSETID s 2-0")
    add(client, 3)
    info = do(client, "XINFO STREAM s")
    assert (info[info.index(b"radix-tree-keys") + 1], info[1]) == (1, 2)
    assert do(client, "XTRIM s MAXLEN ~ 0") == 2


def test_all_that_is_known_of_a_topic_is_shown(client: RecordedSession) -> None:
    add(client, 1, 2, 3)
    do(client, "XDEL s 1-0")
    client.do("HELLO", "3")
    first, last = [b"2-0", [b"n", b"2"]], [b"3-0", [b"n", b"3"]]
    told = {
        b"length": 2,
        b"radix-tree-keys": 1,
        b"radix-tree-nodes": 2,
        b"last-generated-id": b"3-0",
        b"max-deleted-entry-id": b"1-0",
        b"entries-added": 3,
        b"recorded-first-entry-id": b"2-0",
    }
    assert do(client, "XINFO STREAM s") == told | {b"groups": 0, b"first-entry": first, b"last-entry": last}
    assert do(client, "XINFO STREAM s FULL") == told | {b"entries": [first, last], b"groups": []}
    assert do(client, "XINFO STREAM s FULL COUNT 1")[b"entries"] == [first]
    assert do(client, "XINFO STREAM s FULL COUNT 0")[b"entries"] == [first, last]


def test_xinfo_refuses_in_redis_order(client: RecordedSession) -> None:
    add(client, 1)
    unknown = "ERR unknown subcommand or wrong number of arguments for 'STREAM'. Try XINFO HELP."
    assert do(client, "XINFO STREAM none FOO") == "ERR no such key"
    for options in ("FOO", "FULL COUNT", "FULL FOO 1", "FOO COUNT 1"):
        assert do(client, f"XINFO STREAM s {options}") == unknown
    assert do(client, "XINFO STREAM s FULL COUNT x") == "ERR value is not an integer or out of range"
    assert do(client, "XINFO HELP")[-1] == b"    Prints this help."
