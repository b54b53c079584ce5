"""Eight processes on one store publish and subscribe at random, and are killed and started again at random.

RLITE_SOAK_SECONDS is for how long (15), RLITE_SOAK_SEED makes the same dice fall again; the timing is
never the same.
"""

from __future__ import annotations

import os
import secrets
import time
from pathlib import Path

import pytest

import rlite_pubsub
from tests.soak import ledger
from tests.soak.crew import DURABLES, Crew
from tests.soak.left import left_in

SECONDS = float(os.environ.get("RLITE_SOAK_SECONDS", "15"))
SEED = int(os.environ.get("RLITE_SOAK_SEED", secrets.randbits(32)))
FAULTS_TOLD = 20


@pytest.mark.timeout(SECONDS + 600)
def test_every_acknowledged_message_is_delivered_once_and_in_order_and_nothing_is_left(tmp_path: Path) -> None:
    crew = Crew(tmp_path, SEED)
    try:
        crew.start()
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            crew.step()
        crew.stop_publishing()
        crew.drain()
        crew.stop_servers()
    finally:
        crew.kill_all()
    pages = [ledger.read(path) for path in sorted(crew.pages.iterdir())]
    faults = crew.faults() + ledger.faults(pages)
    for durable in DURABLES:
        lives = [page for page in pages if page.name.startswith(durable)]
        faults += ledger.durable_faults(lives, pages)
    assert not faults, "\n".join([f"RLITE_SOAK_SEED={SEED}, in {tmp_path}:", *faults[:FAULTS_TOLD]])
    assert sum(page.ended for page in pages) and sum(len(page.published) for page in pages), f"idle, by seed {SEED}"
    with rlite_pubsub.Redis(crew.store) as client:
        for durable in DURABLES:
            assert client.execute_command("SUBSCRIBER.DELETE", durable) == 1
    crew.command("doctor", "-s", str(crew.store))
    assert left_in(crew.store) == [], f"RLITE_SOAK_SEED={SEED}"
