"""Groups as work queues, in the words of their clients, on a clock that is set: TOPIC.GROUP, REQUEUE, PAUSE, DEFER."""

from __future__ import annotations

from typing import Any

import hiredis
import pytest
from parsed_session import ParsedSession
from recorded_session import House

from rlite_pubsub.storage import databases
from rlite_pubsub.storage.keys import garbage
from rlite_pubsub.storage.topics import deadlines


class Client(ParsedSession):
    def read(self, consumer: str = "c", *options: str, key: str = "t") -> list[bytes]:
        """The values of the entries that XREADGROUP gives."""
        return values(self.do("XREADGROUP", "GROUP", "g", consumer, *options, "STREAMS", key, ">"))

    def group(self, key: str = "t", name: str = "g") -> dict[bytes, Any]:
        found: dict[bytes, Any] = self.do("TOPIC.GROUP", key, name)
        return found


def values(reply: Any) -> list[bytes]:
    return [] if reply is None else [fields[1] for _, fields in next(iter(reply.values()))]


@pytest.fixture
def client(house: House) -> Client:
    client = Client(house)
    client.do("XGROUP", "CREATE", "t", "g", "$", "MKSTREAM")
    return client


def now_ms(house: House) -> int:
    return int(house.clock.now * 1000)


def pass_ms(house: House, milliseconds: int) -> None:
    """Time passes, and nobody works in the background."""
    house.clock.now = (now_ms(house) + milliseconds) / 1000 + 0.0001


def tick(house: House, milliseconds: int = 0) -> None:
    """Time passes, and all that is due is done."""
    pass_ms(house, milliseconds)
    for _ in range(20):
        house.timers.advance()
        house.engine.cron(house.clock.now)
        house.engine.commit()


def fill(client: Client, count: int, start: int = 0) -> list[str]:
    return [client.do("XADD", "t", "*", "n", f"{number}").decode() for number in range(start, start + count)]


def is_idle(house: House) -> bool:
    """Nothing at all is due, ever."""
    keyspace = house.engine.keyspace
    assert keyspace is not None
    found = deadlines.first(keyspace.settle())
    keyspace.end_turn()
    return found is None


def refused(reply: Any) -> str:
    assert isinstance(reply, hiredis.ReplyError)
    return str(reply)


# -- settings


