"""hiredis behind its guard, and runs: both must say what reading one by one says, and cost no more than the bytes."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from patience import PATIENCE_S
from reference_parser import by_next, cut, taken, written

from rlite_pubsub.protocol.batch import BatchReader, Run, run_prefix, split_run
from rlite_pubsub.protocol.parser import Parser

Request = list[bytes]


def publishes(payloads: list[bytes], channel: bytes = b"news") -> bytes:
    return written([[b"PUBLISH", channel, payload] for payload in payloads])


def expecting(head: Request) -> Parser:
    """A parser that has learned to expect a run with this head."""
    parser = Parser(BatchReader())
    for _ in range(2):
        assert not any(isinstance(item, Run) for item in parser.take(written([[*head, b"learn"]] * 2)))
    return parser


# -- batches


@pytest.mark.parametrize("count", [1, 2, 9, 10, 99, 1000])
def test_what_a_client_writes_goes_through_the_batch_reader(count: int) -> None:
    requests = [[b"a" * size for size in range(count)], [b"PING"]] * 3
    assert BatchReader().read(written(requests)) == (requests, len(written(requests)))


def test_a_chunk_that_ends_within_a_request_is_read_up_to_it() -> None:
    data = publishes([b"x", b"\r\n*1\r\n", b"yy"])
    whole = [len(publishes([b"x", b"\r\n*1\r\n", b"yy"][:count])) for count in range(4)]
    for end in range(len(data) + 1):
        count = sum(place <= end for place in whole) - 1
        read = BatchReader().read(data[:end])
        assert (None if count == 0 else whole[count]) == (read and read[1]), end
        assert read is None or len(read[0]) == count


def test_doubt_leaves_nothing_behind_for_the_next_connection() -> None:
    reader = BatchReader()
    doubtful = [
        b"*2\r\n$4\r\nECHO\r\n$5\r\nhe",
        b"*1\r\n$4\r\nPINGxx:5\r\n",
        b"*1\r\n$4\r\nPINGxx:0\r\n$4\r\nleft",
        b"*1\r\n$4\r\nPINGxx%1\r\n*0\r\n*0\r\n",
        b"*1\r\n?\r\n",
        b"*1\r\n$4\r\nPING\r\n$0\r\n",
        b"*1\r\n$4\r\nPING\r\n$1\r\n",
        b"*1\r\n$4\r\nPING\r\n$2\r\n",
        b"*1\r\n$4\r\nPING\r\n$9\r\n\r\n",
        b"*1\r\n$4\r\nPING\r\n*1\r\n",
    ]
    for data in doubtful:
        reader.read(data)
        assert not reader._reader.has_data()
        assert reader.read(b"*1\r\n$4\r\nPING\r\n") == ([[b"PING"]], 14), data


def test_a_payload_may_look_like_anything() -> None:
    payloads = [b"*9999999\r\n", b"%5\r\n", b"\n:1\r\n", b"$-1\r\n", b"100% > 99% ~1 |2", b"*0\r\n", b"\r\n*0\r\n"]
    for payload in payloads:
        assert Parser(BatchReader()).take(publishes([payload] * 2)) == [[b"PUBLISH", b"news", payload]] * 2


# -- memory

HOSTILE = {
    "a billion arguments": b"*1000000000\r\n",
    "the most arguments": b"*2147483647\r\n",
    "nested arrays": b"*9999\r\n" * 9000,
    "nested arrays of a billion": b"*1000000000\r\n" * 4000,
    "arrays nested behind an argument": b"*9999\r\n$0\r\n\r\n" * 5000,
    "arrays nested behind an unchecked terminator": b"*9999\r\n$0\r\nxx" * 5000,
    "small arrays nested": b"*9\r\n" * 16000,
    "small arrays nested behind an argument": b"*99\r\n$0\r\n\r\n" * 5000,
    "a billion behind an unchecked terminator": b"*2\r\n$1\r\naxx*1000000000\r\n",
    "a map of a billion": b"*2\r\n$1\r\naxx%1000000000\r\n",
    "a set of a billion": b"*2\r\n$1\r\naxx~1000000000\r\n",
    "a push of a billion": b"*2\r\n$1\r\naxx>1000000000\r\n",
    "an attribute of a billion": b"*2\r\n$1\r\naxx|1000000000\r\n",
    "maps nested": b"*2\r\n$1\r\na\r\n" + b"%9999\r\n" * 9000,
    "sets nested": b"*2\r\n$1\r\na\r\n" + b"~9999\r\n" * 9000,
    "a long argument": b"*1\r\n$536870912\r\n",
    "a long argument after requests": b"*1\r\n$4\r\nPING\r\n" * 100 + b"*1\r\n$536870912\r\n",
    "a long verbatim string": b"*2\r\n$1\r\naxx=536870912\r\n",
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_header_allocates_nothing_of_what_it_announces(data: bytes) -> None:
    for parser in (Parser(BatchReader()), Parser(BatchReader(), trusted=False), expecting([b"PUBLISH", b"news"])):
        tracemalloc.start()
        try:
            parser.take(data)
            assert tracemalloc.get_traced_memory()[1] < 4 * 1024 * 1024
        finally:
            tracemalloc.stop()


MEASURED = """
import resource, sys
from rlite_pubsub.protocol.batch import BatchReader
from rlite_pubsub.protocol.parser import Parser

