"""Switchboards of several stores, linked at random: what holds for each message, whatever takes how long."""

from __future__ import annotations

import random
from collections import deque
from typing import Any

import pytest

from rlite_pubsub.links.envelope import Envelope, pack, run_of, unpack
from rlite_pubsub.links.switchboard import Switchboard
from rlite_pubsub.links.wishes import Wishes

CHANNEL = 0


class Here:
    """A store's own port: what is handed to its subscribers."""

    place = b"here"
    is_plain = False

    def __init__(self) -> None:
        self.heard: list[tuple[bytes, bytes]] = []

    def sends(self, kind: int, name: bytes) -> bool:
        return True

    def hears(self, kind: int, name: bytes) -> bool:
        return True

    def deliver(self, messages: Envelope) -> None:
        payloads = [tail.partition(b"\r\n")[2] for tail in messages.tails]
        assert len(payloads) == messages.length
        self.heard += [(messages.channel, payload) for payload in payloads]


class Pipe:
    """One end of a link between two stores: what goes in comes out at the other end, in order, when it does."""

    is_plain = False

    def __init__(self, other: Switchboard) -> None:
        self.place = b"peer:%d" % other.origin
        self.under_way: deque[bytes] = deque()
        self.other = other
        self.far_end: Pipe

    def sends(self, kind: int, name: bytes) -> bool:
        return True

    def hears(self, kind: int, name: bytes) -> bool:
        return False

    def deliver(self, messages: Envelope) -> None:
        self.under_way.append(pack([messages]))

    def move(self) -> None:
        for messages in unpack(self.under_way.popleft()):
            self.other.take(self.far_end, messages)


def link(one: Switchboard, two: Switchboard) -> list[Pipe]:
    there, back = Pipe(two), Pipe(one)
    there.far_end, back.far_end = back, there
    one.join(there)
    two.join(back)
    return [there, back]


def enter(store: Switchboard, port: Any, channel: bytes, *payloads: bytes) -> None:
    """Somebody publishes these, one behind another."""
    body = run_of([b"%d\r\n%b" % (len(payload), payload) for payload in payloads])
    store.enter(port, CHANNEL, channel, len(payloads), body)


def run(stores: list[Switchboard], pipes: list[Pipe], rounds: int, order: random.Random) -> list[list[bytes]]:
    said: list[list[bytes]] = [[] for _ in stores]
    heres = [store.ports[0] for store in stores]
    for number in range(rounds):
        which = order.randrange(len(stores))
        words = [b"%d:%d:%d" % (which, number, place) for place in range(order.randint(1, 3))]
        said[which] += words
        enter(stores[which], heres[which], b"news", *words)
        for pipe in order.choices(pipes, k=order.randrange(6)):
            if pipe.under_way:
                pipe.move()
    steps = 0
    while waiting := [pipe for pipe in pipes if pipe.under_way]:
        order.choice(waiting).move()
        steps += 1
        assert steps < rounds * 100, "messages go round"
    return said


def made(count: int) -> tuple[list[Switchboard], list[Here]]:
    stores = [Switchboard(1000 + number) for number in range(count)]
    heres = [Here() for _ in stores]
    for store, here in zip(stores, heres, strict=True):
        store.join(here)
    return stores, heres


def of(heard: list[tuple[bytes, bytes]], store: int) -> list[bytes]:
    return [payload for _, payload in heard if payload.startswith(b"%d:" % store)]


@pytest.mark.parametrize("seed", range(40))
def test_in_any_net_no_message_comes_twice_or_comes_back_and_order_stays(seed: int) -> None:
    order = random.Random(seed)
    stores, heres = made(order.randint(2, 6))
    pipes = [
        pipe
        for _ in range(order.randint(len(stores), 3 * len(stores)))
        for pipe in link(*order.sample(stores, 2))
    ]
    said = run(stores, pipes, 200, order)
    for number, here in enumerate(heres):
        assert of(here.heard, number) == [], "what a store said came back to it"
        for other, words in enumerate(said):
            found = of(here.heard, other)
            assert len(found) == len(set(found))
            assert found == [word for word in words if word in found], "the order has changed"


