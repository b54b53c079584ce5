"""Warnings that come with time: of a lag that only grows, and of a peer that accepts nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from recorded_session import House, RecordedSession

from rlite_pubsub.engine.stats.connections import SlowestConnections
from rlite_pubsub.engine.stats.footprint import Traffic
from rlite_pubsub.engine.stats.warnings import GROWTH_S, LEAST_GROWTH, STUCK_BYTES, STUCK_S, Warnings
from rlite_pubsub.storage.store import Store


class Peer(RecordedSession):
    """A connection for which the kernel holds as much as it is told."""

    unsent = 0
    acknowledged = 0

    def unsent_bytes(self) -> int:
        return self.unsent

    def traffic(self) -> Traffic | None:
        return Traffic(0, self.acknowledged)


@pytest.fixture
def warnings(house: House, tmp_path: Path) -> Iterator[Warnings]:
    engine = house.engine
    with Store.open(tmp_path / "store") as store:
        yield Warnings(
            engine.settings,
            store,
            engine.keyspace,
            engine.writer_waits,
            engine.sessions,
            lambda: None,
            lambda: int(house.clock() * 1000),
            SlowestConnections(engine.sessions, store, lambda: None, house.clock).stuck,
            house.clock,
        )


def told(warnings: Warnings) -> list[tuple[str, tuple[bytes, ...], str]]:
    """Those of groups and connections; this machine may have others."""
    codes = ("group_lagging", "connection_slow")
    return [(each.code, each.subject, each.text) for each in warnings.all([]) if each.code in codes]


def append(session: RecordedSession, count: int) -> None:
    for _ in range(count):
        session.do("XADD", "orders", "*", "a", "1")


def test_a_lag_that_has_only_grown_for_two_minutes_is_a_warning_before_it_is_large(
    house: House, session: RecordedSession, warnings: Warnings
) -> None:
    session.do("XGROUP", "CREATE", "orders", "billing", "$", "MKSTREAM")
    append(session, 5)
    assert told(warnings) == []
    append(session, LEAST_GROWTH)
    house.clock.now += GROWTH_S - 1
    assert told(warnings) == [], "it may be a burst"
    append(session, 1)
    house.clock.now += 1
    text = "1,006 entries are yet to be read, 1,001 more than 2 min ago"
    assert told(warnings) == [("group_lagging", (b"orders", b"billing"), text)]
    session.do("XREADGROUP", "GROUP", "billing", "c", "COUNT", "1000", "STREAMS", "orders", ">")
    house.clock.now += 1
    assert told(warnings) == [], "it has become smaller"
    append(session, LEAST_GROWTH)
    house.clock.now += GROWTH_S - 1
    assert told(warnings) == [], "counted from then on"


def test_a_lag_that_has_hardly_grown_in_a_long_time_is_no_warning(
    house: House, session: RecordedSession, warnings: Warnings
) -> None:
    session.do("XGROUP", "CREATE", "orders", "billing", "$", "MKSTREAM")
    append(session, 1)
    assert told(warnings) == []
    append(session, LEAST_GROWTH - 1)
    house.clock.now += 100 * GROWTH_S
    assert told(warnings) == []


def test_a_peer_that_has_accepted_nothing_for_a_minute_is_a_warning(house: House, warnings: Warnings) -> None:
    peer = Peer(house.engine)
    peer.do("SUBSCRIBE", "news")
    peer.unsent = 100_000
    assert told(warnings) == []
    house.clock.now += STUCK_S - 1
    assert told(warnings) == []
    house.clock.now += 1
    (warning,) = told(warnings)
    assert warning[:2] == ("connection_slow", (b"%d" % peer.id, b""))
    assert warning[2].endswith("has accepted nothing for 60 s; 100 kB wait for it in the kernel")
    peer.acknowledged += 1
    assert told(warnings) == [], "it reads, if slowly"
    house.clock.now += STUCK_S
    assert len(told(warnings)) == 1
    peer.unsent = 0
    assert told(warnings) == []


@pytest.mark.parametrize("unsent", [1, STUCK_BYTES - 1])
def test_a_peer_for_which_little_waits_is_no_warning(house: House, warnings: Warnings, unsent: int) -> None:
    peer = Peer(house.engine)
    peer.do("SUBSCRIBE", "news")
    peer.unsent = unsent
    for _ in range(3):
        assert told(warnings) == []
        house.clock.now += STUCK_S


def test_a_peer_that_asked_for_what_waits_is_no_warning(house: House, warnings: Warnings) -> None:
    """It reads when it wants to: nothing more is sent to it meanwhile."""
    peer = Peer(house.engine)
    peer.do("PING")
    peer.unsent = 1 << 20
    for _ in range(3):
        assert told(warnings) == []
        house.clock.now += STUCK_S