def test_group_tells_what_it_was_told_and_changes_only_what_is_named(client: Client) -> None:
    assert client.do("TOPIC.GROUP", "t", "g", "TIMEOUT", "500", "MAXDELIVERIES", "3") == b"OK"
    assert client.do("TOPIC.GROUP", "t", "g", "deadletter", "dead\0\xff", "hold", "YES") == b"OK"
    fill(client, 3)
    client.read("c", "COUNT", "2")
    assert client.group() == {
        b"name": b"g",
        b"lag": 1,
        b"pending": 2,
        b"released": 0,
        b"delayed": 0,
        b"requeued": 0,
        b"timed-out": 0,
        b"dead-lettered": 0,
        b"dropped": 0,
        b"paused": 0,
        b"asleep": 0,
        b"consumers": 1,
        b"last-delivered-id": client.group()[b"last-delivered-id"],
        b"timeout": 500,
        b"max-deliveries": 3,
        b"dead-letter": "dead\0\xff".encode(),
        b"hold": 1,
    }
    assert client.do("TOPIC.INFO", "t")[b"group-list"] == [client.group()]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("TOPIC.GROUP", "new", "g"), "NOGROUP No such key 'new' or consumer group 'g'"),
        (("TOPIC.GROUP", "t", "new"), "NOGROUP No such key 't' or consumer group 'new'"),
        (("TOPIC.GROUP", "t", "g", "TIMEOUT"), "ERR syntax error"),
        (("TOPIC.GROUP", "t", "g", "TIMEOUTS", "1"), "ERR syntax error"),
        (("TOPIC.GROUP", "t", "g", "HOLD", "yes", "TIMEOUT", "-1"), "ERR TIMEOUT must be"),
        (("TOPIC.GROUP", "t", "g", "TIMEOUT", str((1 << 48) + 1)), "ERR TIMEOUT must be"),
        (("TOPIC.GROUP", "t", "g", "MAXDELIVERIES", "x"), "ERR MAXDELIVERIES must be"),
        (("TOPIC.GROUP", "t", "g", "HOLD", "maybe"), "ERR HOLD must be yes or no"),
        (("TOPIC.GROUP", "t", "g", "HOLD", "yes", "DEADLETTER", "t"), "ERR a topic can't take its own dead letters"),
        (("TOPIC.GROUP", "string", "g"), "WRONGTYPE"),
        (("TOPIC.REQUEUE", "t", "new", "1-1"), "NOGROUP"),
        (("TOPIC.REQUEUE", "t", "g", "x"), "ERR Invalid stream ID"),
        (("TOPIC.REQUEUE", "t", "g", "1-1", "DELAY"), "ERR syntax error"),
        (("TOPIC.REQUEUE", "t", "g", "1-1", "LATER", "1"), "ERR syntax error"),
        (("TOPIC.REQUEUE", "t", "g", "1-1", "DELAY", "-1"), "ERR DELAY must be"),
        (("TOPIC.REQUEUE", "string", "g", "1-1"), "WRONGTYPE"),
        (("TOPIC.PAUSE", "new"), "ERR no such key"),
        (("TOPIC.PAUSE", "t", "new"), "NOGROUP"),
        (("TOPIC.RESUME", "t", "g", "x"), "ERR syntax error"),
        (("TOPIC.PAUSE", "string"), "WRONGTYPE"),
        (("TOPIC.DEFER", "new", "-1", "f", "v"), "ERR the time must be an integer"),
        (("TOPIC.DEFER", "new", "-" + "9" * 5000, "f", "v"), "ERR the time must be an integer"),
        (("TOPIC.DEFER", "new", "DELAY", "-1", "f", "v"), "ERR the delay must be an integer"),
        (("TOPIC.DEFER", "new", "DELAY", "1", "f"), "ERR wrong number of arguments for 'topic.defer'"),
        (("TOPIC.DEFER", "new", "DELAY", str((1 << 48) + 1), "f", "v"), "ERR the time is beyond 2^48"),
        (("TOPIC.DEFER", "new", str((1 << 48) + 1), "f", "v"), "ERR the time is beyond 2^48"),
        (("TOPIC.DEFER", "new", "9" * 100_000, "f", "v"), "ERR the time is beyond 2^48"),
        (("TOPIC.DEFER", "new", "+1s", "f", "v"), "ERR the time must be an integer"),
        (("TOPIC.DEFER", "new", str(1 << 48), "f"), "ERR wrong number of arguments for 'topic.defer' command"),
        (("TOPIC.DEFER", "new", str(1 << 48), "f", "v", "f"), "ERR wrong number of arguments for 'topic.defer'"),
        (("TOPIC.DEFER", "string", str(1 << 48), "f", "v"), "WRONGTYPE"),
        (("TOPIC.DEFERRED", "new"), "ERR no such key"),
        (("TOPIC.DEFERRED", "t", "COUNT"), "ERR syntax error"),
        (("TOPIC.DEFERRED", "t", "COUNT", "-1"), "ERR COUNT must be >= 0"),
        (("TOPIC.DEFERRED", "t", "FROM", "x"), "ERR a ticket is"),
        (("TOPIC.REDEFER", "t", "1-1", "-1"), "ERR the time must be an integer"),
        (("TOPIC.REDEFER", "t", "1-1", "1", "1"), "ERR wrong number of arguments for 'topic.redefer'"),
        (("TOPIC.REDEFER", "t", "1", str(1 << 48)), "ERR a ticket is"),
        (("TOPIC.UNDEFER", "t", "1-1", "-"), "ERR a ticket is"),
        (("TOPIC.UNDEFER", "t", "1-" + str(1 << 32)), "ERR a ticket is"),
        (("TOPIC.UNDEFER", "string", "1-1"), "WRONGTYPE"),
    ],
)
def test_what_makes_no_sense_is_refused_and_changes_nothing(client: Client, words: tuple[str, ...], text: str) -> None:
    client.do("SET", "string", "x")
    before = client.do("TOPIC.INFO", "t")
    assert refused(client.do(*words)).startswith(text)
    assert client.do("TOPIC.INFO", "t") == before
    assert client.do("TOPIC.LIST") == [b"t"]


@pytest.mark.parametrize("name", ["", "\0", "n" * 600, "\xff\r\n"])
def test_groups_and_topics_of_any_name_work(house: House, name: str) -> None:
    client = Client(house)
    client.do("XGROUP", "CREATE", f"t{name}", name, "$", "MKSTREAM")
    client.do("TOPIC.GROUP", f"t{name}", name, "TIMEOUT", "100", "MAXDELIVERIES", "1", "DEADLETTER", f"d{name}")
    client.do("XADD", f"t{name}", "*", "n", "1")
    client.do("XREADGROUP", "GROUP", name, "c", "STREAMS", f"t{name}", ">")
    tick(house, 200)
    assert client.group(f"t{name}", name)[b"dead-lettered"] == 1
    assert client.do("XLEN", f"d{name}") == 1


# -- timeouts


