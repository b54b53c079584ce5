"""What goes from process to process is what was published, whatever it looks like."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlite_pubsub.pubsub.kinds import CHANNELS
from rlite_pubsub.pubsub.membership import Membership
from rlite_pubsub.pubsub.post import tails_of
from rlite_pubsub.pubsub.route import Address
from rlite_pubsub.pubsub.subscriber import Subscriber
from rlite_pubsub.storage.mail import letters, mailboxes
from rlite_pubsub.storage.store import Store


@pytest.mark.parametrize(
    "payloads",
    [
        [b"one"],
        [b"x" * 20, b"y" * 20, b"z" * 20],
        [b"x" * 20, b"y" * 20, b"z" * 20, b"shorter"],
        [b"x" * 20, b"y" * 20, b"z" * 20, b"longer" * 10, b""],
        [b"ends\r\n$", b"x"],
        [b"has a header\r\n$3\r\nabc", b"x"],
        [b"\r\n$1\r\nx\r\n"] * 3,
        [b"x" * 600, b"\r\n$600\r\n", b"x" * 600],
    ],
)
def test_a_run_is_read_as_it_was_packed(payloads: list[bytes]) -> None:
    tails = [b"%d\r\n%b" % (len(payload), payload) for payload in payloads]
    run = letters.unpack(letters.pack(0, b"news", tails))
    assert letters.tails(run) == tails
    assert tails_of(run) == tails


def test_a_run_of_one_is_packed_as_any_run_is() -> None:
    payload = b"has a header\r\n$3\r\nabc"
    assert letters.pack_one(2, b"news", payload) == letters.pack(2, b"news", [b"%d\r\n%b" % (len(payload), payload)])


def test_message_on_a_route_that_is_out_of_date_goes_to_those_who_are_there_at_the_commit(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "store")
    publisher = Membership(store, lambda: None)
    gone, there = Subscriber.join(store, "embedded"), Subscriber.join(store, "embedded")
    gone.record({(CHANNELS.database, b"news"): 1})
    publisher.neighbours.look()
    address = Address(CHANNELS, b"news", (gone.id,))
    gone.leave()
    there.record({(CHANNELS.database, b"news"): 1})
    publisher.post.send_one(address, b"hello")
    with_letters = store.live.read(mailboxes.owners)
    runs, has_more = publisher.post.receive(there.id)
    assert (with_letters, [tails_of(run) for run in runs], has_more) == ([there.id], [[b"5\r\nhello"]], False)
    there.leave()
    publisher.leave()
    store.close()
