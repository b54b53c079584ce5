"""Whatever bytes a client hands to a command that takes them apart, the answer is the command's: a value, or an error
of its own. An exception of Python's would be `internal error`, with a traceback in the log."""

from __future__ import annotations

from random import Random

import hiredis
import pytest
from damage import damaged
from hypothesis import given, settings
from hypothesis import strategies as st
from parsed_session import ParsedSession
from recorded_session import House

from rlite_pubsub.links import envelope as link_envelope
from rlite_pubsub.links.envelope import BadFrame, Envelope
from rlite_pubsub.protocol.encoder import bulk_array
from rlite_pubsub.protocol.entries import cut_entries
from rlite_pubsub.protocol.rdb import envelope

WIRE = [
    b"\r\n",
    b"\r",
    b"*2\r\n",
    b"*12\r",
    b"$12\r",
    b"$-1\r\n",
    b"*0\r\n",
    b"9" * 20,
    b"$0\r\n\r\n",
    b"*",
    b"$",
    b"-",
]
BINARY = [
    b"\0",
    b"\xff" * 4,
    b"\x81" + b"\xff" * 8,
    b"\x80\x7f\xff\xff\xff",
    b"\xc3\x01\x01\0",
    b"\xf5",
    b"\xfa",
    b"\xff",
]
ENTRIES = b"".join(
    b"*2\r\n$%d\r\n%b\r\n%b" % (len(id), id, bulk_array(words))
    for id, words in ((b"5-1", (b"a", b"b", b"c", b"d" * 12)), (b"*", (b"f" * 12, b"v")), (b"6-1", (b"w",) * 12))
)
ROWS = bulk_array((b"a", b"b")) + bulk_array((b"c", b"d" * 12, b"", b"\r\n"))
RUN = b"$1\r\na\r\n$12\r\nbbbbbbbbbbbb\r\n"
FRAME = link_envelope.pack(
    [Envelope(7, 1, 2, 0, 0, b"host:1", b"c", b"c", RUN), Envelope(7, 3, 2, 1, 1, b"", b"b", b"p.b", RUN, (b"x",))]
)
COUNTS = [b"0", b"1", b"2", b"18446744073709551615", b"-1", b"x", b""]
FILLED = [
    ["XADD", "t", "1-1", "f", "v"], ["XGROUP", "CREATE", "t", "g", "0"], ["QUEUE.CREATE", "q"],
    ["QUEUE.PUSH", "q", "x"],
    ["RPUSH", "list", "a", "1"], ["HSET", "hash", "f", "1"], ["ZADD", "sorted", "1", "a"], ["SADD", "set", "a", "1"],
    ["SADD", "numbers", "1", "2", "70000"], ["SET", "string", "x" * 300], ["PFADD", "hll", "a"],
]  # fmt: skip


@pytest.fixture(scope="module")
def client() -> ParsedSession:
    found = ParsedSession(House())
    for words in FILLED:
        assert not isinstance(found.do(*words), hiredis.ReplyError), words
    library = b"#!lua name=l\nredis.register_function('f', function(keys, args) return 1 end)"
    assert found.do("FUNCTION", "LOAD", library) == b"l"
    return found


def ask(client: ParsedSession, *words: bytes | str | int) -> object:
    reply = client.do(*words)
    assert "internal error" not in str(reply), words
    return reply


def twisted(tokens: list[bytes], *seeds: bytes) -> st.SearchStrategy[bytes]:
    """These seeds, cut off anywhere or damaged; or any bytes."""
    cut = st.sampled_from(seeds).flatmap(lambda seed: st.integers(0, len(seed)).map(lambda end: seed[:end]))
    broken = st.builds(lambda dice, seed: damaged(Random(dice), seed, tokens), st.integers(0), st.sampled_from(seeds))
    return st.one_of(cut, broken, st.binary(max_size=60))


@pytest.mark.parametrize("end", range(len(ENTRIES)))
def test_entries_that_are_cut_off_anywhere_are_refused(client: ParsedSession, end: int) -> None:
    whole = cut_entries(ENTRIES[:end])
    assert (
        whole is None or b"".join(b"*2\r\n$%d\r\n%b\r\n%b" % (len(e.id), e.id, e.body) for e in whole) == ENTRIES[:end]
    )
    ask(client, "TOPIC.APPEND", "cut", ENTRIES[:end])


@settings(max_examples=400, deadline=None)
@given(twisted(WIRE, ENTRIES, ENTRIES * 2))
def test_topic_append_takes_entries_or_refuses(client: ParsedSession, data: bytes) -> None:
    ask(client, "TOPIC.APPEND", "appended", data)
    ask(client, "XRANGE", "appended", "-", "+")
    ask(client, "DEL", "appended")