def test_entry_in_flight_for_too_long_goes_to_whoever_asks_next_before_newer_ones(house: House, client: Client) -> None:
    client.do("TOPIC.GROUP", "t", "g", "TIMEOUT", "1000")
    ids = fill(client, 3)
    assert client.read("a", "COUNT", "2") == [b"0", b"1"]
    tick(house, 900)
    assert client.group()[b"pending"] == 2
    tick(house, 111)
    found = client.group()
    assert (found[b"pending"], found[b"released"], found[b"timed-out"], found[b"lag"]) == (0, 2, 2, 1)
    assert client.do("XPENDING", "t", "g") == [0, None, None, None]
    assert client.read("b") == [b"0", b"1", b"2"]
    rows = client.do("XPENDING", "t", "g", "-", "+", "10")
    assert [row[0].decode() for row in rows] == ids
    assert [(row[1], row[3]) for row in rows] == [(b"b", 2), (b"b", 2), (b"b", 1)]


def test_whoever_asks_gets_what_is_over_its_time_though_nobody_works_in_the_background(
    house: House, client: Client
) -> None:
    client.do("TOPIC.GROUP", "t", "g", "TIMEOUT", "1000")
    fill(client, 1)
    client.read("a")
    pass_ms(house, 500)
    assert client.read("b") == []
    pass_ms(house, 511)
    assert client.read("b") == [b"0"]
    assert client.group()[b"timed-out"] == 1


def test_what_is_acknowledged_in_time_does_not_come_back(house: House, client: Client) -> None:
    client.do("TOPIC.GROUP", "t", "g", "TIMEOUT", "1000")
    ids = fill(client, 300)
    client.read("a")
    client.do("XACK", "t", "g", *ids[::2])
    tick(house, 1100)
    assert client.group()[b"timed-out"] == 150
    assert client.read("b") == [b"%d" % number for number in range(1, 300, 2)]
    client.do("XACK", "t", "g", *ids)
    tick(house, 1100)
    assert is_idle(house)


@pytest.mark.parametrize(
    "again",
    [
        ("XCLAIM", "t", "g", "b", "0", "ID"),
        ("XAUTOCLAIM", "t", "g", "b", "0", "-"),
        ("XREADGROUP", "GROUP", "g", "a", "STREAMS", "t", "0"),
        ("XREADGROUP", "GROUP", "g", "b", "CLAIM", "0", "STREAMS", "t", ">"),
    ],
)
def test_the_time_begins_anew_with_each_delivery(house: House, client: Client, again: tuple[str, ...]) -> None:
    client.do("TOPIC.GROUP", "t", "g", "TIMEOUT", "1000")
    ids = fill(client, 1)
    client.read("a")
    tick(house, 600)
    client.do(*[ids[0] if word == "ID" else word for word in again])
    tick(house, 600)
    assert client.group()[b"pending"] == 1
    tick(house, 500)
    assert client.group()[b"timed-out"] == 1
    assert client.read("c") == [b"0"]


def test_entry_claimed_as_delivered_long_ago_is_over_its_time_at_once(house: House, client: Client) -> None:
    client.do("TOPIC.GROUP", "t", "g", "TIMEOUT", "1000")
    ids = fill(client, 1)
    client.read("a")
    client.do("XCLAIM", "t", "g", "b", "0", ids[0], "IDLE", "5000")
    tick(house)
    assert client.read("c") == [b"0"]


def test_timeout_holds_for_what_was_in_flight_before_it_was_set_and_ends_with_it(house: House, client: Client) -> None:
    fill(client, 500)
    client.read("a")
    pass_ms(house, 2000)
    client.do("TOPIC.GROUP", "t", "g", "TIMEOUT", "60000")
    tick(house, 1000)
    assert client.group()[b"pending"] == 500
    client.do("TOPIC.GROUP", "t", "g", "TIMEOUT", "0")
    assert is_idle(house)
    client.do("TOPIC.GROUP", "t", "g", "TIMEOUT", "2500")
    tick(house)
    assert client.group()[b"released"] == 500
    assert len(client.read("b")) == 500


def test_timeout_that_is_shortened_holds_at_once(house: House, client: Client) -> None:
    client.do("TOPIC.GROUP", "t", "g", "TIMEOUT", "3600000")
    fill(client, 1)
    client.read("a")
    tick(house, 5000)
    client.do("TOPIC.GROUP", "t", "g", "TIMEOUT", "1000")
    tick(house)
    assert client.read("b") == [b"0"]


def test_blocked_readers_are_woken_by_what_comes_back(house: House, client: Client) -> None:
    client.do("TOPIC.GROUP", "t", "g", "TIMEOUT", "1000")
    fill(client, 1)
    client.read("a")
    other = Client(house)
    other.session.do("XREADGROUP", "GROUP", "g", "b", "BLOCK", "0", "STREAMS", "t", ">")
    tick(house, 900)
    assert other.heard() is False
    tick(house, 150)
    assert values(other.heard()) == [b"0"]


