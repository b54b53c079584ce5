"""The hub: order, runs, the turn's end, and what a failed commit takes back."""

from __future__ import annotations

from pathlib import Path

import pytest
from listeners import Listener, Records, publish

from rlite_pubsub.durable.mailbox import DurablePost
from rlite_pubsub.engine.turn import end_turn
from rlite_pubsub.protocol.encoder import encode
from rlite_pubsub.protocol.replies import Push
from rlite_pubsub.pubsub.hub import Hub
from rlite_pubsub.pubsub.kinds import CHANNELS, KINDS, PATTERNS, SHARDS
from rlite_pubsub.pubsub.membership import Membership
from rlite_pubsub.pubsub.route import Address
from rlite_pubsub.storage.errors import StoreFull
from rlite_pubsub.storage.names import receivers
from rlite_pubsub.storage.store import Store


def house() -> tuple[Hub, Records]:
    records = Records()
    return Hub(records), records


class Broken(Listener):
    """Something of ours breaks it when it is written to."""

    is_gone = False

    def flush(self) -> None:
        raise RuntimeError("it breaks")

    def abort(self) -> None:
        self.is_gone = True


def message(*words: bytes, protocol: int = 2) -> bytes:
    return encode(Push(list(words)), protocol)


# -- who receives what


def test_message_goes_to_the_holders_of_its_name_and_kind_only() -> None:
    hub, _ = house()
    channel, shard, other = Listener(hub), Listener(hub), Listener(hub)
    channel.take(CHANNELS, b"a")
    shard.take(SHARDS, b"a")
    other.take(CHANNELS, b"b")
    assert publish(hub, b"a", b"x") == 1
    assert publish(hub, b"a", b"y", SHARDS) == 1
    assert publish(hub, b"c", b"z") == 0
    assert channel.heard() == message(b"message", b"a", b"x")
    assert shard.heard() == message(b"smessage", b"a", b"y")
    assert other.heard() == b""


def test_session_with_a_channel_and_patterns_hears_each_message_once_for_each_in_redis_order() -> None:
    hub, _ = house()
    session = Listener(hub).take(PATTERNS, b"n*", b"ne?s").take(CHANNELS, b"news")
    assert publish(hub, b"news", b"1") == publish(hub, b"news", b"2") == 3
    expected = b""
    for payload in (b"1", b"2"):
        expected += message(b"message", b"news", payload)
        expected += message(b"pmessage", b"n*", b"news", payload)
        expected += message(b"pmessage", b"ne?s", b"news", payload)
    assert session.heard() == expected


def test_each_protocol_hears_in_its_own_form_and_each_form_is_encoded_once() -> None:
    hub, _ = house()
    old = [Listener(hub, 2).take(CHANNELS, b"a") for _ in range(2)]
    new = [Listener(hub, 3).take(CHANNELS, b"a") for _ in range(2)]
    publish(hub, b"a", b"x")
    hub.close_run()
    assert old[0].said == [message(b"message", b"a", b"x", protocol=2)]
    assert new[0].said == [message(b"message", b"a", b"x", protocol=3)]
    assert old[0].said[0] is old[1].said[0]
    assert new[0].said[0] is new[1].said[0]


def test_order_over_interleaved_channels_is_the_order_of_publishing() -> None:
    hub, _ = house()
    both, one = Listener(hub).take(CHANNELS, b"a", b"b"), Listener(hub).take(CHANNELS, b"b")
    for name, payload in ((b"a", b"1"), (b"a", b"2"), (b"b", b"3"), (b"a", b"4"), (b"b", b"5")):
        publish(hub, name, payload)
    assert both.heard() == b"".join(
        message(b"message", name, payload)
        for name, payload in ((b"a", b"1"), (b"a", b"2"), (b"b", b"3"), (b"a", b"4"), (b"b", b"5"))
    )
    assert one.heard() == message(b"message", b"b", b"3") + message(b"message", b"b", b"5")


