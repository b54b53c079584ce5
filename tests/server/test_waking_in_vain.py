"""A blocked reader whose topic has changed, and has no entry for it, waits on."""

from __future__ import annotations

from patience import until
from server_process import Serve

import rlite_pubsub


def test_reader_is_not_told_of_a_last_id_that_was_moved_when_another_process_rings(serve: Serve) -> None:
    server = serve()
    reader, neighbour, writer = server.connect(), server.connect(), server.connect()
    writer.do("XADD", "a", "1-0", "number", "1")
    reader.send(b"XREAD BLOCK 0 STREAMS a $\r\n")
    neighbour.send(b"XREAD BLOCK 0 STREAMS b $\r\n")
    until(lambda: b"blocked_clients:2\r" in writer.do("INFO", "clients"))
    writer.do("XSETID", "a", "1-5")
    with rlite_pubsub.Redis(server.store_folder) as elsewhere:
        elsewhere.xadd("b", {"number": 1}, id="1-0")
        assert neighbour.replies(1)[0][0][0] == b"b"
        elsewhere.xadd("a", {"number": 2}, id="1-9")
    assert reader.replies(1) == [[[b"a", [[b"1-9", [b"number", b"2"]]]]]]