@pytest.mark.parametrize("seed", range(20))
def test_in_a_tree_nothing_is_lost(seed: int) -> None:
    order = random.Random(seed)
    stores, heres = made(order.randint(2, 6))
    pipes = [
        pipe for number in range(1, len(stores)) for pipe in link(stores[number], stores[order.randrange(number)])
    ]
    said = run(stores, pipes, 200, order)
    for number, here in enumerate(heres):
        for other, words in enumerate(said):
            assert of(here.heard, other) == ([] if other == number else words)


def test_two_links_between_the_same_two_stores_bring_each_message_once() -> None:
    stores, heres = made(2)
    pipes = link(*stores) + link(*stores)
    said = run(stores, pipes, 500, random.Random(7))
    assert of(heres[1].heard, 0) == said[0]
    assert of(heres[0].heard, 1) == said[1]


@pytest.mark.sources("lowers a limit that is compiled in")
def test_what_is_too_much_to_be_remembered_is_still_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlite_pubsub.links.switchboard.CHANNELS_KEPT", 4)
    stores, heres = made(3)
    pipes = link(stores[0], stores[1]) + link(stores[1], stores[2]) + link(stores[2], stores[0])
    for number in range(100):
        enter(stores[0], stores[0].ports[0], b"c%d" % number, b"0:%d" % number)
    while waiting := [pipe for pipe in pipes if pipe.under_way]:
        waiting[0].move()
    for here in heres[1:]:
        assert of(here.heard, 0) == [b"0:%d" % number for number in range(100)]


def test_a_name_that_nobody_holds_any_more_is_wanted_by_nobody_in_a_ring() -> None:
    name = (CHANNEL, b"news")
    wishes = [Wishes(number) for number in range(3)]

    def tell_all() -> None:
        for _ in range(6):
            for one in range(3):
                for other in {0, 1, 2} - {one}:
                    told = wishes[one].for_neighbour(other, other)
                    before = wishes[other].of(one).keys()
                    wishes[other].hear(one, told, before - told.keys())

    wishes[0].hold([name])
    tell_all()
    assert name in wishes[1].for_neighbour(2, 2)
    wishes[0].hold([])
    tell_all()
    assert [name in wish.for_neighbour(9, None) for wish in wishes] == [False] * 3


class Counting(Here):
    """Says how often it was asked."""

    def __init__(self, place: bytes) -> None:
        super().__init__()
        self.place = place
        self.asked = 0

    def sends(self, kind: int, name: bytes) -> bool:
        self.asked += 1
        return True


def test_ports_are_asked_once_for_each_name_until_something_changes() -> None:
    (store,), (here,) = made(1)
    first, second = Counting(b"peer:1"), Counting(b"peer:2")
    store.join(first)
    for number in range(100):
        enter(store, here, b"news", b"%d" % number)
    assert first.asked == 1
    store.join(second)
    enter(store, here, b"news", b"both")
    store.leave(first)
    enter(store, here, b"news", b"second alone")
    assert [payload for _, payload in second.heard] == [b"both", b"second alone"]
    assert len(first.heard) == 101
    assert first.heard[-1] == (b"news", b"both")


def test_of_a_run_that_comes_again_in_part_the_rest_is_handed_on() -> None:
    (store,), (here,) = made(1)
    other = Switchboard(7)
    port = Pipe(other)
    store.join(port)

    def taken(number: int, *payloads: bytes) -> None:
        body = run_of([b"%d\r\n%b" % (len(payload), payload) for payload in payloads])
        store.take(port, Envelope(7, number, len(payloads), 0, CHANNEL, b"", b"news", b"news", body))

    taken(1, b"1", b"2\r\n$1\r\n3", b"4")
    taken(1, b"1", b"2\r\n$1\r\n3", b"4")
    taken(3, b"4", b"5", b"", b"7")
    taken(5, b"", b"7", b"8")
    assert [payload for _, payload in here.heard] == [b"1", b"2\r\n$1\r\n3", b"4", b"5", b"", b"7", b"8"]
    assert store.repeated == 3 + 1 + 2
