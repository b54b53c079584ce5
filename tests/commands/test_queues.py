"""QUEUE.*: queues with their whole history, in the words of a client."""

from __future__ import annotations

from typing import Any

import hiredis
import pytest
from parsed_session import ParsedSession
from recorded_session import House

from rlite_pubsub.engine.table import TABLE
from rlite_pubsub.groups import queue_reading


class Client(ParsedSession):
    def pop(self, name: str = "s", *options: str) -> Any:
        return value(self.do("QUEUE.POP", "q", name, *options))


def value(reply: Any) -> Any:
    """Of one entry, of several, or of none."""
    if not isinstance(reply, list):
        return reply
    return reply[1][1] if reply and isinstance(reply[0], bytes) else [fields[1] for _, fields in reply]


@pytest.fixture
def client(house: House) -> Client:
    client = Client(house)
    client.do("QUEUE.CREATE", "q")
    client.do("QUEUE.SUBSCRIBER", "q", "s")
    return client


def test_queue_is_made_once_and_listed_where_other_topics_are_not(client: Client) -> None:
    assert client.do("QUEUE.CREATE", "q") == 0
    client.do("XADD", "t", "*", "f", "v")
    client.do("SET", "string", "x")
    assert client.do("QUEUE.LIST") == [b"q"]
    assert client.do("QUEUE.CREATE", "t") == 1
    assert client.do("QUEUE.LIST") == [b"q", b"t"]
    client.do("RENAME", "t", "a")
    client.do("COPY", "a", "b")
    assert client.do("QUEUE.LIST") == [b"a", b"b", b"q"]


def test_every_subscriber_gets_every_value_in_order_from_its_own_place(client: Client) -> None:
    ids = client.do("QUEUE.PUSH", "q", "1", "2", "3")
    assert len(set(ids)) == 3 and ids == [one for one, _ in client.do("XRANGE", "q", "-", "+")]
    client.do("QUEUE.SUBSCRIBER", "q", "other", "beginning")
    assert [client.pop() for _ in range(4)] == [b"1", b"2", b"3", None]
    assert client.pop("other") == b"1"
    assert client.pop("other", "COUNT", "10") == [b"2", b"3"]
    assert client.pop("other", "COUNT", "10") == []
    assert client.do("XLEN", "q") == 3


@pytest.mark.parametrize("is_far", [False, True])
def test_a_subscriber_that_starts_anywhere_knows_how_far_behind_it_is(
    client: Client, monkeypatch: pytest.MonkeyPatch, is_far: bool
) -> None:
    ids = client.do("QUEUE.PUSH", "q", *map(str, range(40)))
    if is_far:
        monkeypatch.setattr(queue_reading, "MOST_COUNTED", 12)
    places = (0, 5, 10, 20, 30, 35, 39)
    for place in places:
        client.do("QUEUE.SUBSCRIBER", "q", f"at {place:02}", ids[place].decode())
    behind = {each[b"name"]: each[b"behind"] for each in client.do("QUEUE.LIST", "q")}
    unknown = {20} if is_far else set()
    assert behind.pop(b"s") == 40
    assert behind == {b"at %02d" % place: None if place in unknown else 39 - place for place in places}
    assert client.pop("at 05") == b"6"
    assert {each[b"name"]: each[b"behind"] for each in client.do("QUEUE.LIST", "q")}[b"at 05"] == 33


def test_peek_leaves_the_place_where_it_is(client: Client) -> None:
    client.do("QUEUE.PUSH", "q", "1", "2", "3")
    assert value(client.do("QUEUE.PEEK", "q", "s")) == b"1"
    assert value(client.do("QUEUE.PEEK", "q", "s", "COUNT", "2")) == [b"1", b"2"]
    assert client.pop() == b"1"
    assert value(client.do("QUEUE.PEEK", "q", "s")) == b"2"