def test_what_is_said_to_a_session_stands_behind_what_was_published_before() -> None:
    hub, _ = house()
    session = Listener(hub, 3).take(CHANNELS, b"a")
    publish(hub, b"a", b"before")
    session.send(b"+PONG\r\n")
    publish(hub, b"a", b"after")
    before, after = (message(b"message", b"a", payload, protocol=3) for payload in (b"before", b"after"))
    assert session.heard() == before + b"+PONG\r\n" + after


def test_session_that_publishes_to_itself_hears_its_message_before_its_reply() -> None:
    hub, _ = house()
    session = Listener(hub, 3).take(CHANNELS, b"a")
    session.send(b":%d\r\n" % publish(hub, b"a", b"x"))
    assert session.heard() == message(b"message", b"a", b"x", protocol=3) + b":1\r\n"


def test_subscribing_in_the_middle_of_a_run_divides_it() -> None:
    hub, _ = house()
    first, second = Listener(hub).take(CHANNELS, b"a"), Listener(hub)
    publish(hub, b"a", b"1")
    second.take(CHANNELS, b"a")
    publish(hub, b"a", b"2")
    hub.unsubscribe(first, CHANNELS, b"a")
    publish(hub, b"a", b"3")
    assert first.heard() == message(b"message", b"a", b"1") + message(b"message", b"a", b"2")
    assert second.heard() == message(b"message", b"a", b"2") + message(b"message", b"a", b"3")


def test_confirmation_of_the_last_unsubscription_stands_behind_what_was_published_before() -> None:
    hub, _ = house()
    for kind, published in ((CHANNELS, CHANNELS), (PATTERNS, CHANNELS), (SHARDS, SHARDS)):
        session = Listener(hub).take(kind, b"a")
        publish(hub, b"a", b"x", published)
        hub.unsubscribe(session, kind, b"a")
        session.send(b"goodbye")
        assert session.heard().endswith(b"x\r\ngoodbye")


def test_pattern_taken_in_the_middle_of_a_run_divides_it() -> None:
    hub, _ = house()
    session = Listener(hub).take(CHANNELS, b"a")
    publish(hub, b"a", b"1")
    session.take(PATTERNS, b"*")
    publish(hub, b"a", b"2")
    hub.unsubscribe(session, PATTERNS, b"*")
    publish(hub, b"a", b"3")
    assert session.heard() == (
        message(b"message", b"a", b"1")
        + message(b"message", b"a", b"2")
        + message(b"pmessage", b"*", b"a", b"2")
        + message(b"message", b"a", b"3")
    )


def test_protocol_that_changes_in_the_middle_of_a_run_divides_it() -> None:
    hub, _ = house()
    for kind, name in ((CHANNELS, b"a"), (PATTERNS, b"[a]"), (SHARDS, b"a")):
        session = Listener(hub, 2).take(kind, name)
        published = SHARDS if kind is SHARDS else CHANNELS
        publish(hub, b"a", b"1", published)
        hub.protocol_changed(session)
        session.protocol = 3
        publish(hub, b"a", b"2", published)
        words = [b"pmessage", b"[a]", b"a"] if kind is PATTERNS else [kind.message, b"a"]
        assert session.heard() == message(*words, b"1") + message(*words, b"2", protocol=3)
        hub.forget(session)


def test_name_that_somebody_takes_is_not_answered_from_an_older_route() -> None:
    hub, _ = house()
    Listener(hub).take(PATTERNS, b"nothing")
    assert publish(hub, b"a", b"x") == 0
    session = Listener(hub).take(CHANNELS, b"a")
    assert publish(hub, b"a", b"x") == 1
    session.take(PATTERNS, b"a*")
    assert publish(hub, b"a", b"x") == 2
    hub.forget(session)
    assert publish(hub, b"a", b"x") == 0
    assert list(hub.held_everywhere(CHANNELS)) == []
    assert len(hub.patterns) == 1