@settings(max_examples=400, deadline=None)
@given(twisted(WIRE, ROWS, ROWS * 2), st.sampled_from(COUNTS), st.one_of(st.none(), st.binary(max_size=48)), st.data())
def test_topic_stage_takes_rows_or_refuses(
    client: ParsedSession, rows: bytes, count: bytes, ids: bytes | None, data: st.DataObject
) -> None:
    numbers = [data.draw(st.sampled_from(COUNTS)) for _ in range(4)]
    option = [] if ids is None else [b"IDS", ids]
    ask(client, "TOPIC.STAGE", "app", *numbers, "staged", count, rows, *option)
    ask(client, "TOPIC.STAGE", "app", "1", "0", "1", "0", "staged", count, rows, *option)
    ask(client, "TOPIC.COMMIT", "app", "1", "0", "1", count)
    ask(client, "TOPIC.UNSTAGE", "app", "9")
    ask(client, "XRANGE", "staged", "-", "+")


@settings(max_examples=400, deadline=None)
@given(st.sampled_from("t q list hash sorted set numbers string hll".split()), st.integers(0), st.booleans())
def test_restore_takes_a_value_or_refuses(client: ParsedSession, key: str, dice: int, is_sealed: bool) -> None:
    payload = client.do("DUMP", key)
    assert isinstance(payload, bytes)
    data = damaged(Random(dice), payload[:-10] if is_sealed else payload, BINARY)
    ask(client, "RESTORE", "restored", "0", envelope.seal(data) if is_sealed else data, "REPLACE")
    ask(client, "DEL", "restored")


@settings(max_examples=300, deadline=None)
@given(st.integers(0), st.booleans())
def test_function_restore_takes_libraries_or_refuses(client: ParsedSession, dice: int, is_sealed: bool) -> None:
    payload = client.do("FUNCTION", "DUMP")
    assert isinstance(payload, bytes)
    data = damaged(Random(dice), payload[:-10] if is_sealed else payload, BINARY)
    ask(client, "FUNCTION", "RESTORE", envelope.seal(data) if is_sealed else data, "REPLACE")


NAMED = """
SUBSCRIBER.ATTACH ? TTL ?|SUBSCRIBER.ATTACH ? MAXBYTES ? MAXLEN ?|SUBSCRIBER.INFO ?|SUBSCRIBER.DELETE ?
SUBSCRIBER.KILL ? ?|SUBSCRIBER.DETACH ?|SUBSCRIBER.RATES ?|SUBSCRIBER.CLIENTS ?|SUBSCRIBER.LIST ?|QUEUE.CREATE ? ?
QUEUE.PUSH ? ?|QUEUE.POP q ? ?|QUEUE.PEEK q ? ?|QUEUE.SUBSCRIBE q ? ?|QUEUE.SUBSCRIBE q ? FROM ?|QUEUE.UNSUBSCRIBE q ?
QUEUE.SLEEP q ? ?|QUEUE.WAKE q ?|QUEUE.LIST ?|QUEUE.LEN q ?|TOPIC.CONFIG t RETENTION ?|TOPIC.CONFIG t ? ?
TOPIC.GROUP t g ? ?|TOPIC.DEFER t ? f v|TOPIC.REDEFER t ? ?|TOPIC.UNDEFER t ?|TOPIC.REQUEUE t g ?|TOPIC.MARKS t ? ? ?
TOPIC.SWAP t ? ? ? ? ? ? ? ? ? ? ?|TOPIC.SUBSCRIBE t ?|TOPIC.BLOCKS t ?|TOPIC.COMMIT ? ? ? ? ?|TOPIC.UNSTAGE ? ?
LINK CREATE ? ?|LINK INFO ?
"""
WORDS = st.one_of(
    st.binary(max_size=12),
    st.sampled_from([b"0", b"-1", b"1-1", b"5-", b"-", b"+", b"$", b"\xff", b"18446744073709551616", b"1e400", b"nan",
                     b"9" * 400, b"9" * 5000, b"", b"\0", b"\xd9\xa1", b"g", b"t", b"q", b"TTL", b"0x10", b"1_0"]),
)  # fmt: skip


@settings(max_examples=1500, deadline=None)
@given(st.sampled_from(NAMED.strip().replace("\n", "|").split("|")), st.data())
def test_commands_of_ours_take_any_words_or_refuse(form: str, data: st.DataObject) -> None:
    client = ParsedSession(HOUSE)
    words = [data.draw(WORDS) if word == "?" else word for word in form.split()]
    ask(client, *words)
    client.session.close_now()


HOUSE = House()


@settings(max_examples=500, deadline=None)
@given(twisted([b"\0", b"\xff", b"$", b"\r\n", b"$9\r\n", b"$-5\r\n", b"$-7\r\n"], FRAME))
def test_a_frame_of_a_link_is_read_or_refused(data: bytes) -> None:
    try:
        for each in link_envelope.unpack(data) if link_envelope.kind_of(data) == link_envelope.DATA else ():
            assert len(each.tails) == each.length or not each.run
        link_envelope.words_of(data)
    except BadFrame:
        pass


def test_words_of_a_frame_that_nest_too_deep_are_refused() -> None:
    with pytest.raises(BadFrame):
        link_envelope.words_of(b"\x02\x01" + b"[" * 200_000)
