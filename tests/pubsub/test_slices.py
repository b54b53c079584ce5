"""A mailbox may be larger than memory, and other sessions do not wait until it is empty."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from listeners import Listener

from rlite_pubsub.durable.mailbox import DurablePost
from rlite_pubsub.engine.turn import end_turn
from rlite_pubsub.pubsub.hub import Hub
from rlite_pubsub.pubsub.kinds import CHANNELS
from rlite_pubsub.pubsub.membership import Membership
from rlite_pubsub.pubsub.publish import publish
from rlite_pubsub.storage.mail import mailboxes
from rlite_pubsub.storage.store import Store

MESSAGES = 50
SLICE_BYTES = 1000


class Process:
    """A subscriber with its hub, as one process has them."""

    def __init__(self, store: Store) -> None:
        self.membership = Membership(store, DurablePost(store), lambda: None)
        self.hub = Hub(self.membership.record, self.membership.neighbours, self.membership.post)

    @property
    def id(self) -> int:
        assert self.membership.id is not None
        return self.membership.id

    def is_rung(self) -> bool:
        assert self.membership.bell is not None
        return self.membership.bell.wait(0)

    def look(self) -> None:
        assert self.membership.bell is not None
        self.membership.bell.clear()
        self.hub.receive(self.id)
        end_turn(self.hub.agenda)


@pytest.fixture
def here(store: Store) -> Iterator[Process]:
    process = Process(store)
    process.membership.post._slice_bytes = SLICE_BYTES
    yield process
    process.membership.leave()


@pytest.fixture
def reader(store: Store, here: Process) -> Listener:
    """It has subscribed, and others have published more than a slice since."""
    reader = Listener(here.hub).take(CHANNELS, b"news")
    end_turn(here.hub.agenda)
    there = Process(store)
    there.hub.look_around()
    for number in range(MESSAGES):
        publish(there.hub, CHANNELS, b"news", [b"100\r\n%0100d" % number])
        end_turn(there.hub.agenda)
    there.membership.leave()
    return reader


def numbers(said: bytes) -> list[int]:
    return [int(line) for line in said.split(b"\r\n") if len(line) == 100]


def test_one_turn_hands_on_one_slice_and_asks_for_another_turn(here: Process, reader: Listener) -> None:
    here.look()
    assert 0 < len(numbers(b"".join(reader.flushes))) <= SLICE_BYTES // 100
    assert here.is_rung()


def test_turns_that_the_bell_asks_for_empty_the_mailbox_in_order(store: Store, here: Process, reader: Listener) -> None:
    turns = 0
    while here.is_rung():
        here.look()
        turns += 1
    assert numbers(b"".join(reader.flushes)) == list(range(MESSAGES))
    assert turns >= MESSAGES * 100 // SLICE_BYTES
    assert store.live.read(lambda txn: mailboxes.owners(txn)) == []


def test_names_change_only_after_all_that_came_before(here: Process, reader: Listener) -> None:
    here.look()
    late = Listener(here.hub).take(CHANNELS, b"news")
    end_turn(here.hub.agenda)
    assert numbers(b"".join(reader.flushes)) == list(range(MESSAGES))
    assert late.flushes == []


def test_empty_mailbox_needs_no_other_turn(here: Process, reader: Listener) -> None:
    while here.is_rung():
        here.look()
    assert not here.membership.post.may_have_come
    here.look()
    assert not here.is_rung()