# -- the turn's end


def test_nothing_is_flushed_before_the_commit() -> None:
    hub, records = house()
    commits: list[int] = []

    class Watching(Listener):
        def flush(self) -> None:
            commits.append(records.commits)
            super().flush()

    Watching(hub).take(CHANNELS, b"a").send(b"confirmed")
    end_turn(hub.agenda)
    assert commits == [1]


def test_records_of_a_turn_are_written_in_one_commit_and_say_what_is() -> None:
    hub, records = house()
    first, second = Listener(hub).take(CHANNELS, b"a", b"b"), Listener(hub).take(CHANNELS, b"a").take(PATTERNS, b"a")
    hub.unsubscribe(first, CHANNELS, b"b")
    end_turn(hub.agenda)
    assert records.commits == 1
    assert records.counts == {("channels", b"a"): 2, ("patterns", b"a"): 1}
    end_turn(hub.agenda)
    assert records.commits == 1, "nothing has changed"
    hub.forget(first)
    hub.forget(second)
    end_turn(hub.agenda)
    assert records.counts == {}


def test_session_that_is_found_gone_at_its_flush_is_committed_in_the_same_turn() -> None:
    hub, records = house()

    class Gone(Listener):
        def flush(self) -> None:
            self.dirty = False
            self.hub.forget(self)

    Gone(hub).take(CHANNELS, b"a")
    end_turn(hub.agenda)
    publish(hub, b"a", b"x")
    end_turn(hub.agenda)
    assert records.counts == {}
    assert publish(hub, b"a", b"x") == 0


def test_everything_said_in_a_turn_is_flushed_once() -> None:
    hub, _ = house()
    session = Listener(hub).take(CHANNELS, b"a", b"b")
    for payload in (b"1", b"2"):
        publish(hub, b"a", payload)
        publish(hub, b"b", payload)
    end_turn(hub.agenda)
    assert len(session.flushes) == 1


# -- a commit that fails


def subscribe_with_takeback(session: Listener, name: bytes) -> None:
    hub = session.hub
    assert hub.subscribe(session, CHANNELS, name)
    confirmation = message(b"subscribe", name)
    session.send(confirmation)

    def take_back(failure: Exception) -> None:
        hub.unsubscribe(session, CHANNELS, name)
        session.said[:] = [b"-refused\r\n" if part is confirmation else part for part in session.said]

    hub.on_failed_commit(session, take_back)


def test_failed_commit_takes_back_what_it_would_have_acknowledged() -> None:
    hub, records = house()
    session = Listener(hub)
    subscribe_with_takeback(session, b"kept")
    kept = session.heard()
    records.fill_up()
    session.send(b"+before\r\n")
    subscribe_with_takeback(session, b"a")
    subscribe_with_takeback(session, b"b")
    session.send(b"+after\r\n")
    assert kept == message(b"subscribe", b"kept")
    assert session.heard() == b"+before\r\n-refused\r\n-refused\r\n+after\r\n"
    assert list(hub.held_everywhere(CHANNELS)) == [b"kept"]
    assert publish(hub, b"a", b"x") == 0
    records.make_room()
    subscribe_with_takeback(session, b"a")
    assert session.heard() == message(b"subscribe", b"a")
    assert records.counts == {("channels", b"kept"): 1, ("channels", b"a"): 1}


def test_committed_subscription_is_not_taken_back_by_a_later_failure() -> None:
    hub, records = house()
    session = Listener(hub)
    subscribe_with_takeback(session, b"a")
    end_turn(hub.agenda)
    records.fill_up()
    Listener(hub).take(CHANNELS, b"other")
    end_turn(hub.agenda)
    assert publish(hub, b"a", b"x") == 1


