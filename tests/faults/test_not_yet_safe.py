"""What another process has committed and has not brought to the disk yet stands in nobody's way."""

from __future__ import annotations

from pathlib import Path

import rlite_pubsub
from tests.faults.program import Start


def test_program_that_comes_while_another_writes_publishes_to_a_durable_subscriber(start: Start, folder: Path) -> None:
    writer = start(
        """
        import time
        durable = rlite_pubsub.Redis(folder, client_name="durable:away").pubsub()
        durable.subscribe("news")
        durable.get_message(timeout=PATIENCE_S)
        client = rlite_pubsub.Redis(folder)
        say("writes")
        while True:
            client.set("k", "v")
            time.sleep(0.002)  # a pace, nothing is waited for
        """
    )
    assert writer.hear() == "writes"
    for number in range(20):  # what the other has written is not safe yet
        with rlite_pubsub.Redis(folder) as client:
            assert client.publish("news", str(number)) == 1
