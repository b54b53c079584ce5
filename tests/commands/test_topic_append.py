"""TOPIC.APPEND: entries as XRANGE sends them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import hiredis
import pytest
from parsed_session import ParsedSession

from rlite_pubsub.links.entry_bytes import pack_entries

NOT_ENTRIES = "ERR these are not entries as XRANGE sends them"
ROWS = [(b"1-1", [b"a", b"1"]), (b"1-2", [b"", b"\r\n$5\r\n", b"a", b""]), (b"9-0", [b"b", b"x" * 5000])]


def append(client: ParsedSession, *entries: tuple[bytes, Sequence[bytes]]) -> Any:
    return client.do("TOPIC.APPEND", "t", pack_entries([(id, list(words)) for id, words in entries]))


def entries(client: ParsedSession, topic: str = "t") -> list[tuple[bytes, list[bytes]]]:
    return [(id, words) for id, words in client.do("XRANGE", topic, "-", "+")]


def test_entries_are_appended_with_their_ids_as_xadd_would(client: ParsedSession) -> None:
    assert append(client, *ROWS[:2]) == 2
    assert append(client, ROWS[2]) == 1
    for id, words in ROWS:
        assert client.do("XADD", "x", id, *words) == id
    assert entries(client) == entries(client, "x") == ROWS
    assert client.do("DUMP", "t") == client.do("DUMP", "x")
    assert client.do("XINFO", "STREAM", "t")[b"entries-added"] == 3
    assert append(client) == 0


def test_a_star_is_a_new_id_behind_the_others(client: ParsedSession) -> None:
    high = b"%d-7" % (client.house.clock.now * 1000 + 5000)
    assert append(client, (b"*", [b"a", b"1"]), (high, [b"a", b"2"]), (b"*", [b"a", b"3"])) == 3
    first, second, third = [id for id, _ in entries(client)]
    assert first == b"%d-0" % (client.house.clock.now * 1000)
    assert (second, third) == (high, high[:-1] + b"8")


@pytest.mark.parametrize("id", [b"1-2", b"1-1", b"0-0", b"0-1"])
def test_where_one_is_not_above_the_one_before_nothing_is_appended(client: ParsedSession, id: bytes) -> None:
    append(client, (b"1-2", [b"a", b"0"]))
    reply = append(client, (b"2-0", [b"a", b"1"]), (id, [b"a", b"2"]))
    assert "equal or smaller" in str(reply)
    assert [id for id, _ in entries(client)] == [b"1-2"]
    assert "equal or smaller" in str(append(client, (id, [b"a", b"2"])))


def test_an_id_of_64_bits_is_read_and_a_larger_one_refused(client: ParsedSession) -> None:
    top = b"%d" % (2**64 - 1)
    assert append(client, (top + b"-" + top, [b"a", b"1"])) == 1
    assert "exhausted" in str(append(client, (b"*", [b"a", b"1"])))
    assert isinstance(append(client, (b"%d-0" % 2**64, [b"a", b"1"])), hiredis.ReplyError)
    assert isinstance(append(client, (b"x", [b"a", b"1"])), hiredis.ReplyError)
    assert client.do("XLEN", "t") == 1


def test_what_is_not_entries_is_refused(client: ParsedSession) -> None:
    whole = pack_entries(ROWS)
    for end in range(1, len(whole) - 5000):
        if whole[:end] not in (pack_entries(ROWS[:1]), pack_entries(ROWS[:2])):
            assert str(client.do("TOPIC.APPEND", "t", whole[:end])) == NOT_ENTRIES
    for wrong in (whole + b"x", b"*3" + whole[2:], pack_entries([(b"1-1", [b"a"])]), pack_entries([(b"1-1", [])])):
        assert str(client.do("TOPIC.APPEND", "t", wrong)) == NOT_ENTRIES
    assert client.do("EXISTS", "t") == 0


def test_another_key_and_an_entry_that_is_too_large_are_refused(client: ParsedSession) -> None:
    client.do("SET", "t", "text")
    assert str(append(client, ROWS[0])).startswith("WRONGTYPE")
    client.do("DEL", "t")
    client.do("TOPIC.CREATE", "t", "MAX-ENTRY-BYTES", "10")
    assert str(append(client, *ROWS)).startswith("TOOLARGE")
    assert client.do("XLEN", "t") == 0
    assert append(client, ROWS[0]) == 1


def test_it_takes_part_in_a_transaction(client: ParsedSession) -> None:
    client.do("MULTI")
    append(client, *ROWS)
    client.do("SET", "k", "v")
    assert client.do("EXEC") == [3, b"OK"]
    assert entries(client) == ROWS