def test_removal_that_could_not_be_written_is_written_later_and_not_tried_every_turn() -> None:
    hub, records = house()
    session = Listener(hub).take(CHANNELS, b"a").take(PATTERNS, b"b")
    end_turn(hub.agenda)
    attempts: list[object] = []
    records.fill_up()
    hub.forget(session)
    end_turn(hub.agenda)
    failing, hub._records = hub._records, lambda changed: attempts.append(changed)
    for _ in range(10):
        end_turn(hub.agenda)
    assert attempts == []
    hub._records = failing
    hub.settle()
    assert len(records.counts) == 2
    records.make_room()
    hub.settle()
    assert records.counts == {}


def test_removal_that_is_owed_is_written_with_the_next_change() -> None:
    hub, records = house()
    session = Listener(hub).take(CHANNELS, b"a")
    end_turn(hub.agenda)
    records.fill_up()
    hub.forget(session)
    end_turn(hub.agenda)
    records.make_room()
    Listener(hub).take(CHANNELS, b"b")
    end_turn(hub.agenda)
    assert records.counts == {("channels", b"b"): 1}


def test_name_that_is_owed_and_taken_again_is_recorded() -> None:
    hub, records = house()
    session = Listener(hub).take(CHANNELS, b"a")
    end_turn(hub.agenda)
    records.fill_up()
    hub.unsubscribe(session, CHANNELS, b"a")
    end_turn(hub.agenda)
    records.make_room()
    session.take(CHANNELS, b"a")
    end_turn(hub.agenda)
    hub.settle()
    assert records.counts == {("channels", b"a"): 1}


# -- counting


def test_counts_are_of_messages_accepted_copies_and_sessions() -> None:
    hub, _ = house()
    for kind in KINDS:
        assert hub.session_count(kind, b"a") == 0
    Listener(hub).take(CHANNELS, b"a").take(PATTERNS, b"*")
    Listener(hub).take(CHANNELS, b"a")
    publish(hub, b"a", b"x")
    assert hub.delivered == 3
    assert hub.session_count(CHANNELS, b"a") == 2
    assert hub.session_count(PATTERNS, b"*") == 1


def test_taking_or_leaving_a_name_twice_changes_nothing() -> None:
    hub, records = house()
    session = Listener(hub).take(CHANNELS, b"a")
    assert not hub.subscribe(session, CHANNELS, b"a")
    end_turn(hub.agenda)
    assert not hub.unsubscribe(session, CHANNELS, b"b")
    end_turn(hub.agenda)
    assert records.commits == 1
    assert session.name_count == 1


def test_message_that_has_been_taken_is_handed_on_though_the_store_cannot_be_read(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = (Membership(store, DurablePost(store), lambda: None) for _ in range(2))
    hub = Hub(here.record, here.neighbours, here.post, here.agenda)
    session = Listener(hub).take(CHANNELS, b"news")
    end_turn(hub.agenda)
    own = here.join()
    there.record({(CHANNELS.database, b"other"): 1})
    there.post.send_one(Address(CHANNELS, b"news", (own,)), b"hello")
    hub.look_around()
    asked: list[bytes] = []

    def unreadable(txn: object, database: object, name: bytes) -> None:
        asked.append(name)
        raise StoreFull(Path("store"), 1)

    monkeypatch.setattr(receivers, "subscribers", unreadable)
    hub.receive(own)
    end_turn(hub.agenda)

    assert asked == [b"news"], "who else receives it could not be told"
    assert b"".join(session.flushes) == b"*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$5\r\nhello\r\n"


def test_one_that_breaks_when_it_is_written_to_is_closed_and_the_others_are_written_to() -> None:
    hub, _ = house()
    breaks = Broken(hub).take(CHANNELS, b"news")
    hears = Listener(hub).take(CHANNELS, b"news")
    publish(hub, b"news", b"hello")
    end_turn(hub.agenda)
    assert b"".join(hears.flushes) == message(b"message", b"news", b"hello")
    assert isinstance(breaks, Broken) and breaks.is_gone