def test_timer_goes_off_between_two_rounds_of_the_cron(house: House, client: Client) -> None:
    client.do("TOPIC.GROUP", "t", "g", "TIMEOUT", "50")
    fill(client, 1)
    client.read("a")
    other = Client(house)
    other.session.do("XREADGROUP", "GROUP", "g", "b", "BLOCK", "0", "STREAMS", "t", ">")
    house.timers.advance(0.052)
    assert values(other.heard()) == [b"0"]


def test_acknowledgement_of_a_released_entry_is_heard(house: House, client: Client) -> None:
    client.do("TOPIC.GROUP", "t", "g", "TIMEOUT", "1000")
    ids = fill(client, 2)
    client.read("a")
    tick(house, 1100)
    assert client.do("XACK", "t", "g", ids[0], ids[0], "5-5") == 1
    assert client.group()[b"released"] == 1
    assert client.read("b") == [b"1"]


def test_released_entry_that_was_deleted_is_not_delivered(house: House, client: Client) -> None:
    client.do("TOPIC.GROUP", "t", "g", "TIMEOUT", "1000")
    ids = fill(client, 3)
    client.read("a")
    client.do("XDEL", "t", ids[1])
    tick(house, 1100)
    assert client.read("b") == [b"0", b"2"]
    assert client.group()[b"released"] == 0


def test_entry_that_is_claimed_or_given_anew_is_not_released_any_more(house: House, client: Client) -> None:
    client.do("TOPIC.GROUP", "t", "g", "TIMEOUT", "1000")
    ids = fill(client, 3)
    client.read("a")
    tick(house, 1100)
    client.do("XCLAIM", "t", "g", "b", "0", ids[2], "FORCE")
    assert client.group()[b"released"] == 2
    client.do("XGROUP", "SETID", "t", "g", "0")
    assert client.read("b", "COUNT", "1") == [b"0"]
    assert client.read("b") == [b"1", b"0", b"1", b"2"]
    found = client.group()
    assert (found[b"released"], found[b"pending"]) == (0, 3)


def test_reading_without_acknowledgement_takes_released_entries_for_good(house: House, client: Client) -> None:
    client.do("TOPIC.GROUP", "t", "g", "TIMEOUT", "1000")
    fill(client, 2)
    client.read("a")
    tick(house, 1100)
    assert client.read("b", "NOACK") == [b"0", b"1"]
    assert (client.group()[b"released"], client.group()[b"pending"]) == (0, 0)


# -- the limit of deliveries


def test_entry_that_is_delivered_too_often_goes_to_the_dead_letters_with_its_story(
    house: House, client: Client
) -> None:
    client.do("TOPIC.GROUP", "t", "g", "TIMEOUT", "1000", "MAXDELIVERIES", "2", "DEADLETTER", "dead")
    ids = fill(client, 2)
    assert client.read("a") == [b"0", b"1"]
    tick(house, 1100)
    last_ms = now_ms(house)
    assert client.read("a") == [b"0", b"1"]
    client.do("XACK", "t", "g", ids[1])
    tick(house, 1100)
    assert client.read("a") == []
    [(_, fields)] = client.do("XRANGE", "dead", "-", "+")
    assert fields == [
        *(b"n", b"0"),
        *(b"dead-letter-topic", b"t", b"dead-letter-group", b"g"),
        *(b"dead-letter-id", ids[0].encode(), b"dead-letter-deliveries", b"2"),
        *(b"dead-letter-delivered-ms", b"%d" % last_ms),
    ]
    found = client.group()
    assert (found[b"dead-lettered"], found[b"dropped"], found[b"pending"], found[b"released"]) == (1, 0, 0, 0)
    assert client.do("XLEN", "t") == 2


@pytest.mark.parametrize("named", ["", "string"])
def test_entry_that_no_topic_takes_is_dropped_counted_and_logged(
    house: House, client: Client, named: str, caplog: pytest.LogCaptureFixture
) -> None:
    client.do("SET", "string", "x")
    client.do("TOPIC.GROUP", "t", "g", "TIMEOUT", "1000", "MAXDELIVERIES", "1", "DEADLETTER", named)
    fill(client, 3)
    client.read("a")
    tick(house, 1100)
    assert client.read("b") == []
    assert client.group()[b"dropped"] == 3
    assert "3 entries of topic b't'" in caplog.text
    assert client.do("GET", "string") == b"x"


