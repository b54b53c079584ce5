"""QUEUE.POP … ACK and QUEUE.RETURN: what is popped comes again until it is acknowledged."""

from __future__ import annotations

from typing import Any

import pytest
from parsed_session import ParsedSession
from recorded_session import House
from test_queue_segments import member, prove
from test_work_queues import tick

LEASE_MS = 30_000
Popped = list[tuple[int, int]]


class Client(ParsedSession):
    is_sharded = False

    def lease(self, count: int = 10) -> Popped:
        return popped(self.do("QUEUE.POP", "q", "s", "COUNT", count, "ACK"))

    def pop(self, count: int = 10) -> list[int]:
        return [int(fields[1]) for _, fields in self.do("QUEUE.POP", "q", "s", "COUNT", count)]

    def status(self) -> dict[bytes, Any]:
        [found] = self.do("QUEUE.LIST", "q")
        assert isinstance(found, dict)
        return found


def popped(reply: Any) -> Popped:
    """The values, and how often each was delivered."""
    return [(int(fields[1]), deliveries) for _, fields, deliveries in reply]


@pytest.fixture(params=["one store", "spread"])
def client(house: House, request: pytest.FixtureRequest) -> Client:
    if request.param == "spread":
        member(house)
        client = Client(house)
        client.is_sharded = True
        return client
    client = Client(house)
    client.do("QUEUE.CREATE", "q")
    client.do("QUEUE.SUBSCRIBER", "q", "s")
    return client


def push(client: Client, count: int, first: int = 0) -> list[str]:
    return [id.decode() for id in client.do("QUEUE.PUSH", "q", *map(str, range(first, first + count)))]


def cut(client: Client) -> None:
    """Where the store is sharded, the values so far are in a segment of their own then."""
    if client.is_sharded:
        client.do("QUEUE.CUT", "q")


def test_what_is_leased_comes_again_when_its_time_is_over_before_newer_values(house: House, client: Client) -> None:
    ids = push(client, 3)
    cut(client)
    assert client.lease(2) == [(0, 1), (1, 1)]
    assert (client.status()[b"leased"], client.status()[b"behind"]) == (2, 1)
    assert client.do("XACK", "q", "s", ids[0]) == 1
    push(client, 2, 3)
    tick(house, LEASE_MS - 1000)
    assert client.lease(1) == [(2, 1)]
    tick(house, 2000)
    cut(client)
    assert (client.status()[b"leased"], client.status()[b"behind"]) == (1, 3), "the one that came back is to be popped"
    assert client.lease(1) == [(1, 2)]
    assert client.lease(10) == [(3, 1), (4, 1)]
    tick(house, 3 * LEASE_MS)
    assert client.lease(10) == [(1, 3), (2, 2), (3, 2), (4, 2)]
    assert client.do("XACK", "q", "s", *ids) == 2


def test_a_plain_pop_takes_what_comes_again_too_and_for_good(house: House, client: Client) -> None:
    push(client, 3)
    cut(client)
    assert client.lease(2) == [(0, 1), (1, 1)]
    tick(house, 2 * LEASE_MS)
    assert client.do("QUEUE.PEEK", "q", "s", "COUNT", "5")[0][1] == [b"value", b"0"]
    assert client.pop() == [0, 1]
    assert client.pop() == [2]
    tick(house, 2 * LEASE_MS)
    assert client.pop() == []
    assert (client.status()[b"leased"], client.status()[b"behind"]) == (0, 0)


def test_who_waits_is_given_what_comes_again(house: House, client: Client) -> None:
    push(client, 1)
    cut(client)
    assert client.lease() == [(0, 1)]
    other = Client(house)
    assert other.do("QUEUE.POP", "q", "s", "ACK", "BLOCK", "0") is False
    tick(house, LEASE_MS + 1000)
    _, fields, deliveries = other.heard()
    assert (fields[1], deliveries) == (b"0", 2)


