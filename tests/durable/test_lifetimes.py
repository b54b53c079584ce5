"""A durable subscriber that has been away for too long, and comes back while that is being noticed."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from rlite_pubsub.durable.lifetimes import LOOK_MS, Lifetimes, TooManyDurables, Wanted
from rlite_pubsub.durable.mailbox import DurablePost
from rlite_pubsub.durable.routes import DurableRoutes
from rlite_pubsub.pubsub.neighbours import Neighbours
from rlite_pubsub.pubsub.post import Post
from rlite_pubsub.storage.names import durables, receivers, subscriptions
from rlite_pubsub.storage.names.durables import Durable
from rlite_pubsub.storage.names.version import routes_version
from rlite_pubsub.storage.store import Store

NAMES = [("channels", b"%d" % number) for number in range(3)]


class Clock:
    """Stands still until it is set."""

    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def lifetimes(store: Store, clock: Clock, mail: DurablePost | None = None) -> Lifetimes:
    mail = mail or DurablePost(store)
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


def known(routes: DurableRoutes) -> tuple[int, dict[int, tuple[int, int]]]:
    return routes.known, {id: (one.max_bytes, one.max_messages) for id, one in routes.limited.items()}


def test_what_a_process_makes_and_deletes_it_knows_without_a_look_at_all_the_others(tmp_path: Path) -> None:
    """Or to make one would cost as much as there are."""
    dice = random.Random(24)
    with Store.open(str(tmp_path)) as store:
        mail = DurablePost(store)
        here = lifetimes(store, Clock(), mail)
        there = lifetimes(store, Clock())
        mail.routes.refresh()
        for _ in range(300):
            name = b"%d" % dice.randrange(40)
            at = dice.choices([here, there], [9, 1])[0]
            if dice.random() < 0.7:
                at.find_or_make(name, Wanted(None, dice.choice([None, 0, 1000]), dice.choice([0, 5])))
            else:
                at.delete(name)
            assert at is there or mail.routes.version == store.data.read(routes_version)
            mail.routes.refresh()
            fresh = DurableRoutes(store)
            fresh.refresh()
            assert known(mail.routes) == known(fresh)


def test_there_are_no_more_than_the_setting_says_and_those_there_are_come_back(tmp_path: Path) -> None:
    with Store.open(str(tmp_path)) as store:
        here, there = (lifetimes(store, Clock()) for _ in range(2))
        for each in (here, there):
            each.set_defaults(0, 0, 3)
        for name, at in ((b"a", here), (b"b", there), (b"c", here)):
            at.find_or_make(name, Wanted())
        for at in (here, there):
            with pytest.raises(TooManyDurables, match="3 durable subscribers already .*SUBSCRIBER.DELETE"):
                at.find_or_make(b"d", Wanted())
            at.find_or_make(b"a", Wanted())
        there.delete(b"a")
        here.find_or_make(b"d", Wanted())
        with pytest.raises(TooManyDurables):
            here.find_or_make(b"e", Wanted())
        here.set_defaults(0, 0, 0)
        here.find_or_make(b"e", Wanted())


def test_one_that_another_process_has_made_expires_as_well(tmp_path: Path) -> None:
    with Store.open(str(tmp_path)) as store:
        clock = Clock()
        here, there = (lifetimes(store, clock) for _ in range(2))
        here.find_or_make(b"long", Wanted(ttl_s=1000))
        here.sweep(int(clock.now_s * 1000))
        there.find_or_make(b"short", Wanted(ttl_s=1))
        clock.now_s += LOOK_MS / 1000 + 1
        here.sweep(int(clock.now_s * 1000))
        assert here.expired == 1
