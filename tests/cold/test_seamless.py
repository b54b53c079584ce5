"""A client cannot tell a topic whose oldest entries are in blocks from one that was never sealed, and the event loop
never waits for a block."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from cold_server import Sealer, Twins, about, said, until_sealed
from patience import until
from peer import Peer, request

BLOCK_BYTES = 32 << 10
LAST = 1500
"""Of the topic `t`, most of which is in blocks."""

Seal = Callable[..., Sealer]


@pytest.fixture
def history(twins: Twins, seal: Seal) -> Twins:
    """Both have the topic `t`, and nothing of its blocks is in memory."""
    twins.cold.do("CONFIG", "SET", "cold-cache", 0)
    twins.add("t", range(1, LAST + 1), 50)
    sealer = seal(twins.cold_server.store_folder, BLOCK_BYTES)
    until_sealed(twins.cold, "t", BLOCK_BYTES)
    sealer.end()
    until(lambda: b"cold_cached_bytes" in twins.cold.do("INFO"), "the server's notice of the blocks")
    return twins


def number_of(words: bytes) -> int:
    return int(words.split(b"-")[0])


def seam(twins: Twins) -> int:
    """The last id that is read from a block."""
    return number_of(about(twins.cold, "t")[b"sealed-to"])


def assert_loop_never_waited(twins: Twins) -> None:
    assert twins.notes == ""


def test_ranges_are_the_same_on_both_sides_of_the_seam_and_across_it(history: Twins) -> None:
    at = seam(history)
    behind = f"({at}-{at % 3}"
    for start, end in [("-", "+"), (at - 5, at + 5), (behind, "+"), ("-", behind), (3, 3), (9, 2)]:
        for count in ([], ["COUNT", 0], ["COUNT", 1], ["COUNT", 7], ["COUNT", 100_000]):
            history.do("XRANGE", "t", start, end, *count)
            history.do("XREVRANGE", "t", end, start, *count)
    history.do("XRANGE", "t", "(18446744073709551615-18446744073709551615", "+")
    history.do("XINFO", "STREAM", "t", "FULL", "COUNT", 0)
    history.do("XINFO", "STREAM", "t", "FULL")
    history.do("XINFO", "STREAM", "t")
    assert_loop_never_waited(history)


def test_a_reader_goes_on_from_blocks_into_what_is_appended_while_it_waits(history: Twins) -> None:
    readers = [history.cold_server.connect(), history.cold_server.connect(protocol=3)]
    plain = history.plain
    last, found = "0-0", []
    while reply := said(readers[0].do("XREAD", "COUNT", 300, "STREAMS", "t", last)):
        assert reply == said(plain.do("XREAD", "COUNT", 300, "STREAMS", "t", last))
        found += reply[0][1]
        last = reply[0][1][-1][0].decode()
    assert found == said(plain.do("XRANGE", "t", "-", "+"))
    readers[0].send(request("XREAD", "BLOCK", 0, "STREAMS", "t", last))
    readers[1].send(request("XREAD", "BLOCK", 0, "STREAMS", "none", "t", 0, 5))
    assert len(readers[1].reply()[b"t"]) == LAST - 4
    history.do("XADD", "t", "9000-1", "a", "b")
    assert said(readers[0].reply()) == [[b"t", [[b"9000-1", [b"a", b"b"]]]]]
    history.do("XREAD", "STREAMS", "t", "t", 0, seam(history))
    for reader in readers:
        reader.close()
    assert_loop_never_waited(history)


def test_groups_read_claim_and_acknowledge_what_is_in_blocks(history: Twins) -> None:
    twins = history
    twins.do("XGROUP", "CREATE", "t", "g", 0)
    twins.do("XGROUP", "CREATE", "t", "quiet", 0, "ENTRIESREAD", 0)
    read = ("XREADGROUP", "GROUP", "g", "c")
    for count in (1, 400, 5):
        twins.do(*read, "COUNT", count, "STREAMS", "t", ">")
    twins.do("XREADGROUP", "GROUP", "quiet", "c", "COUNT", 900, "NOACK", "STREAMS", "t", ">")
    for _ in range(3):
        twins.do("XREADGROUP", "GROUP", "g", "d", "COUNT", 300, "BLOCK", 10, "STREAMS", "t", ">")
    twins.do("XPENDING", "t", "g")
    assert_loop_never_waited(twins)
    assert twins.do("XDEL", "t", "3-0", "4-1", "1400-2", "9999-9") == 3
    twins.do(*read, "STREAMS", "t", 0)
    twins.do(*read, "COUNT", 3, "STREAMS", "t", "200-0")
    twins.do("XCLAIM", "t", "g", "e", 0, "1-1", "2-2", "3-0", "300-0", "1401-0", "7777-0", "FORCE")
    twins.do("XCLAIM", "t", "g", "e", 0, "5-2", "JUSTID")
    cursor = "0-0"
    while cursor != b"0-0":
        cursor = twins.do("XAUTOCLAIM", "t", "g", "f", 0, cursor, "COUNT", 120)[0]
    twins.do("XAUTOCLAIM", "t", "g", "f", 0, 20, "JUSTID")
    assert twins.do("XACK", "t", "g", *[f"{number}-{number % 3}" for number in range(1, 300)]) > 0
    twins.do("XPENDING", "t", "g")
    for group in said(twins.cold.do("XINFO", "GROUPS", "t")), said(twins.plain.do("XINFO", "GROUPS", "t")):
        assert len(group) == 2
    assert said(twins.cold.do("XINFO", "GROUPS", "t")) == said(twins.plain.do("XINFO", "GROUPS", "t"))
    assert_loop_never_waited(twins)


def test_what_is_deleted_and_trimmed_exactly_is_gone_and_nothing_else(history: Twins) -> None:
    twins, at = history, seam(history)
    ids = [f"{number}-{number % 3}" for number in (1, 2, 77, 500, at - 1, at, at + 1, LAST)]
    assert twins.do("XDEL", "t", *ids, "78-2", *ids) == len(ids)
    twins.assert_alike("t")
    for words in (
        ("MAXLEN", LAST - 20),
        ("MAXLEN", "=", LAST - 300),
        ("MINID", "400-1"),
        ("MINID", "=", "2-1"),
        ("MINID", f"{at - 3}-0"),
        ("MAXLEN", LAST - at),
        ("MAXLEN", 2),
    ):
        twins.do("XTRIM", "t", *words)
        assert_loop_never_waited(twins)
        twins.assert_alike("t")
    assert_loop_never_waited(twins)
    twins.do("XADD", "t", "MAXLEN", 1, "5000-1", "a", "b")
    twins.do("XADD", "t", "MINID", 6000, "5000-2", "a", "b")
    twins.assert_alike("t")


def test_an_exact_trim_while_adding_reads_its_blocks_before_it_adds(history: Twins) -> None:
    twins = history
    twins.do("XADD", "t", "MAXLEN", 1300, "5000-1", "a", "b")
    twins.do("XADD", "t", "MINID", "333-2", "5000-2", "a", "b")
    twins.assert_alike("t")
    assert_loop_never_waited(twins)


def test_an_approximate_trim_leaves_at_least_what_it_is_told_to_and_the_newest(history: Twins) -> None:
    whole = said(history.plain.do("XRANGE", "t", "-", "+"))
    for words, least in ((("MAXLEN", "~", 1000), 1000), (("MINID", "~", "900-0"), 601), (("MAXLEN", "~", 3), 3)):
        history.cold.do("XTRIM", "t", *words)
        left = said(history.cold.do("XRANGE", "t", "-", "+"))
        assert len(left) >= least
        assert left == whole[-len(left) :]
    assert len(left) < 300
    assert_loop_never_waited(history)


def test_a_dump_a_copy_and_a_new_name_have_all_of_it(history: Twins) -> None:
    twins = history
    twins.do("XGROUP", "CREATE", "t", "g", 5)
    twins.do("XDEL", "t", "7-1")
    dumped = twins.do("DUMP", "t")
    assert twins.do("RESTORE", "again", 0, dumped) == b"OK"
    twins.do("COPY", "t", "copy")
    twins.do("XDEL", "t", "8-2")
    twins.do("XDEL", "copy", "9-0")
    twins.do("RENAME", "t", "renamed")
    twins.assert_alike("again", "copy", "renamed")
    twins.do("DEL", "renamed")
    twins.assert_alike("again", "copy")
    twins.do("XADD", "renamed", "1-1", "a", "b")
    twins.assert_alike("renamed")
    twins.do("SWAPDB", 0, 1)
    twins.do("SELECT", 1)
    twins.assert_alike("copy")
    twins.do("FLUSHDB")
    twins.assert_alike("copy", "again")
    assert_loop_never_waited(twins)


def test_a_transaction_reads_blocks_and_is_done_once(history: Twins) -> None:
    twins = history
    twins.do("MULTI")
    twins.do("INCR", "count")
    twins.do("XRANGE", "t", 10, 13)
    twins.do("XDEL", "t", "11-2", "600-0")
    twins.do("XRANGE", "t", 10, 13)
    twins.do("XADD", "t", "MAXLEN", 1400, "8000-0", "a", "b")
    twins.do("XREAD", "COUNT", 2, "STREAMS", "t", 700)
    twins.do("XTRIM", "t", "MINID", 400)
    twins.do("XLEN", "t")
    found = twins.do("EXEC")
    assert found[0] == 1
    assert len(found) == 8
    assert_loop_never_waited(twins)
    twins.assert_alike("t")


def test_replies_of_a_pipeline_come_in_order_while_it_waits_for_blocks(history: Twins) -> None:
    words = []
    for number in range(1, 120):
        words += [
            ("ECHO", number),
            ("XRANGE", "t", number * 10, "+", "COUNT", 3),
            ("XREVRANGE", "t", number * 10, "-", "COUNT", 3),
            ("INCR", "n"),
            ("XDEL", "t", f"{number * 9}-{number * 9 % 3}"),
            ("XADD", "t", f"{LAST + number}-0", "MAXLEN", number),
            ("XLEN", "t"),
        ]
    lines = b"".join(request(*each) for each in words)
    for peer in (history.cold, history.plain):
        peer.send(lines)
    assert said(history.cold.replies(len(words))) == said(history.plain.replies(len(words)))
    assert_loop_never_waited(history)


def test_others_are_answered_while_one_waits_for_a_block(history: Twins) -> None:
    history.gate.touch()
    waiting: list[tuple[Peer, Any]] = []
    history.do("XGROUP", "CREATE", "t", "g", 0)
    history.cold.do("QUEUE.SUBSCRIBER", "t", "q", 0)
    for words in (
        ("XRANGE", "t", 5, 8),
        ("XREVRANGE", "t", 8, 5),
        ("XREAD", "COUNT", 1, "STREAMS", "t", 0),
        ("XREADGROUP", "GROUP", "g", "c", "COUNT", 2, "STREAMS", "t", ">"),
        ("XCLAIM", "t", "g", "c", 0, "20-2", "FORCE"),
        ("XDEL", "t", "30-0"),
        ("XDELEX", "t", "DELREF", "IDS", 1, "33-0"),
        ("XTRIM", "t", "MAXLEN", LAST - 10, "DELREF"),
        ("XTRIM", "t", "MAXLEN", LAST - 40),
        ("XADD", "t", "MINID", "60", "5000-0", "a", "b"),
        ("XINFO", "STREAM", "t", "FULL"),
        ("QUEUE.POP", "t", "q"),
        ("QUEUE.PEEK", "t", "q"),
        ("DUMP", "t"),
        ("TOPIC.SUBSCRIBE", "t", "-"),
    ):
        peer = history.cold_server.connect()
        peer.send(request(*words))
        waiting.append((peer, words))
    with history.cold_server.connect() as other:
        for number in range(50):
            assert other.do("ECHO", number) == b"%d" % number
            assert other.do("XADD", "u", "*", "a", number)
        assert about(other, "t")[b"length"] == LAST
    history.gate.unlink()
    for peer, words in waiting:
        reply = peer.reply()
        assert not isinstance(reply, Exception), (words, reply)
        peer.close()
    assert_loop_never_waited(history)


def test_who_leaves_or_is_killed_while_it_waits_for_a_block_leaves_nothing(history: Twins) -> None:
    history.gate.touch()
    leaving, killed, staying = (history.cold_server.connect() for _ in range(3))
    for peer in (leaving, killed, staying):
        number = peer.do("CLIENT", "ID")
        peer.send(request("XRANGE", "t", "-", "+") + request("ECHO", "behind"))
    with history.cold_server.connect() as other:
        ids = [line.split()[0] for line in other.do("CLIENT", "LIST").splitlines()]
        assert b"id=%d" % number in ids
        leaving.reset()
        killed_id = number - 1
        assert other.do("CLIENT", "KILL", "ID", killed_id) == 1
        assert killed.is_closed()
        history.gate.unlink()
        assert len(staying.reply()) == LAST
        assert staying.reply() == b"behind"
        until(lambda: len(other.do("CLIENT", "LIST").splitlines()) == 3,  "the end of those who left")
    staying.close()
    history.assert_alike("t")


def test_a_paused_client_and_one_that_waits_for_a_block_go_on(history: Twins) -> None:
    history.gate.touch()
    deleting = history.cold_server.connect()
    deleting.send(request("XDEL", "t", "5-2"))
    history.cold.do("CLIENT", "PAUSE", 100_000, "WRITE")
    reading = history.cold_server.connect()
    reading.send(request("XRANGE", "t", 4, 6))
    history.gate.unlink()
    assert len(reading.reply()) == 3
    history.cold.do("CLIENT", "UNPAUSE")
    assert deleting.reply() == 1
    assert history.plain.do("XDEL", "t", "5-2") == 1
    history.assert_alike("t")
    deleting.close()
    reading.close()


def test_a_request_that_has_waited_is_counted_and_shown_to_monitors_once(history: Twins) -> None:
    with history.cold_server.connect() as monitor:
        monitor.do("MONITOR")
        history.cold.do("CONFIG", "RESETSTAT")
        history.cold.do("XRANGE", "t", 1, 3)
        history.cold.do("XDEL", "t", "1-1")
        history.cold.do("PING")
        seen = []
        while b'"PING"' not in (line := bytes(monitor.reply())):
            seen.append(line)
        assert sum(b'"XRANGE"' in line for line in seen) == 1
        assert sum(b'"XDEL"' in line for line in seen) == 1
    stats = history.cold.do("INFO", "everything")
    assert b"cmdstat_xrange:calls=1," in stats
    assert b"cmdstat_xdel:calls=1," in stats
    assert b"keyspace_hits:1\r\n" in stats


def test_a_follower_gets_every_entry_once_while_more_are_added_and_sealed(history: Twins, seal: Seal) -> None:
    sealer = seal(history.cold_server.store_folder, BLOCK_BYTES)
    with history.cold_server.connect(protocol=3) as follower, history.cold_server.connect() as writer:
        follower.send(request("TOPIC.SUBSCRIBE", "t", "-"))
        confirmed = follower.reply()
        assert confirmed[:2] == [b"topic-subscribe", b"t"]
        before = seam(history)
        sent = LAST
        while sent < 3 * LAST:
            numbers = range(sent + 1, sent + 101)
            writer.send(b"".join([request("XADD", "t", f"{number}-0", "v", b"v" * 60) for number in numbers]))
            writer.replies(100)
            sent += 100
        until(lambda: seam(history) > before, "the sealing of what was added")
        found = [number_of(follower.reply()[2]) for _ in range(sent)]
    assert found == list(range(1, sent + 1))
    sealer.end()
    assert_loop_never_waited(history)


def test_a_queue_gives_again_what_is_in_blocks_once_its_time_is_over(history: Twins) -> None:
    twins = history
    for peer in (twins.cold, twins.plain):
        peer.do("XGROUP", "CREATE", "t", "jobs", 0)
        peer.do("TOPIC.GROUP", "t", "jobs", "TIMEOUT", 50)
    first = twins.do("XREADGROUP", "GROUP", "jobs", "c", "COUNT", 10, "STREAMS", "t", ">")
    with twins.cold_server.connect() as other:
        again: list[bytes] = []
        read = ("XREADGROUP", "GROUP", "jobs", "d", "BLOCK", 5000)
        while len(again) < 10:
            reply = other.do(*read, "COUNT", 10 - len(again), "STREAMS", "t", ">")
            again += [entry[0] for entry in reply[0][1] if number_of(entry[0]) <= 10]
    assert again == [entry[0] for entry in first[0][1]]
    assert_loop_never_waited(twins)


def test_popping_a_queue_through_its_blocks_gives_each_value_once(history: Twins) -> None:
    for peer in (history.cold, history.plain):
        assert peer.do("QUEUE.CREATE", "t")
        peer.do("QUEUE.SUBSCRIBER", "t", "q", 0)
    for count in (1, 1, 700, 300, 1000, 1):
        assert history.do("QUEUE.PEEK", "t", "q", "COUNT", count) == history.do("QUEUE.POP", "t", "q", "COUNT", count)
    assert_loop_never_waited(history)