@pytest.mark.parametrize("has_grave", [True, False])
def test_what_was_popped_too_often_goes_to_the_dead_letters(house: House, client: Client, has_grave: bool) -> None:
    grave = "{q}dead" if has_grave else ""
    client.do("TOPIC.GROUP", "q", "s", "TIMEOUT", "1000", "MAXDELIVERIES", "2", "DEADLETTER", grave)
    ids = push(client, 2)
    cut(client)
    assert client.lease() == [(0, 1), (1, 1)]
    tick(house, 1500)
    assert client.lease() == [(0, 2), (1, 2)]
    client.do("XACK", "q", "s", ids[1])
    tick(house, 1500)
    assert client.lease() == []
    found = client.do("TOPIC.GROUP", "q", "s")
    assert (found[b"dead-lettered"], found[b"dropped"]) == ((1, 0) if has_grave else (0, 1))
    if has_grave:
        [(_, fields)] = client.do("XRANGE", grave, "-", "+")
        assert fields[:2] == [b"value", b"0"]
        assert fields[fields.index(b"dead-letter-id") + 1] == ids[0].encode()
        assert fields[fields.index(b"dead-letter-deliveries") + 1] == b"2"
    assert client.status()[b"behind"] == 0


def test_what_is_given_back_comes_again_at_once_or_later(house: House, client: Client) -> None:
    ids = push(client, 4)
    cut(client)
    assert client.lease(2) == [(0, 1), (1, 1)]
    assert client.pop(1) == [2]
    assert client.do("QUEUE.RETURN", "q", "s", ids[1], ids[2], ids[2]) == 2
    assert client.do("QUEUE.RETURN", "q", "s", ids[1], ids[2]) == 0, "it waits to be popped already"
    assert client.do("QUEUE.RETURN", "q", "s", ids[3]) == 0, "it was not popped yet"
    assert client.do("QUEUE.RETURN", "q", "s", "DELAY", "500", "UNREAD", ids[0]) == 1
    assert client.lease() == [(1, 2), (2, 2)]
    assert client.lease() == [(3, 1)]
    tick(house, 600)
    assert client.lease() == [(0, 1)], "it was not read before"
    assert client.do("QUEUE.RETURN", "q", "s", "1-1") == 0
    assert str(client.do("QUEUE.RETURN", "q", "s", "DELAY", "1")).startswith("ERR syntax error")
    assert str(client.do("QUEUE.RETURN", "q", "s", "SOON", ids[0])).startswith("ERR syntax error")
    assert str(client.do("QUEUE.RETURN", "q", "new", ids[0])).startswith("NOSUBSCRIBER")


def test_a_lease_is_as_long_as_the_subscribers_timeout(house: House, client: Client) -> None:
    client.do("TOPIC.GROUP", "q", "s", "TIMEOUT", "500")
    push(client, 1)
    assert client.lease() == [(0, 1)]
    tick(house, 600)
    assert client.lease() == [(0, 2)]


def test_a_subscriber_that_leases_sleeps_and_wakes(house: House, client: Client) -> None:
    push(client, 1)
    cut(client)
    assert client.lease() == [(0, 1)]
    client.do("QUEUE.SLEEP", "q", "s")
    tick(house, 2 * LEASE_MS)
    assert str(client.do("QUEUE.POP", "q", "s", "ACK")).startswith("ASLEEP")
    assert str(client.do("QUEUE.PEEK", "q", "s")).startswith("ASLEEP")
    client.do("QUEUE.WAKEUP", "q", "s")
    assert client.lease() == [(0, 2)]


def test_a_queue_is_cut_while_its_subscriber_leases(house: House) -> None:
    member(house)
    client = Client(house)
    seen: list[int] = []
    for number in range(0, 40, 4):
        push(client, 4, number)
        client.lease(2)
        assert client.do("QUEUE.CUT", "q") is not None
    prove(client)
    for _ in range(20):
        tick(house, LEASE_MS + 1000)
        while found := client.do("QUEUE.POP", "q", "s", "COUNT", "3", "ACK"):
            seen += [int(fields[1]) for _, fields, _ in found]
            assert client.do("XACK", "q", "s", *[id for id, _, _ in found]) == len(found)
    assert sorted(seen) == list(range(40))
    assert (client.status()[b"leased"], client.status()[b"behind"]) == (0, 0)
    prove(client)
