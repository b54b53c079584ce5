"""What comes from a server that knows nothing of envelopes, and which messages its markers speak of."""

from __future__ import annotations

from typing import Any

from rlite_pubsub.links.envelope import Envelope, pack, run_of
from rlite_pubsub.links.link_wire import pack as packed
from rlite_pubsub.links.markers import MarkerReader, transaction

MARKER = b"marker"
CHANNEL, SHARD = 0, 2


def marks(*envelopes: tuple[int, bytes, int]) -> list[bytes]:
    """A marker: of each envelope its number, its channel, and of how many messages."""
    said = [Envelope(7, number, length, 0, CHANNEL, b"", name, name, b"") for number, name, length in envelopes]
    return [b"smessage", MARKER, pack(said)]


def message(channel: bytes, payload: bytes) -> list[bytes]:
    return [b"message", channel, payload]


def read(*batches: list[list[Any]]) -> list[tuple[bytes, list[bytes], int]]:
    """(channel, payloads, the first one's number, 0 without a mark) of each run that comes."""
    found: list[tuple[bytes, list[bytes], int]] = []

    def came(kind: int, channel: bytes, tails: list[bytes], mark: Envelope | None) -> None:
        payloads = [tail.partition(b"\r\n")[2] for tail in tails]
        found.append((channel, payloads, mark.number if mark is not None else 0))

    reader = MarkerReader(came, MARKER.__eq__)
    reader.pushed([[b"ssubscribe", MARKER, 1], [b"subscribe", b"a", 1], [b"subscribe", b"b", 2]])
    for batch in batches:
        reader.pushed(batch)
    return found


def test_messages_of_one_channel_come_in_runs() -> None:
    batch = [message(b"a", b"1"), message(b"a", b"2"), message(b"b", b"3"), message(b"a", b"")]
    assert read(batch) == [(b"a", [b"1", b"2"], 0), (b"b", [b"3"], 0), (b"a", [b""], 0)]


def test_a_mark_is_of_as_many_messages_as_it_says_and_of_no_more() -> None:
    batch = [
        message(b"a", b"own"),
        marks((10, b"a", 2), (20, b"a", 1), (30, b"b", 1), (40, b"unheard", 5)),
        *[message(b"a", b"%d" % number) for number in (10, 11, 20)],
        message(b"b", b"30"),
        message(b"b", b"own"),
    ]
    assert read(batch) == [
        (b"a", [b"own"], 0),
        (b"a", [b"10", b"11"], 10),
        (b"a", [b"20"], 20),
        (b"b", [b"30"], 30),
        (b"b", [b"own"], 0),
    ]


def test_a_marked_run_that_comes_in_two_reads_keeps_its_numbers() -> None:
    first = [marks((10, b"a", 3)), message(b"a", b"10")]
    rest = [message(b"a", b"11"), message(b"a", b"12"), message(b"a", b"own")]
    assert read(first, rest) == [(b"a", [b"10"], 10), (b"a", [b"11", b"12"], 11), (b"a", [b"own"], 0)]


def test_a_transaction_publishes_each_message_as_a_client_would() -> None:
    runs = [
        Envelope(7, 1, 2, 0, CHANNEL, b"", b"a", b"a", run_of([b"1\r\nx", b"4\r\n\r\n$1"])),
        Envelope(7, 3, 1, 0, SHARD, b"", b"s", b"s", run_of([b"0\r\n"])),
    ]
    requests, replies = transaction(MARKER, runs)
    assert requests == b"".join(
        map(
            packed,
            [
                (b"MULTI",),
                (b"SPUBLISH", MARKER, pack([run._replace(run=b"") for run in runs])),
                (b"PUBLISH", b"a", b"x"),
                (b"PUBLISH", b"a", b"\r\n$1"),
                (b"SPUBLISH", b"s", b""),
                (b"EXEC",),
            ],
        )
    )
    assert replies == 6