def address_space(name):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(name)) * 1024

data = sys.stdin.buffer.read()
Parser(BatchReader()).take(b"*1\\r\\n$4\\r\\nPING\\r\\n")
before = address_space("VmSize")
resource.setrlimit(resource.RLIMIT_AS, (before + 2**28, before + 2**28))
parser = Parser(BatchReader())
parser.take(data)
print(address_space("VmPeak") - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="/proc tells how much a process has ever asked for")
@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_header_costs_the_process_nothing_of_what_it_announces(data: bytes) -> None:
    command = [sys.executable, "-c", MEASURED]
    ran = subprocess.run(command, input=data, capture_output=True, timeout=PATIENCE_S, check=False)
    assert ran.returncode == 0, ran.stderr.decode()
    assert int(ran.stdout) < 8 * 1024 * 1024


def test_an_argument_that_comes_in_tiny_chunks_costs_about_its_length() -> None:
    size = 2 * 1024 * 1024
    parser = Parser(BatchReader())
    parser.take(b"*1\r\n$%d\r\n" % size)
    tracemalloc.start()
    try:
        for at in range(0, size, 2):
            parser.take(b"%02d" % (at % 100))
        assert tracemalloc.get_traced_memory()[1] < 1.5 * size
    finally:
        tracemalloc.stop()


# -- runs


@pytest.mark.parametrize("count", [*range(2, 12), 64, 199, 200])
def test_a_run_is_one_item_and_means_its_requests(count: int) -> None:
    for payloads in ([b"x" * 32] * count, [b"y" * (at % 13) for at in range(count)], [b"\r\n"] * count):
        (run,) = expecting([b"PUBLISH", b"news"]).take(publishes(payloads))
        assert isinstance(run, Run)
        assert run.head == [b"PUBLISH", b"news"]
        assert run.tails == [b"%d\r\n%b" % (len(payload), payload) for payload in payloads]
        assert run.commands() == [[b"PUBLISH", b"news", payload] for payload in payloads]


@pytest.mark.parametrize("payload", [b"", b"x", b"x" * 2000, b"\r\n", b"\r\n$1\r\nx", b"*1\r\n"])
def test_a_single_request_is_itself_whether_a_run_is_expected_or_not(payload: bytes) -> None:
    for parser in (Parser(BatchReader()), expecting([b"PUBLISH", b"news"])):
        for _ in range(3):
            (item,) = parser.take(publishes([payload]))
            assert (item.commands() if isinstance(item, Run) else [item]) == [[b"PUBLISH", b"news", payload]]


def test_a_run_is_expected_after_two_chunks_with_the_same_head_and_no_more_after_another() -> None:
    parser = Parser(BatchReader())
    data = publishes([b"x"] * 3)
    assert not isinstance(parser.take(data)[0], Run)
    assert not isinstance(parser.take(data)[0], Run)
    assert isinstance(parser.take(data)[0], Run)
    assert not isinstance(parser.take(publishes([b"x"] * 3, b"other"))[0], Run)
    assert not isinstance(parser.take(data)[0], Run)
    assert not isinstance(parser.take(data)[0], Run)
    assert isinstance(parser.take(data)[0], Run)


def test_requests_without_arguments_or_with_a_long_head_are_no_runs() -> None:
    for request in ([b"PING"], [b"PUBLISH", b"c" * 2000, b"x"]):
        parser = Parser(BatchReader())
        for _ in range(4):
            assert parser.take(written([request] * 3)) == [request] * 3
    assert run_prefix([b"PING"]) == b""


