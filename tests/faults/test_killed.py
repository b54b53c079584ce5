"""kill -9 of those who held much, and the next publisher."""

from __future__ import annotations

import signal
from contextlib import ExitStack
from pathlib import Path

import pytest
from patience import until

import rlite_pubsub
from tests.faults.program import Start
from tests.server.peer import request
from tests.server.server_process import Serve
from tests.soak.left import left_in

SESSIONS = 1000
READER = """
client = rlite_pubsub.Redis(folder)
pubsub = client.pubsub(ignore_subscribe_messages=True)
pubsub.subscribe("all")
pubsub.get_message(timeout=PATIENCE_S)
say("reading")
while True:
    message = pubsub.get_message(timeout=PATIENCE_S)
    if message is not None:
        say(message["data"])
"""


@pytest.mark.parametrize("was_there", [True, False], ids=["a publisher that was there before", "one that starts"])
def test_all_that_a_killed_server_of_1000_sessions_left_is_gone_with_the_next_publish(
    serve: Serve, folder: Path, start: Start, was_there: bool
) -> None:
    server = serve()
    reader = start(READER)
    assert reader.hear() == "reading"
    with ExitStack() as opened:
        publisher = opened.enter_context(rlite_pubsub.Redis(folder))
        for number in range(SESSIONS):
            peer = opened.enter_context(server.connect())
            peer.send(request("SUBSCRIBE", "all", f"channel {number}") + request("PSUBSCRIBE", f"pattern {number}*"))
        last = opened.enter_context(server.connect())
        until(lambda: last.do("PUBSUB", "NUMSUB", "all") == [b"all", SESSIONS + 1])
        until(lambda: last.do("PUBSUB", "NUMPAT") == SESSIONS)
        if was_there:
            assert publisher.publish("all", "to the living") == SESSIONS + 1
            assert reader.hear() == "to the living"
        server.end(signal.SIGKILL)
        assert [publisher.publish("all", "first"), publisher.publish("all", "second")] == [1, 1], (
            "the dead are not counted"
        )
        assert [reader.hear(), reader.hear()] == ["first", "second"], "the living lose nothing"
        assert publisher.pubsub_channels() == [b"all"] and publisher.pubsub_numpat() == 0
        assert len(list((folder / "subscribers").iterdir())) == 2, "the reader's own"
        reader.kill()
        publisher.publish("all", "to one who is dead")
    assert left_in(folder) == []
