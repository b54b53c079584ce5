"""What is old enough is sealed, however little it is: in one block for each such time, and not in a tiny one for each
chunk."""

from __future__ import annotations

import time

from cold_server import about, blocks
from patience import until
from peer import request
from server_process import Serve


def test_a_small_topic_is_sealed_once_its_oldest_entry_is_too_old(serve: Serve) -> None:
    server = serve("--cold-store", "local", "--cold-block-age", "100")
    now_ms = int(time.time() * 1000)
    with server.connect() as peer:
        for name, age_ms in (("old", 150_000), ("young", 50_000)):
            lines = [
                request("XADD", name, f"{now_ms - age_ms + number * 100}-0", "v", b"v" * 200) for number in range(900)
            ]
            peer.send(b"".join(lines))  # over 90 seconds
            peer.replies(900)
        until(lambda: about(peer, "old")[b"cold-entries"], "the sealing of what is old")
        peer.do("XADD", "old", "*", "v", "more")
        peer.do("XADD", "other", "*", "v", "more")
        found = blocks(peer, "old")
        assert len(found) == 1
        assert found[0][b"count"] > 850
        assert blocks(peer, "young") == []
        assert len(peer.do("XRANGE", "old", "-", "+")) == 901
