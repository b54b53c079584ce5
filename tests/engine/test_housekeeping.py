"""What happens to keys without anybody asking: in small steps, each with its commit."""

from __future__ import annotations

import logging
from collections.abc import Callable
from itertools import count

import pytest
from recorded_session import House

from rlite_pubsub.engine import housekeeping
from rlite_pubsub.engine.pace import SLICE_S
from rlite_pubsub.engine.topics.readership import GRACE_SECONDS
from rlite_pubsub.keyspace.keyspace import Keyspace
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.errors import StoreHeld
from rlite_pubsub.storage.turn import Turn

KEYS = 2000

pytestmark = pytest.mark.settings(enable_debug_command="yes")


def keyspace_of(house: House) -> Keyspace:
    assert house.engine.keyspace is not None
    return house.engine.keyspace


def fill(house: House, keys: int, **options: int) -> None:
    for number in range(keys):
        keyspace_of(house).put_string(0, b"%d" % number, b"", **options)
    house.engine.commit()


def size(house: House) -> int:
    found = keyspace_of(house).databases.size(0)
    house.engine.commit()
    return found


def expiring(house: House) -> dict[str, int]:
    return {"expires_ms": int(house.clock.now * 1000) + 100}


def test_what_is_over_is_removed_and_counted_though_nobody_looks(house: House) -> None:
    fill(house, 5, **expiring(house))
    house.engine.cron(house.clock.now)
    assert size(house) == 5
    house.clock.now += 1
    house.engine.cron(house.clock.now)
    assert size(house) == 0
    assert b"expired_keys:5\r\n" in house.session().do("INFO", "stats")


def test_a_step_that_takes_long_is_a_spike_of_latency(house: House) -> None:
    house.session().do("CONFIG", "SET", "latency-monitor-threshold", "1")
    fill(house, 5000, **expiring(house))
    house.clock.now += 1
    house.engine.cron(house.clock.now)
    assert size(house) < 5000
    assert b"expire-cycle" in house.session().do("LATENCY", "LATEST")


def test_a_step_ends_when_its_time_is_over_and_the_next_goes_on(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = count()
    monkeypatch.setattr(housekeeping, "thread_time", lambda: next(ticks) * SLICE_S)
    keys = 10 * housekeeping.KEYS_PER_STEP
    fill(house, keys, **expiring(house))
    house.clock.now += 1
    left = [keys]
    while left[-1]:
        house.clock.now += 0.002
        house.engine.cron(house.clock.now)
        left.append(size(house))
        assert 0 < left[-2] - left[-1] < keys
    assert len(left) >= 3


def over(house: House) -> None:
    fill(house, KEYS, **expiring(house))
    house.clock.now += 1


def over_fields(house: House) -> None:
    """In one hash."""
    session = house.session()
    session.do("HSET", "h", *[word for number in range(KEYS) for word in (f"f{number}", "v")])
    names = [f"f{number}" for number in range(KEYS)]
    session.do("HPEXPIRE", "h", "100", "FIELDS", str(KEYS), *names)
    house.clock.now += 1


def over_hashes(house: House) -> None:
    session = house.session()
    for number in range(KEYS // 10):
        session.do("HSET", f"h{number}", "f", "v")
        session.do("HPEXPIRE", f"h{number}", "100", "FIELDS", "1", "f")
    house.clock.now += 1


def flushed(house: House) -> None:
    fill(house, KEYS)
    house.session().do("FLUSHALL")


@pytest.mark.parametrize("due", [over, over_fields, over_hashes, flushed])
def test_what_a_step_leaves_is_removed_before_the_next_tenth_of_a_second(
    due: Callable[[House], None], house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = count()
    monkeypatch.setattr(housekeeping, "thread_time", lambda: next(ticks) * SLICE_S / 2)
    due(house)
    house.engine.cron(house.clock.now)
    assert left_in(house)
    slices = 0
    while left_in(house):
        slices += 1
        assert slices < 1000, "it waits for the next step"
        house.timers.advance(0.001)
    assert slices


def left_in(house: House) -> int:
    return house.data.read(lambda txn: sum(key[:1] in (b"K", b"H") for key, _ in txn.cursor()))


def test_what_was_flushed_is_swept(house: House) -> None:
    fill(house, 100)
    house.session().do("FLUSHALL")
    house.engine.cron(house.clock.now)
    assert house.data.read(lambda txn: [key for key, _ in txn.cursor() if key[:1] in (b"K", b"X")]) == []


def test_nothing_expires_by_itself_while_that_is_switched_off(house: House) -> None:
    session = house.session()
    session.do("DEBUG", "SET-ACTIVE-EXPIRE", "0")
    fill(house, 1, **expiring(house))
    house.clock.now += 1
    house.engine.cron(house.clock.now)
    assert size(house) == 1
    session.do("DEBUG", "SET-ACTIVE-EXPIRE", "1")
    house.engine.cron(house.clock.now)
    assert size(house) == 0


def test_nothing_expires_while_writes_are_paused_but_it_is_not_shown(house: House) -> None:
    session = house.session()
    fill(house, 1, **expiring(house))
    session.do("CLIENT", "PAUSE", "10000", "WRITE")
    house.clock.now += 1
    house.engine.cron(house.clock.now)
    assert session.do("GET", "0") == b"$-1\r\n"
    assert size(house) == 1
    session.do("CLIENT", "UNPAUSE")
    house.engine.cron(house.clock.now)
    assert size(house) == 0


@pytest.mark.settings(retain="kept 1 entries")
@pytest.mark.parametrize(
    ("requests", "is_done"),
    [
        ("SET short lived PX 100", "DBSIZE :0"),
        ("XADD news#ephemeral * f v", "DBSIZE :0"),
        ("PUBLISH kept 1, PUBLISH kept 2, PUBLISH kept 3", "XLEN kept :1"),
        ("TOPIC.DEFER later {soon_ms} f v", "XLEN later :1"),
    ],
)
def test_what_nobody_asked_for_is_put_off_without_a_word_while_another_process_writes(
    requests: str, is_done: str, house: House, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    session = house.session()
    for request in requests.format(soon_ms=int(house.clock.now * 1000) + 100).split(", "):
        assert not session.do(*request.split()).startswith(b"-")
    begin = house.data.begin
    refused = 0

    def held(turn: Turn, *, write: bool) -> Txn:
        nonlocal refused
        if write:
            refused += 1
            raise StoreHeld(house.data.path, lambda: "another process writes")
        return begin(turn, write=write)

    def look() -> None:
        for _ in range(10):
            house.engine.cron(house.clock.now)
            house.engine.commit()

    if "#ephemeral" in requests:
        look()  # from here on nobody has read it
    house.clock.now += GRACE_SECONDS + 1
    with monkeypatch.context() as patches, caplog.at_level(logging.WARNING, "rlite_pubsub"):
        patches.setattr(house.data, "begin", held)
        look()
    assert refused
    assert not caplog.records
    assert house.engine.key_commit.failure is None
    look()
    *asked, answer = is_done.split()
    assert session.do(*asked) == answer.encode() + b"\r\n"