def test_limit_holds_for_requeued_and_claimed_entries_and_for_a_limit_that_is_lowered(
    house: House, client: Client
) -> None:
    ids = fill(client, 3)
    client.read("a")
    client.do("TOPIC.REQUEUE", "t", "g", ids[0])
    client.do("TOPIC.GROUP", "t", "g", "MAXDELIVERIES", "1", "DEADLETTER", "dead")
    assert client.do("TOPIC.REQUEUE", "t", "g", ids[1]) == 1
    assert client.do("XLEN", "dead") == 1
    assert client.read("b") == []
    assert client.do("XLEN", "dead") == 2
    assert client.do("XREADGROUP", "GROUP", "g", "b", "CLAIM", "0", "STREAMS", "t", ">") is None
    assert client.do("XLEN", "dead") == 3
    assert client.group()[b"pending"] == 0


def test_dead_letters_are_told_to_who_blocks_on_their_topic(house: House, client: Client) -> None:
    client.do("TOPIC.GROUP", "t", "g", "TIMEOUT", "1000", "MAXDELIVERIES", "1", "DEADLETTER", "dead")
    fill(client, 1)
    client.read("a")
    other = Client(house)
    other.session.do("XREAD", "BLOCK", "0", "STREAMS", "dead", "$")
    tick(house, 1100)
    assert values(other.heard()) == [b"0"]


# -- requeue


def test_requeued_entry_is_delivered_at_once_or_after_its_delay(house: House, client: Client) -> None:
    ids = fill(client, 3)
    client.read("a")
    assert client.do("TOPIC.REQUEUE", "t", "g", ids[1], "DELAY", "5000") == 1
    assert client.do("TOPIC.REQUEUE", "t", "g", ids[0]) == 1
    assert client.do("TOPIC.REQUEUE", "t", "g", ids[0]) == 0
    assert client.do("TOPIC.REQUEUE", "t", "g", "5-5") == 0
    found = client.group()
    assert (found[b"pending"], found[b"released"], found[b"delayed"], found[b"requeued"]) == (1, 1, 1, 2)
    assert client.read("b") == [b"0"]
    tick(house, 4900)
    assert client.read("b") == []
    other = Client(house)
    other.session.do("XREADGROUP", "GROUP", "g", "b", "BLOCK", "0", "STREAMS", "t", ">")
    tick(house, 100)
    assert values(other.heard()) == [b"1"]
    tick(house, 10)
    assert is_idle(house)


def test_each_of_several_delays_wakes_who_waits(house: House, client: Client) -> None:
    ids = fill(client, 3)
    client.read("a")
    for number, entry_id in enumerate(ids):
        client.do("TOPIC.REQUEUE", "t", "g", entry_id, "DELAY", f"{1000 * (number + 1)}")
    other = Client(house)
    for number in range(3):
        other.session.do("XREADGROUP", "GROUP", "g", "b", "BLOCK", "0", "STREAMS", "t", ">")
        tick(house, 1000)
        assert values(other.heard()) == [b"%d" % number]


def test_delayed_entry_that_is_given_anew_is_not_given_again_later(house: House, client: Client) -> None:
    ids = fill(client, 1)
    client.read("a")
    client.do("TOPIC.REQUEUE", "t", "g", ids[0], "DELAY", "1000")
    client.do("XGROUP", "SETID", "t", "g", "0")
    assert client.read("b") == [b"0"]
    tick(house, 2000)
    assert client.read("b") == []
    assert client.group()[b"pending"] == 1


def test_requeued_entry_wakes_who_waits(house: House, client: Client) -> None:
    ids = fill(client, 1)
    client.read("a")
    other = Client(house)
    other.session.do("XREADGROUP", "GROUP", "g", "b", "BLOCK", "0", "STREAMS", "t", ">")
    client.do("TOPIC.REQUEUE", "t", "g", ids[0])
    assert values(other.heard()) == [b"0"]


def test_delayed_entry_can_be_acknowledged_meanwhile(house: House, client: Client) -> None:
    ids = fill(client, 1)
    client.read("a")
    client.do("TOPIC.REQUEUE", "t", "g", ids[0], "DELAY", "1000")
    assert client.do("XACK", "t", "g", ids[0]) == 1
    tick(house, 2000)
    assert client.read("b") == []
    assert is_idle(house)


# -- pause


@pytest.mark.parametrize("what", [("t",), ("t", "g")])
def test_paused_group_is_given_nothing_until_it_is_resumed(house: House, client: Client, what: tuple[str, ...]) -> None:
    client.do("TOPIC.GROUP", "t", "g", "TIMEOUT", "1000")
    ids = fill(client, 2)
    assert client.read("a", "COUNT", "1") == [b"0"]
    assert client.do("TOPIC.PAUSE", *what) == 1
    assert client.do("TOPIC.PAUSE", *what) == 0
    assert client.read("a") == []
    assert client.do("XREADGROUP", "GROUP", "g", "a", "CLAIM", "0", "STREAMS", "t", ">") is None
    assert values(client.do("XREADGROUP", "GROUP", "g", "a", "STREAMS", "t", "0")) == [b"0"]
    other = Client(house)
    other.session.do("XREADGROUP", "GROUP", "g", "b", "BLOCK", "0", "STREAMS", "t", ">")
    fill(client, 1, 2)
    tick(house, 1100)
    assert other.heard() is False
    assert client.group()[b"timed-out"] == 1
    assert client.do("TOPIC.RESUME", *what) == 1
    assert values(other.heard()) == [b"0", b"1", b"2"]
    assert client.do("TOPIC.RESUME", *what) == 0
    assert client.do("XACK", "t", "g", *ids) == 2


