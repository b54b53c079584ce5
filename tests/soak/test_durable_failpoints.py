"""A process that is killed between any two steps of a durable subscriber's life: what was kept for it is kept still,
what it lost is told, and the next one who comes by that name goes on; once it is deleted, nothing of it is left."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest
from patience import PATIENCE_S

import rlite_pubsub
from tests.faults.conftest import start
from tests.faults.program import Start
from tests.faults.test_clock import HOUR, Clock
from tests.soak.left import left_in

__all__ = ["start"]

ROOT = Path(__file__).parents[2]
MANY = 3000
"""Names: more than go in one slice."""
LIVES = """
client = rlite_pubsub.Redis(folder, client_name="durable:d")
pubsub = client.pubsub()
pubsub.subscribe("news", "more")
pubsub.unsubscribe("more")
pubsub.close()
"""
DELETES = 'rlite_pubsub.Redis(folder).execute_command("SUBSCRIBER.DELETE", "d")'
SEES_TIME_PASS = """
client = rlite_pubsub.Redis(folder)
while True:
    client.ping()
"""
STEPS = ["durable-made", "durable-attached", "durable-held", "durable-detached"]


def reader_of(folder: Path) -> Any:
    return rlite_pubsub.Redis(folder, client_name="durable:d")


def make(folder: Path, *, ttl_s: int = 0, names: int = 0) -> None:
    """One that holds `news`, and so many other names, and is away."""
    with reader_of(folder) as client, client.pubsub() as pubsub:
        pubsub.execute_command("SUBSCRIBER.ATTACH", "d", "TTL", ttl_s)
        pubsub.parse_response()
        pubsub.subscribe("news", *range(names))
        assert pubsub.get_message(timeout=PATIENCE_S)["data"] == 1


def publish(folder: Path, *messages: object) -> None:
    with rlite_pubsub.Redis(folder) as client, client.pipeline(transaction=False) as pipe:
        for message in messages:
            pipe.publish("news", message)
        pipe.execute()


def heard(folder: Path, count: int) -> list[tuple[str, Any]]:
    """What the next one who comes by that name is told first, its own live message included."""
    found: list[tuple[str, Any]] = []
    deadline = time.monotonic() + PATIENCE_S / 2
    with reader_of(folder) as client, client.pubsub() as pubsub:  # redis-py ignores a gap along with confirmations
        pubsub.subscribe("news")
        publish(folder, "live")
        while len(found) < count:
            message = pubsub.get_message(timeout=PATIENCE_S)
            if message is not None and message["type"] != "subscribe":
                found.append((message["type"], message["data"]))
            if message is None:
                assert time.monotonic() < deadline, f"only {found} came"
        assert pubsub.get_message() is None
    return found


def delete(folder: Path) -> None:
    with rlite_pubsub.Redis(folder) as client:
        client.execute_command("SUBSCRIBER.DELETE", "d")


@pytest.mark.parametrize("step", STEPS)
def test_one_killed_as_it_comes_or_goes_misses_nothing_and_is_succeeded(folder: Path, start: Start, step: str) -> None:
    make(folder)
    publish(folder, "kept", "too")
    killed = start(LIVES, environment={"RLITE_FAILPOINT": step})
    assert killed.end() == -9
    publish(folder, "while it was dead")
    expected = [b"kept", b"too", b"while it was dead", b"live"]
    assert heard(folder, 4) == [("message", data) for data in expected]
    delete(folder)
    assert left_in(folder) == []


@pytest.mark.parametrize("step", STEPS)
def test_one_killed_at_its_first_coming_can_come_again_or_be_deleted(folder: Path, start: Start, step: str) -> None:
    killed = start(LIVES, environment={"RLITE_FAILPOINT": step})
    assert killed.end() == -9
    assert heard(folder, 1) == [("message", b"live")]
    delete(folder)
    assert left_in(folder) == []


@pytest.mark.parametrize("step", ["delete-slice", "durable-deleted"])
def test_one_whose_deletion_was_killed_is_deleted_by_the_next_try(folder: Path, start: Start, step: str) -> None:
    make(folder, names=MANY)
    publish(folder, "never heard")
    killed = start(DELETES, environment={"RLITE_FAILPOINT": step})
    assert killed.end() == -9
    delete(folder)
    assert left_in(folder) == []
    assert heard(folder, 1) == [("message", b"live")]


@pytest.mark.parametrize("step", ["expiry-marked", "expiry-slice"])
def test_one_whose_expiry_was_killed_is_told_all_that_it_lost(
    folder: Path, start: Start, tmp_path: Path, step: str
) -> None:
    clock = Clock(tmp_path / "clock")
    make(folder, ttl_s=600, names=MANY)
    publish(folder, "never", "heard", "again")
    clock.jump(HOUR / 4)
    killed = start(SEES_TIME_PASS, environment={"RLITE_FAILPOINT": step, **clock.environment})
    assert killed.end() == -9
    assert heard(folder, 2) == [("gap", 3), ("message", b"live")]
    delete(folder)
    assert left_in(folder) == []


@pytest.mark.parametrize("step", ["durable-committed", "publish-committed", "publish-rung"])
def test_what_a_killed_publisher_had_committed_is_there_once(folder: Path, start: Start, step: str) -> None:
    make(folder)
    with rlite_pubsub.Redis(folder) as neighbour, neighbour.pubsub() as pubsub:
        pubsub.subscribe("news")
        killed = start(
            'rlite_pubsub.Redis(folder).publish("news", "committed")', environment={"RLITE_FAILPOINT": step}
        )
        assert killed.end() == -9
    assert heard(folder, 2) == [("message", b"committed"), ("message", b"live")]
    delete(folder)
    assert left_in(folder) == []


def test_every_failpoint_of_subscribers_and_publishers_is_a_step_of_some_test() -> None:
    package = Path(rlite_pubsub.__file__).parent
    source = "".join(path.read_text() for room in ("pubsub", "durable") for path in (package / room).rglob("*.py"))
    tests = "".join(path.read_text() for path in (ROOT / "tests").rglob("*.py"))
    points = set(re.findall(r'failpoint\("([a-z-]+)"\)', source))
    assert len(points) > 15
    assert {point for point in points if f'"{point}"' not in tests} == set()