PREFIX = run_prefix([b"PUBLISH", b"news", b""])
PAYLOADS = {
    "equal lengths": [b"a" * 20] * 8,
    "different lengths": [b"a" * length for length in (0, 1, 9, 10, 99, 100, 3)],
    "empty ones": [b""] * 5,
    "newlines": [b"\r\n", b"\r\n\r\n", b"a\r\n"],
    "the prefix": [PREFIX, b"\r\n" + PREFIX, b"\r\n" + PREFIX + b"3\r\n", PREFIX],
    "the prefix and a length that fits": [b"\r\n" + PREFIX + b"1\r\nx", b"a\r\n" + PREFIX + b"1\r\nb"] * 2,
    "requests": [publishes([b"x"]), publishes([b"x", b"y"]), b"*1\r\n$4\r\nPING\r\n"],
    "lengths": [b"5\r\nhello", b"5\r\n", b"$5\r\nhello\r\n"],
}


@pytest.mark.parametrize("payloads", PAYLOADS.values(), ids=PAYLOADS.keys())
def test_a_run_that_is_cut_anywhere_means_the_same(payloads: list[bytes]) -> None:
    data = publishes(payloads)
    requests = [[b"PUBLISH", b"news", payload] for payload in payloads]
    for place in range(len(data) + 1):
        assert taken(expecting([b"PUBLISH", b"news"]), cut(data, [place])) == (requests, None), place
    for place in range(0, len(data), 7):
        assert taken(expecting([b"PUBLISH", b"news"]), cut(data, [place, place + 3])) == (requests, None), place


def test_another_channel_in_the_middle_is_not_lost_in_the_run() -> None:
    for before in range(4):
        for after in range(4):
            data = publishes([b"x"] * before) + publishes([b"x"], b"olds") + publishes([b"x"] * after)
            channels = [b"news"] * before + [b"olds"] + [b"news"] * after
            expected = [[b"PUBLISH", channel, b"x"] for channel in channels]
            assert taken(expecting([b"PUBLISH", b"news"]), [data]) == (expected, None)


@pytest.mark.parametrize(
    "broken",
    [
        PREFIX + b"2\r\nx\r\n",
        PREFIX + b"0\r\nx\r\n",
        PREFIX + b"01\r\nx\r\n",
        PREFIX + b"-1\r\n",
        PREFIX + b"1\r\nxyy",
        PREFIX + b"x\r\n",
        PREFIX + b"\r\n",
        PREFIX + b"0\r\n",
        PREFIX + b"1\nx\r\n",
        PREFIX + b"1x\r\n",
        PREFIX + b"2\r\r\n",
        b"*3\r\n$7\r\nPUBLISH\r\n$4\r\nnewsxx$1\r\nx\r\n",
    ],
)
@pytest.mark.parametrize("place", range(4))
def test_wrong_lengths_in_a_run_get_what_they_get_elsewhere(broken: bytes, place: int) -> None:
    requests = [publishes([b"x"])] * 3
    data = b"".join([*requests[:place], broken, *requests[place:]])
    assert taken(expecting([b"PUBLISH", b"news"]), [data]) == by_next([data])


CROOKED = st.lists(
    st.sampled_from([b"\r\n", b"*2\r\n", b"*2", b"$", b"1", b"$1\r\n", b"*", b"\r", b"1\r\n", b"$4\r\n", b"4\r\n"]),
    max_size=6,
).map(b"".join)


@settings(max_examples=1500, deadline=None)
@given(CROOKED, st.integers(0, 12), st.data())
@example(b"4\r\n\r$$4\r\n", 0, None)
def test_only_whole_requests_are_a_run_however_crooked_the_channel(
    channel: bytes, length: int, data: st.DataObject | None
) -> None:
    prefix = run_prefix([channel, b""])
    separator = b"\r\n" + prefix
    pieces = [
        separator,
        separator[1:],
        separator[:-1],
        separator[:5],
        channel,
        b"\r\n",
        b"x",
        b"1\r\n",
        b"%d\r\n" % length,
    ]
    drawn = (
        data.draw(st.lists(st.sampled_from(pieces), max_size=8)) if data else [separator, b"0", separator, b"1\r\nx"]
    )
    stream = prefix + b"%d\r\n" % length + b"".join(drawn) + b"\r\n"
    run = split_run(stream, prefix)
    if run is not None:
        tails, end = run
        assert by_next([stream[:end]]) == (Run([channel], tails).commands(), None)
        assert written(Run([channel], tails).commands()) == stream[:end]