def test_group_that_is_paused_itself_stays_so_when_its_topic_is_resumed(client: Client) -> None:
    client.do("XGROUP", "CREATE", "t", "other", "$")
    client.do("TOPIC.PAUSE", "t")
    client.do("TOPIC.PAUSE", "t", "g")
    assert client.do("TOPIC.INFO", "t")[b"paused"] == 1
    client.do("TOPIC.RESUME", "t")
    fill(client, 1)
    assert client.read() == []
    assert values(client.do("XREADGROUP", "GROUP", "other", "c", "STREAMS", "t", ">")) == [b"0"]


def test_followers_and_readers_of_their_own_go_on_while_a_topic_is_paused(house: House, client: Client) -> None:
    other = Client(house)
    other.session.do("TOPIC.SUBSCRIBE", "t", "$")
    client.do("TOPIC.PAUSE", "t")
    fill(client, 1)
    assert b"topic-message" in other.session.heard()
    assert values(client.do("XREAD", "STREAMS", "t", "0")) == [b"0"]


# -- deferred entries


def test_deferred_entry_is_appended_at_its_time_once(house: House, client: Client) -> None:
    start = now_ms(house)
    tickets = [client.do("TOPIC.DEFER", "t", str(start + after), "n", str(after)) for after in (2000, 1000, 1000)]
    assert tickets == [b"%d-%d" % pair for pair in ((start + 2000, 0), (start + 1000, 0), (start + 1000, 1))]
    found = client.do("TOPIC.DEFERRED", "t")
    assert found[b"count"] == 3
    assert found[b"entries"][0] == [tickets[1], [b"n", b"1000"]]
    assert len(client.do("TOPIC.DEFERRED", "t", "COUNT", "2")[b"entries"]) == 2
    tick(house, 999)
    assert client.do("XLEN", "t") == 0
    other = Client(house)
    other.session.do("XREADGROUP", "GROUP", "g", "b", "BLOCK", "0", "STREAMS", "t", ">")
    tick(house, 2)
    assert values(other.heard()) == [b"1000", b"1000"]
    assert client.do("TOPIC.INFO", "t")[b"deferred"] == 1
    tick(house, 1000)
    tick(house, 1000)
    assert [fields[1] for _, fields in client.do("XRANGE", "t", "-", "+")] == [b"1000", b"1000", b"2000"]
    assert is_idle(house)


def test_deferred_entries_are_listed_from_a_ticket_on_moved_and_cancelled(house: House, client: Client) -> None:
    start = now_ms(house)
    tickets = [client.do("TOPIC.DEFER", "t", str(start + after), "n", str(after)) for after in (1000, 1000, 2000, 3000)]
    page = client.do("TOPIC.DEFERRED", "t", "FROM", tickets[1].decode(), "COUNT", "2")
    assert [ticket for ticket, _ in page[b"entries"]] == tickets[1:3]
    moved = client.do("TOPIC.REDEFER", "t", tickets[3].decode(), str(start + 500))
    assert moved == b"%d-0" % (start + 500)
    assert client.do("TOPIC.REDEFER", "t", tickets[3].decode(), str(start + 600)) is None
    assert client.do("TOPIC.UNDEFER", "t", tickets[0].decode(), tickets[0].decode(), "1-1") == 1
    assert client.do("TOPIC.DEFERRED", "t")[b"count"] == 3
    tick(house, 600)
    assert client.do("TOPIC.UNDEFER", "t", moved.decode()) == 0, "it was appended"
    tick(house, 600)
    assert client.do("TOPIC.UNDEFER", "t", tickets[2].decode()) == 1
    tick(house, 3000)
    assert [fields[1] for _, fields in client.do("XRANGE", "t", "-", "+")] == [b"3000", b"1000"]
    assert client.do("TOPIC.DEFERRED", "t")[b"count"] == 0
    assert is_idle(house)
    assert client.do("TOPIC.UNDEFER", "new", "1-1") == 0
    assert client.do("TOPIC.REDEFER", "new", "1-1", str(start + 9000)) is None


