"""Topics under load: servers that are killed, groups that are shared, readers that join while writers write.

RLITE_SOAK_SECONDS is for how long (5 for each), RLITE_SOAK_SEED makes the same dice fall again; the
timing is never the same.
"""

from __future__ import annotations

import os
import random
import secrets
import time
from pathlib import Path

import pytest
from patience import PATIENCE_S

import rlite_pubsub
from tests.soak import topic_crew, topic_killing
from tests.soak.topic_crew import TopicCrew
from tests.soak.topic_killing import GROUP, SHARED, Consumer, Deliveries, KilledServer, Writer
from tests.soak.topic_worker import END_FIELD, LONG, SHORT

SECONDS = float(os.environ.get("RLITE_SOAK_SECONDS", "5"))
SEED = int(os.environ.get("RLITE_SOAK_SEED", secrets.randbits(32)))
WRITERS = 4
CONSUMERS = 3
FAULTS_TOLD = 20


@pytest.mark.timeout(SECONDS + 600)
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


@pytest.mark.timeout(SECONDS + 600)
def test_whoever_joins_at_any_point_gets_every_entry_from_there_on_once_and_in_order(tmp_path: Path) -> None:
    dice = random.Random(SEED)
    crew = TopicCrew(tmp_path, SEED)
    ends: dict[str, list[topic_crew.Id]] = {topic: [] for topic in (*LONG, SHORT)}
    try:
        with rlite_pubsub.Redis(crew.store, decode_responses=True) as client:
            deadline = time.monotonic() + SECONDS
            while time.monotonic() < deadline:
                time.sleep(dice.random() * 0.1)  # a pace, nothing is waited for
                crew.step()
                client.xtrim(SHORT, maxlen=dice.choice([0, 10, 300]), approximate=dice.random() < 0.5)
            crew.stop_writing()
            deadline = time.monotonic() + PATIENCE_S
            while not crew.is_over() and time.monotonic() < deadline:
                for topic, ids in ends.items():  # again, for who subscribes only now
                    ids.append(topic_crew.number(client.xadd(topic, {END_FIELD: "all"})))
                time.sleep(0.05)
            there = {topic: [topic_crew.number(entry_id) for entry_id, _ in client.xrange(topic)] for topic in LONG}
    finally:
        crew.kill_all()
    faults = [fault for life in crew.lives if (fault := life.fault())]
    told = {life.page.stem: topic_crew.account(life.page) for life in crew.lives}
    there[SHORT] = sorted({one for account in told.values() for one in account.wrote[SHORT]} | set(ends[SHORT]))
    for topic in LONG:
        missing = {one for account in told.values() for one in account.wrote[topic]}.difference(there[topic])
        faults += [f"written to {topic} and not there: {sorted(missing)[:5]}"] if missing else []
    for life in crew.lives:
        for topic, ids in there.items():
            told_by = told[life.page.stem]
            faults += topic_crew.faults(life, told_by, topic, ids, is_trimmed=topic == SHORT, kills=crew.kills)
    assert not faults, "\n".join([f"RLITE_SOAK_SEED={SEED}, in {tmp_path}:", *faults[:FAULTS_TOLD]])
    assert sum(map(len, there.values())) > 100 and any(one.got for one in told.values()), f"idle, by seed {SEED}"
