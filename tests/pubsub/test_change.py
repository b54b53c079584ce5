"""A change of names in one process while messages of another wait in its mailbox: two hubs on one store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from listeners import Listener, publish

from rlite_pubsub.durable.mailbox import DurablePost
from rlite_pubsub.engine.turn import end_turn
from rlite_pubsub.pubsub.hub import Hub
from rlite_pubsub.pubsub.kinds import CHANNELS, PATTERNS, SHARDS, Kind
from rlite_pubsub.pubsub.membership import Membership
from rlite_pubsub.storage.store import Store


@pytest.fixture
def hubs(store: Store) -> Iterator[tuple[Hub, Hub]]:
    """Of two processes, as it were. Nobody looks into the mailboxes unless told to."""
    memberships = [Membership(store, DurablePost(store), lambda: None) for _ in range(2)]
    here, there = (Hub(one.record, one.neighbours, one.post) for one in memberships)
    yield here, there
    for one in memberships:
        one.leave()


def sent(hub: Hub, kind: Kind, name: bytes, payload: bytes) -> int:
    hub.look_around()
    route = hub.route(kind, name)
    if route.address is None:
        return publish(hub, name, payload, kind)
    publish(hub, name, payload, kind)
    end_turn(hub.agenda)
    return route.receivers


@pytest.mark.parametrize(
    ("held", "kind", "name"), [(CHANNELS, CHANNELS, b"news"), (PATTERNS, CHANNELS, b"n*"), (SHARDS, SHARDS, b"news")]
)
def test_message_published_before_an_unsubscribe_is_not_lost(
    hubs: tuple[Hub, Hub], held: Kind, kind: Kind, name: bytes
) -> None:
    here, there = hubs
    reader = Listener(here).take(held, name)
    end_turn(here.agenda)
    assert sent(there, kind, b"news", b"hello") == 1

    assert here.unsubscribe(reader, held, name)

    assert b"hello" in reader.heard()
    assert sent(there, kind, b"news", b"too late") == 0


def test_message_published_before_a_subscribe_goes_only_to_who_held_the_name(hubs: tuple[Hub, Hub]) -> None:
    here, there = hubs
    first = Listener(here).take(CHANNELS, b"news")
    end_turn(here.agenda)
    assert sent(there, CHANNELS, b"news", b"hello") == 1

    second = Listener(here).take(CHANNELS, b"news")

    assert b"hello" in first.heard()
    assert second.heard() == b""


def test_pattern_confirmed_while_we_subscribe_is_seen(
    hubs: tuple[Hub, Hub], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = hubs
    Listener(here).take(CHANNELS, b"here")
    Listener(there).take(CHANNELS, b"there")
    end_turn(here.agenda)
    end_turn(there.agenda)
    here.look_around()
    Listener(there).take(CHANNELS, b"a reason to look")
    end_turn(there.agenda)
    with Store.open(tmp_path) as store:
        announced: list[tuple[int, bool]] = []
        with monkeypatch.context() as patch:
            patch.setattr(store.routes, "announce", lambda *change: announced.append(change))
            Listener(there).take(PATTERNS, b"n*")
            end_turn(there.agenda)  # committed, and not announced yet
        here.look_around()
        for version, patterns in announced:
            store.routes.announce(version, patterns)
    Listener(here).take(CHANNELS, b"more")
    end_turn(here.agenda)  # ours is announced before we have looked at theirs

    assert sent(here, CHANNELS, b"news", b"hello") == 1


def test_session_that_is_gone_takes_nothing_of_the_others(hubs: tuple[Hub, Hub]) -> None:
    here, there = hubs
    gone, stays = Listener(here).take(CHANNELS, b"news"), Listener(here).take(CHANNELS, b"news")
    end_turn(here.agenda)
    assert sent(there, CHANNELS, b"news", b"hello") == 2
    here.forget(gone)
    own = here.neighbours.own if here.neighbours else None
    assert own is not None
    here.receive(own)
    assert b"hello" in stays.heard()