def test_an_entry_whose_time_has_come_is_appended_at_once(house: House, client: Client) -> None:
    start = now_ms(house)
    other = Client(house)
    other.session.do("XREADGROUP", "GROUP", "g", "b", "BLOCK", "0", "STREAMS", "t", ">")
    assert client.do("TOPIC.DEFER", "t", str(start - 1), "n", "past") == b"%d-0" % (start - 1)
    assert values(other.heard()) == [b"past"]
    client.do("TOPIC.DEFER", "t", "0", "n", "long past")
    client.do("TOPIC.DEFER", "t", "delay", "0", "n", "now")
    ticket = client.do("TOPIC.DEFER", "t", "DELAY", "1000", "n", "later")
    assert ticket == b"%d-0" % (start + 1000)
    assert client.do("TOPIC.REDEFER", "t", ticket.decode(), "DELAY", "500") == b"%d-0" % (start + 500)
    assert client.do("XLEN", "t") == 3
    assert client.do("TOPIC.REDEFER", "t", f"{start + 500}-0", str(start - 5)) == b"%d-0" % (start - 5)
    assert client.read("a") == [b"long past", b"now", b"later"]
    assert client.do("TOPIC.DEFERRED", "t")[b"count"] == 0
    assert client.do("TOPIC.INFO", "t")[b"deferred"] == 0


def test_a_letter_that_was_given_back_before_it_died_has_the_time_of_its_last_delivery(
    house: House, client: Client
) -> None:
    client.do("TOPIC.GROUP", "t", "g", "DEADLETTER", "dead")
    [entry_id] = fill(client, 1)
    tick(house, 50)
    last_ms = now_ms(house)
    client.read("a")
    tick(house, 50)
    client.do("TOPIC.REQUEUE", "t", "g", entry_id, "DELAY", "1000")
    client.do("TOPIC.GROUP", "t", "g", "MAXDELIVERIES", "1")
    tick(house, 2000)
    assert client.read("a") == []
    [(_, fields)] = client.do("XRANGE", "dead", "-", "+")
    assert fields[-2:] == [b"dead-letter-delivered-ms", b"%d" % last_ms]


def test_entry_is_deferred_to_a_topic_that_is_not_there_yet(house: House, client: Client) -> None:
    client.do("TOPIC.DEFER", "new", str(now_ms(house) + 10), "f", "v")
    assert client.do("XLEN", "new") == 0
    assert client.do("TYPE", "new") == b"stream"
    tick(house, 20)
    assert client.do("XLEN", "new") == 1


def test_deferred_entry_with_many_fields_comes_as_it_was_sent(house: House, client: Client) -> None:
    words = [f"{number}\r\n\0" for number in range(20_000)]
    client.do("TOPIC.DEFER", "t", str(now_ms(house) + 10), *words)
    tick(house, 20)
    [(_, fields)] = client.do("XRANGE", "t", "-", "+")
    assert fields == [word.encode() for word in words]


def test_many_deferred_entries_are_appended_in_their_order(house: House, client: Client) -> None:
    due = now_ms(house) + 10
    for number in range(1000):
        client.do("TOPIC.DEFER", "t", str(due), "n", f"{number}")
    tick(house, 20)
    assert [int(fields[1]) for _, fields in client.do("XRANGE", "t", "-", "+")] == list(range(1000))