def test_subscriber_begins_at_the_beginning_the_end_an_id_or_a_time(house: House, client: Client) -> None:
    [first] = client.do("QUEUE.PUSH", "q", "1")
    house.clock.now += 10
    middle = int(house.clock.now * 1000)
    client.do("QUEUE.PUSH", "q", "2", "3")
    starts = {"beginning": b"1", "-": b"1", "END": None, "$": None, first.decode(): b"2", "0-0": b"1"}
    starts |= {str(middle): b"2", str(middle + 1): None, "0": b"1", str(middle * 10): None}
    starts |= {"5s": b"2", "10s": b"1", "2023-11-14T22:13:30Z": b"2", "2023-11-14": b"1", "earliest": b"1", "END": None}
    for number, (start, expected) in enumerate(starts.items()):
        assert client.do("QUEUE.SUBSCRIBER", "q", f"s{number}", start) == 1
        assert client.pop(f"s{number}") == expected, start
    assert client.do("QUEUE.SUBSCRIBER", "q", "s2", "beginning") == 0
    assert client.pop("s2") is None
    client.do("QUEUE.PUSH", "q", "4")
    assert client.pop("s2") == b"4"


def test_pop_waits_for_a_value_and_those_who_wait_share_them(house: House, client: Client) -> None:
    others = [Client(house), Client(house)]
    for other in others:
        other.session.do("QUEUE.POP", "q", "s", "BLOCK", "0")
    client.do("QUEUE.PUSH", "q", "1", "2", "3")
    assert [value(other.heard()) for other in others] == [b"1", b"2"]
    assert client.pop() == b"3"
    others[0].session.do("QUEUE.POP", "q", "s", "COUNT", "5", "BLOCK", "100")
    house.timers.advance(0.2)
    assert others[0].heard() is None


def test_sleeping_subscriber_says_so_and_goes_on_where_it_was(house: House, client: Client) -> None:
    client.do("QUEUE.PUSH", "q", "1", "2")
    assert client.pop() == b"1"
    assert client.do("QUEUE.SLEEP", "q", "s") == 1
    assert client.do("QUEUE.SLEEP", "q", "s") == 0
    assert str(client.pop()) == "ASLEEP Subscriber 's' of queue 'q' is asleep; QUEUE.WAKEUP wakes it"
    assert str(client.pop("s", "BLOCK", "0")).startswith("ASLEEP")
    client.do("QUEUE.PUSH", "q", "3")
    assert str(client.do("QUEUE.PEEK", "q", "s")).startswith("ASLEEP"), "as a pop"
    assert client.do("QUEUE.LIST", "q")[0][b"asleep"] == 1
    assert client.do("QUEUE.WAKEUP", "q", "s") == 1
    assert client.do("QUEUE.WAKEUP", "q", "s") == 0
    assert [client.pop(), client.pop()] == [b"2", b"3"]


def test_who_waits_is_told_when_its_subscriber_goes_to_sleep_or_goes(house: House, client: Client) -> None:
    for words, text in [
        (("QUEUE.SLEEP", "q", "s"), "ASLEEP"),
        (("QUEUE.DELETE", "q", "s"), "NOSUBSCRIBER"),
        (("QUEUE.DELETE", "q"), "NOQUEUE"),
    ]:
        client.do("QUEUE.CREATE", "q")
        client.do("QUEUE.SUBSCRIBER", "q", "s")
        client.do("QUEUE.WAKEUP", "q", "s")
        other = Client(house)
        other.session.do("QUEUE.POP", "q", "s", "BLOCK", "0")
        assert client.do(*words) == 1
        assert str(other.heard()).startswith(text)


def test_paused_queue_gives_nothing_until_it_is_resumed(house: House, client: Client) -> None:
    client.do("TOPIC.PAUSE", "q")
    client.do("QUEUE.PUSH", "q", "1")
    assert client.pop() is None
    other = Client(house)
    other.session.do("QUEUE.POP", "q", "s", "BLOCK", "0")
    assert other.heard() is False
    client.do("TOPIC.RESUME", "q")
    assert value(other.heard()) == b"1"


def test_list_tells_where_subscribers_are(client: Client) -> None:
    ids = client.do("QUEUE.PUSH", "q", "1", "2")
    client.do("QUEUE.SUBSCRIBER", "q", "late", "end")
    client.pop()
    assert client.do("QUEUE.LIST", "q") == [
        {b"name": b"late", b"position": ids[1], b"behind": 0, b"leased": 0, b"asleep": 0},
        {b"name": b"s", b"position": ids[0], b"behind": 1, b"leased": 0, b"asleep": 0},
    ]


def test_deleted_values_are_passed_over(client: Client) -> None:
    ids = client.do("QUEUE.PUSH", "q", *map(str, range(1000)))
    client.do("XDEL", "q", *ids[:500:2])
    client.do("XTRIM", "q", "MAXLEN", "600")
    found = []
    while (one := client.pop()) is not None:
        found.append(one)
    assert found == value(client.do("XRANGE", "q", "-", "+"))


