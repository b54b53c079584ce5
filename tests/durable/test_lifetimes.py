"""A durable subscriber that has been away for too long, and comes back while that is being noticed."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlite_pubsub.durable.lifetimes import Lifetimes, Wanted
from rlite_pubsub.durable.mailbox import DurablePost
from rlite_pubsub.pubsub.neighbours import Neighbours
from rlite_pubsub.pubsub.post import Post
from rlite_pubsub.storage.names import durables, receivers, subscriptions
from rlite_pubsub.storage.names.durables import Durable
from rlite_pubsub.storage.store import Store

NAMES = [("channels", b"%d" % number) for number in range(3)]


class Clock:
    """Stands still until it is set."""

    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def lifetimes(store: Store, clock: Clock) -> Lifetimes:
    mail = DurablePost(store)
    return Lifetimes(store, Post(store, Neighbours(store, lambda: None, mail.routes), mail), mail, clock)


def hold(store: Store, durable: Durable, names: list[tuple[str, bytes]]) -> None:
    store.data.write(lambda txn: receivers.set_counts(txn, durable.id, dict.fromkeys(names, 1)))


def test_what_it_holds_since_it_came_back_is_not_dropped_with_what_has_expired(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store.open(str(tmp_path)) as store:
        clock = Clock()
        here, there = (lifetimes(store, clock) for _ in range(2))
        durable, _ = here.find_or_make(b"d", Wanted(ttl_s=10))
        hold(store, durable, NAMES)
        clock.now_s += 11
        came_back: list[Durable] = []
        empty = here._empty

        def empty_what_came_back_meanwhile(expired: Durable) -> int:
            found, _ = there.find_or_make(b"d", Wanted())
            hold(store, found, NAMES[:1])
            came_back.append(found)
            return empty(expired)

        monkeypatch.setattr(here, "_empty", empty_what_came_back_meanwhile)
        here.sweep(int(clock.now_s * 1000))
        assert [one.id for one in came_back] == [durable.id]
        assert list(store.data.read(lambda txn: subscriptions.held(txn, durable.id))) == [
            (receivers.CHANNELS.byte, b"0")
        ]
        recorded = store.data.read(lambda txn: durables.get(txn, b"d"))
        assert recorded is not None
        assert not recorded.is_expired
