"""Topics under load: servers that are killed, groups that are shared, readers that join while writers write.

RLITE_SOAK_SECONDS is for how long (about 10; a minute in CI), RLITE_SOAK_SEED makes the same dice fall again; the
timing is never the same.
"""

from __future__ import annotations

import os
import random
import secrets
import time
from pathlib import Path

import pytest

from tests.soak import topic_killing
from tests.soak.topic_killing import GROUP, SHARED, Consumer, Deliveries, KilledServer, Writer

SECONDS = float(os.environ.get("RLITE_SOAK_SECONDS", "60" if "CI" in os.environ else "5"))
SEED = int(os.environ.get("RLITE_SOAK_SEED", secrets.randbits(32)))
WRITERS = 4
CONSUMERS = 3
FAULTS_TOLD = 20


@pytest.mark.timeout(SECONDS + 240)
@pytest.mark.parametrize("appendfsync", ["everysec", "always"])
def test_every_acknowledged_entry_outlives_kills_and_every_delivery_is_accounted_for(
    tmp_path: Path, appendfsync: str
) -> None:
    dice = random.Random(SEED)
    server = KilledServer(tmp_path, appendfsync)
    try:
        with server.client() as client:
            client.xgroup_create(SHARED, GROUP, "0", mkstream=True)
            told = Deliveries()
            writers = [Writer(server, f"writer-{number}", SEED) for number in range(WRITERS)]
            consumers = [Consumer(server, f"consumer-{number}", SEED, told) for number in range(CONSUMERS)]
            deadline = time.monotonic() + SECONDS
            while time.monotonic() < deadline:
                time.sleep(dice.random())  # a pace, nothing is waited for
                server.kill_and_start()
            for actor in (*writers, *consumers):
                actor.stop()
            server.kill_and_start()
            faults = topic_killing.writer_faults(client, writers) + topic_killing.pending_faults(client, told)
            topic_killing.drain(client, told)
            added = [entry_id for entry_id, _ in client.xrange(SHARED)]
            faults += topic_killing.pending_faults(client, told)
            (group,) = client.xinfo_groups(SHARED)
    finally:
        server.stop()
    assert not faults, "\n".join([f"RLITE_SOAK_SEED={SEED}, in {tmp_path}:", *faults[:FAULTS_TOLD]])
    assert set(added) == told.handled and len(added) > 100 and server.kills > 1, f"idle, by seed {SEED}"
    assert (group["pending"], group["lag"], group["last-delivered-id"]) == (0, 0, added[-1])
    assert set(added) == told.acknowledged | told.perhaps_acknowledged
