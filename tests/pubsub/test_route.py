"""Routes: who is grouped with whom, and what a run looks like on the wire."""

from __future__ import annotations

from pathlib import Path

from listeners import Listener, Records

from rlite_pubsub.protocol.encoder import encode
from rlite_pubsub.protocol.replies import Push
from rlite_pubsub.pubsub.hub import Hub
from rlite_pubsub.pubsub.kinds import CHANNELS, SHARDS, Kind
from rlite_pubsub.pubsub.publish import unsent
from rlite_pubsub.pubsub.route import NOBODY, Address, Audience, Route, build_audiences
from rlite_pubsub.pubsub.session import Session
from rlite_pubsub.storage.errors import PartlySent, StoreHeld


def route_of(name: bytes, kind: Kind, holders: list[Session], matches: list[tuple[bytes, list[Session]]]) -> Route:
    return Route(build_audiences(name, kind, holders, list(matches)))


def sessions(*protocols: int) -> list[Session]:
    hub = Hub(Records())
    return [Listener(hub, protocol) for protocol in protocols]


def run(route: Route, *payloads: bytes) -> dict[int, int]:
    """Close a run of these; what it noted of framing."""
    hub = Hub(Records())
    hub.framing = framing = {}
    hub.join_run(route, [b"%d\r\n%b" % (len(payload), payload) for payload in payloads])
    hub.close_run()
    return framing


def test_sessions_of_the_same_form_are_one_group() -> None:
    first, second, third, fourth = sessions(2, 2, 3, 2)
    route = route_of(b"a", CHANNELS, [first, second, third, fourth], [(b"*", [second]), (b"?", [second, fourth])])
    grouped = [group.sessions for group in route.audiences]
    assert sorted(map(len, grouped)) == [1, 1, 1, 1]
    assert route.receivers == 7
    assert route.reply == b":7\r\n"
    route = route_of(b"a", CHANNELS, [first, second, fourth], [])
    assert [group.sessions for group in route.audiences] == [[first, second, fourth]]


def test_run_of_any_payloads_reads_back_message_by_message() -> None:
    payloads = [b"", b"x", b"\r\n", b"$5\r\nhello\r\n", bytes(range(256)), b"y" * 100_000]
    for protocol in (2, 3):
        (session,) = sessions(protocol)
        run(route_of(b"a b\r\n", CHANNELS, [session], []), *payloads)
        expected = [encode(Push([b"message", b"a b\r\n", payload]), protocol) for payload in payloads]
        assert b"".join(session.said) == b"".join(expected)


def test_patterns_come_behind_the_channel_and_in_their_order_for_each_message() -> None:
    (session,) = sessions(3)
    run(route_of(b"a", CHANNELS, [session], [(b"*", [session]), (b"?", [session])]), b"1", b"2")
    expected = [
        encode(Push([*words, payload]), 3)
        for payload in (b"1", b"2")
        for words in ([b"message", b"a"], [b"pmessage", b"*", b"a"], [b"pmessage", b"?", b"a"])
    ]
    assert b"".join(session.said) == b"".join(expected)


def test_sharded_message_says_so() -> None:
    (session,) = sessions(2)
    run(route_of(b"a", SHARDS, [session], []), b"x")
    assert b"".join(session.said) == encode(Push([b"smessage", b"a", b"x"]), 2)


def test_framing_is_all_that_is_not_payload() -> None:
    first, second = sessions(2, 3)
    route = route_of(b"name", CHANNELS, [first, second], [(b"n*", [second])])
    framing = run(route, b"12345", b"", b"1234567890")
    assert framing[id(first.said[0])] == len(first.said[0]) - 15
    assert framing[id(second.said[0])] == len(second.said[0]) - 30


def test_session_that_has_said_nothing_yet_becomes_dirty_once() -> None:
    (session,) = sessions(2)
    route = route_of(b"a", CHANNELS, [session], [])
    hub = session.hub
    for _ in range(2):
        hub.join_run(route, [b"1\r\nx"])
        hub.close_run()
    assert hub.dirty == [session]
    assert route.tails == []


def test_route_of_nobody_has_no_receivers() -> None:
    assert NOBODY.receivers == 0
    assert NOBODY.reply == b":0\r\n"
    assert route_of(b"a", CHANNELS, [], []).audiences == []


def test_publisher_of_a_run_is_told_that_some_may_have_it_where_that_is_so() -> None:
    failure = StoreHeld(Path("live.mdb"), lambda: "held")
    elsewhere = Address(CHANNELS, b"news", (1,))
    assert unsent(Route([], elsewhere, 1), failure) is failure
    heard = [
        Route([Audience((b"$",))], elsewhere, 1),
        Route([], elsewhere._replace(durable=((2, b""),)), 2),
        Route([], elsewhere, 1, topic=b"news"),
    ]
    assert {type(unsent(route, failure)) for route in heard} == {PartlySent}