def test_deferred_entries_wait_where_a_topic_has_no_id_left(
    house: House, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    client.do("TOPIC.DEFER", "t", str(now_ms(house) + 10), "f", "v")
    client.do("XADD", "t", f"{2**64 - 1}-{2**64 - 1}", "f", "v")
    tick(house, 20)
    assert "no id left" in caplog.text
    assert client.do("TOPIC.DEFERRED", "t")[b"count"] == 1
    client.do("XADD", "other", "*", "f", "v")
    assert client.do("XLEN", "other") == 1


# -- topics that go, move and are copied


def work_in_hand(house: House, client: Client) -> list[str]:
    """A topic with an entry of each kind: in flight, released, delayed, deferred, and one unread."""
    client.do("TOPIC.GROUP", "t", "g", "TIMEOUT", "1000", "MAXDELIVERIES", "5")
    ids = fill(client, 4)
    client.read("a", "COUNT", "3")
    client.do("TOPIC.REQUEUE", "t", "g", ids[0])
    client.do("TOPIC.REQUEUE", "t", "g", ids[1], "DELAY", "500")
    client.do("TOPIC.DEFER", "t", str(now_ms(house) + 500), "n", "deferred")
    return ids


def sweep(house: House) -> None:
    keyspace = house.engine.keyspace
    assert keyspace is not None
    while garbage.exists(keyspace.settle()):
        tick(house)


def left_over(house: House) -> list[bytes]:
    keyspace = house.engine.keyspace
    assert keyspace is not None
    txn = keyspace.settle()
    kinds = (databases.RELEASED, databases.IN_FLIGHT, databases.DEFERRED, databases.DEADLINES)
    found = [key for kind in kinds for key, _ in databases.items(txn, kind)]
    keyspace.end_turn()
    return found


@pytest.mark.parametrize("how", [("TOPIC.DELETE", "t"), ("DEL", "t"), ("FLUSHDB",), ("RENAME", "other", "t")])
def test_deleted_topic_leaves_nothing(house: House, client: Client, how: tuple[str, ...]) -> None:
    client.do("XADD", "other", "*", "f", "v")
    work_in_hand(house, client)
    assert left_over(house)
    client.do(*how)
    tick(house, 5000)
    sweep(house)
    tick(house, 5000)
    assert left_over(house) == []


def test_topic_with_many_deferred_entries_is_removed_a_little_at_a_time(house: House, client: Client) -> None:
    client.do("XGROUP", "DESTROY", "t", "g")
    for _ in range(500):
        client.do("TOPIC.DEFER", "t", str(now_ms(house) + 1000), "f", "v")
    client.do("TOPIC.DELETE", "t")
    assert databases.DEFERRED in [key[:1] for key in left_over(house)]
    tick(house, 2000)
    sweep(house)
    assert left_over(house) == []


def test_destroyed_group_leaves_nothing(house: House, client: Client) -> None:
    client.do("TOPIC.GROUP", "t", "g", "TIMEOUT", "1000")
    ids = fill(client, 2)
    client.read("a")
    client.do("TOPIC.REQUEUE", "t", "g", ids[0], "DELAY", "500")
    client.do("XGROUP", "DESTROY", "t", "g")
    assert [key[:1] for key in left_over(house)] == [databases.DEADLINES]  # the topic's own row
    assert is_idle(house)
    client.do("XGROUP", "CREATE", "t", "g", "0")
    tick(house, 2000)
    assert client.group()[b"released"] == 0


@pytest.mark.parametrize(
    "how", [("RENAME", "t", "other"), ("COPY", "t", "other"), ("SWAPDB", "0", "1"), ("MOVE", "t", "1")]
)
def test_what_is_due_follows_a_topic_to_its_new_place(house: House, client: Client, how: tuple[str, ...]) -> None:
    work_in_hand(house, client)
    client.do(*how)
    name = "t"
    if how[0] in ("SWAPDB", "MOVE"):
        client.do("SELECT", "1")
    else:
        name = "other"
    assert client.do("TOPIC.DEFERRED", name)[b"count"] == 1
    tick(house, 600)
    assert sorted(client.read("b", key=name)) == [b"0", b"1", b"3", b"deferred"]
    tick(house, 500)
    assert client.read("b", key=name) == [b"2"]
    if how[0] == "COPY":
        assert sorted(client.read("b")) == [b"0", b"1", b"2", b"3", b"deferred"]


@pytest.mark.parametrize("small_bytes", [0, 1 << 40])
def test_emptied_topic_goes_on_with_its_groups_and_nothing_is_in_hand(
    house: House, client: Client, monkeypatch: pytest.MonkeyPatch, small_bytes: int
) -> None:
    monkeypatch.setattr("rlite_pubsub.groups.emptying.SMALL_BYTES", small_bytes)
    work_in_hand(house, client)
    before = client.group()
    client.do("TOPIC.EMPTY", "t")
    counts = (b"lag", b"pending", b"released", b"delayed")
    assert [client.group()[name] for name in counts] == [0, 0, 0, 0]
    assert client.do("TOPIC.DEFERRED", "t")[b"count"] == 0
    assert client.do("XPENDING", "t", "g") == [0, None, None, None]
    assert [consumer[b"pending"] for consumer in client.do("XINFO", "CONSUMERS", "t", "g")] == [0]
    tick(house, 2000)
    assert client.read("b") == []
    kept = set(before) - {*counts, b"last-delivered-id", b"consumers"}
    assert {name: client.group()[name] for name in kept} == {name: before[name] for name in kept}
    fill(client, 1)
    assert client.group()[b"lag"] == 1
    assert client.read("b") == [b"0"]
    sweep(house)


def test_retention_leaves_what_a_group_that_holds_has_given_back(house: House, client: Client) -> None:
    client.do("TOPIC.GROUP", "t", "g", "HOLD", "yes")
    ids = fill(client, 10)
    client.read("a")
    client.do("XACK", "t", "g", *ids[:3], *ids[4:])
    client.do("TOPIC.REQUEUE", "t", "g", ids[3], "DELAY", "10000")
    client.do("TOPIC.CONFIG", "t", "SET", "RETAIN-LENGTH", "1")
    tick(house, 1000)
    assert client.do("XLEN", "t") == 7
    client.do("XACK", "t", "g", ids[3])
    tick(house, 1000)
    assert client.do("XLEN", "t") == 1