def test_a_queue_that_is_deleted_is_gone_with_its_subscribers(client: Client) -> None:
    client.do("QUEUE.PUSH", "q", "1")
    assert client.do("QUEUE.DELETE", "q", "new") == 0
    assert client.do("QUEUE.DELETE", "q") == 1
    assert client.do("QUEUE.DELETE", "q") == 0
    assert client.do("QUEUE.DELETE", "q", "s") == 0
    client.do("QUEUE.CREATE", "q")
    assert client.do("QUEUE.LIST", "q") == []


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("QUEUE.CREATE", "string"), "WRONGTYPE"),
        (("QUEUE.LIST", "new"), "NOQUEUE No such queue 'new'"),
        (("QUEUE.LIST", "q", "x"), "ERR syntax error"),
        (("QUEUE.PUSH", "new", "x"), "NOQUEUE"),
        (("QUEUE.PUSH", "string", "x"), "WRONGTYPE"),
        (("QUEUE.PUSH", "q"), "ERR wrong number of arguments"),
        (("QUEUE.SUBSCRIBER", "new", "s"), "NOQUEUE"),
        (("QUEUE.SUBSCRIBER", "q", "n", "middle"), "ERR a start must be"),
        (("QUEUE.SUBSCRIBER", "q", "n", "-5"), "ERR a start must be"),
        (("QUEUE.SUBSCRIBER", "q", "n", "9" * 100_000), "ERR a start must be"),
        (("QUEUE.SUBSCRIBER", "q", "n", "1-x"), "ERR a start must be"),
        (("QUEUE.SUBSCRIBER", "q", "n", "end", "x"), "ERR syntax error"),
        (("QUEUE.POP", "new", "s"), "NOQUEUE"),
        (("QUEUE.POP", "q", "n"), "NOSUBSCRIBER No such subscriber 'n' of queue 'q'"),
        (("QUEUE.POP", "q", "s", "COUNT", "0"), "ERR COUNT must be > 0"),
        (("QUEUE.POP", "q", "s", "COUNT"), "ERR syntax error"),
        (("QUEUE.POP", "q", "s", "BLOCK", "-1"), "ERR timeout is negative"),
        (("QUEUE.POP", "q", "s", "BLOCK", "x"), "ERR timeout is not an integer"),
        (("QUEUE.PEEK", "q", "s", "BLOCK", "1"), "ERR syntax error"),
        (("QUEUE.PEEK", "q", "n"), "NOSUBSCRIBER"),
        (("QUEUE.SLEEP", "q", "n"), "NOSUBSCRIBER"),
        (("QUEUE.WAKEUP", "new", "s"), "NOQUEUE"),
        (("QUEUE.DELETE", "q", "s", "x"), "ERR syntax error"),
    ],
)
def test_what_makes_no_sense_is_refused_and_changes_nothing(client: Client, words: tuple[str, ...], text: str) -> None:
    client.do("SET", "string", "x")
    before = client.do("TOPIC.INFO", "q")
    reply = client.do(*words)
    assert isinstance(reply, hiredis.ReplyError) and str(reply).startswith(text)
    assert client.do("TOPIC.INFO", "q") == before
    assert client.do("TOPIC.LIST") == [b"q"]


def test_full_queue_takes_all_values_or_none(client: Client) -> None:
    client.do("XADD", "q", f"{2**64 - 1}-{2**64 - 4}", "value", "x")
    assert str(client.do("QUEUE.PUSH", "q", *"12345")).startswith("ERR The stream has exhausted")
    assert client.do("XLEN", "q") == 1


@pytest.mark.parametrize("name", ["", "\0", "n" * 600, "\xff\r\n"])
def test_queues_subscribers_and_values_of_any_bytes(house: House, name: str) -> None:
    client = Client(house)
    assert client.do("QUEUE.CREATE", name) == 1
    client.do("QUEUE.SUBSCRIBER", name, name)
    client.do("QUEUE.PUSH", name, name)
    assert value(client.do("QUEUE.POP", name, name)) == name.encode()


def test_help_names_every_queue_command(client: Client) -> None:
    text = b"\n".join(client.do("QUEUE.HELP"))
    for name in TABLE.commands:
        if name.startswith(b"queue."):
            assert name.upper() in text
