"""A running server whose cold store is a bucket: it seals, reads and drops there, and bears with it when it is away."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from bucket import KEYS, Bucket
from cold_server import blocks, until_sealed
from patience import until
from peer import Peer, request
from server_process import Serve

BLOCK_BYTES = 64 << 10


@pytest.fixture
def bucket() -> Iterator[Bucket]:
    found = Bucket()
    yield found
    found.end()


def add(peer: Peer, numbers: range) -> None:
    peer.send(b"".join([request("XADD", "t", f"{each}-0", "n", each, "v", b"v" * 200) for each in numbers]))
    peer.replies(len(numbers))


def test_a_server_seals_into_a_bucket_reads_it_bears_its_absence_and_drops_what_goes(
    serve: Serve, bucket: Bucket
) -> None:
    words = ("--cold-store", bucket.url, "--cold-block-size", str(BLOCK_BYTES), "--cold-cache", "0")
    server = serve(*words, "--cold-grace", "5", environment=KEYS)
    with server.connect() as peer, server.connect() as other:
        add(peer, range(1, 1001))
        until_sealed(peer, "t", BLOCK_BYTES)
        assert [int(entry[1][1]) for entry in peer.do("XRANGE", "t", "-", "+")] == list(range(1, 1001))
        known = [each[b"path"].decode() for each in blocks(peer, "t")]
        assert set(known) < set(bucket.names())
        assert b"secret" not in peer.do("CONFIG", "GET", "cold-store")[1]

        until(lambda: b"cold_cached_bytes:0\r\n" in peer.do("INFO"), "the end of what was kept")
        bucket.end()
        peer.send(request("XRANGE", "t", "-", "+"))
        add(other, range(1001, 2001))  # nobody else waits for the bucket
        reply = peer.reply()
        assert str(reply).startswith("COLD ") and any(name in str(reply) for name in known)
        assert "secret" not in str(reply)
        assert peer.do("XREVRANGE", "t", "+", "-", "COUNT", 1)[0][0] == b"2000-0"
        until(lambda: "Can't seal" in server.output() + server.log(), "the failure of a sealing")

        bucket.begin()
        until_sealed(peer, "t", BLOCK_BYTES)
        assert [int(entry[1][1]) for entry in peer.do("XRANGE", "t", "-", "+")] == list(range(1, 2001))
        last = peer.do("XTRIM", "t", "MINID", "~", "900-0")
        assert last > 0
        left = [each[b"path"].decode() for each in blocks(peer, "t")]
        until(lambda: [name for name in bucket.names() if name.endswith(".parquet")] == sorted(left), "the grace's end")
