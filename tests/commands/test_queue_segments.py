"""QUEUE.CUT and what follows from it: a queue as a chain of segments, in the words of a client of one member."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import hiredis
import pytest
from parsed_session import ParsedSession
from recorded_session import House

from rlite_pubsub.cli.doctor import proof
from rlite_pubsub.engine.shards.directory import Member, founded
from rlite_pubsub.storage.topics import segments


@pytest.fixture
def client(house: House) -> ParsedSession:
    return member(house)


def member(house: House) -> ParsedSession:
    """A client of a sharded store of one member, with a queue `q` and its subscriber `s`."""
    found = ParsedSession(house)
    id = found.do("SHARD.ID")[0]
    directory = founded([Member(id, b"127.0.0.1", 7001)], {})
    assert found.do("SHARD.LEARN", directory.text) == 1
    found.do("QUEUE.CREATE", "q")
    found.do("QUEUE.SUBSCRIBER", "q", "s")
    return found


def push(client: ParsedSession, *values: int) -> list[bytes]:
    return client.do("QUEUE.PUSH", "q", *map(str, values))  # type: ignore[no-any-return]


def pop(client: ParsedSession, count: int, who: str = "s") -> list[int]:
    return values(client.do("QUEUE.POP", "q", who, "COUNT", count))


def values(reply: Any) -> list[int]:
    return [int(fields[1]) for _, fields in reply]


def info(client: ParsedSession) -> dict[bytes, Any]:
    found = client.do("QUEUE.INFO", "q")
    assert isinstance(found, dict)
    return found


def segments_of(client: ParsedSession) -> list[bytes]:
    return [segment[b"name"] for segment in info(client)[b"segments"]]


def prove(client: ParsedSession) -> None:
    """All records agree with each other, as `doctor --deep` sees them."""
    assert client.house.data.read(lambda txn: list(proof._of_data(txn))) == []


def test_a_store_that_is_not_sharded_has_no_segments(house: House) -> None:
    client = ParsedSession(house)
    client.do("QUEUE.CREATE", "q")
    client.do("QUEUE.PUSH", "q", "1")
    with pytest.raises(hiredis.ReplyError, match="cluster support disabled"):
        raise client.do("QUEUE.CUT", "q")
    assert client.do("QUEUE.LEN", "q") == 1


def test_a_subscriber_reads_through_segments_in_order_and_each_value_once(client: ParsedSession) -> None:
    ids = push(client, 1, 2, 3)
    first = client.do("QUEUE.CUT", "q")
    ids += push(client, 4, 5)
    second = client.do("QUEUE.CUT", "q")
    ids += push(client, 6)
    assert ids == sorted(ids, key=lambda id: tuple(map(int, id.split(b"-")))) and len(set(ids)) == 6
    assert segments_of(client) == [first, second]
    assert client.do("QUEUE.LIST") == [b"q"], "a segment is no queue"
    assert (client.do("XLEN", "q"), client.do("QUEUE.LEN", "q")) == (1, 6)
    assert values(client.do("QUEUE.PEEK", "q", "s", "COUNT", 10)) == [1, 2, 3, 4, 5, 6]
    assert [pop(client, 1), pop(client, 3), pop(client, 10), pop(client, 10)] == [[1], [2, 3, 4], [5, 6], []]
    prove(client)


def test_a_cut_of_nothing_does_nothing(client: ParsedSession) -> None:
    assert client.do("QUEUE.CUT", "q") is None
    push(client, 1)
    assert client.do("QUEUE.CUT", "q") is not None
    assert client.do("QUEUE.CUT", "q") is None
    assert len(segments_of(client)) == 1


def test_a_closed_segment_never_grows(client: ParsedSession) -> None:
    push(client, 1)
    segment = client.do("QUEUE.CUT", "q")
    defer = ("TOPIC.DEFER", segment, 4_000_000_000_000, "a", "b")
    for words in (("XADD", segment, "*", "value", "2"), ("QUEUE.PUSH", segment, "2"), defer):
        with pytest.raises(hiredis.ReplyError, match="CLOSED"):
            raise client.do(*words)
    assert client.do("XLEN", segment) == 1


def test_ids_go_on_behind_a_cut_even_if_the_clock_goes_back(client: ParsedSession) -> None:
    (first,) = push(client, 1)
    client.do("QUEUE.CUT", "q")
    with pytest.raises(hiredis.ReplyError, match="smaller than the target stream top item"):
        raise client.do("XSETID", "q", "0-1")
    client.house.clock.now -= 1000
    (second,) = push(client, 2)
    assert [int(part) for part in second.split(b"-")] > [int(part) for part in first.split(b"-")]


def test_each_subscriber_knows_how_far_behind_it_is(client: ParsedSession) -> None:
    ids = push(client, 1, 2, 3)
    pop(client, 1)
    client.do("QUEUE.CUT", "q")
    ids += push(client, 4, 5)
    starts = {"all": "beginning", "none": "end", "seam": ids[2], "tail": ids[3], "within": ids[1]}
    for name, start in starts.items():
        client.do("QUEUE.SUBSCRIBER", "q", name, start)
    behind = {each[b"name"]: each[b"behind"] for each in client.do("QUEUE.LIST", "q")}
    assert behind == {b"s": 4, b"all": 5, b"none": 0, b"seam": 2, b"tail": 1, b"within": None}
    assert pop(client, 1) == [2]
    behind = {each[b"name"]: each[b"behind"] for each in client.do("QUEUE.LIST", "q")}
    assert behind[b"s"] == 3, "it has counted on, in the midst of a segment"
    assert pop(client, 2, "within") == [3, 4]
    behind = {each[b"name"]: each[b"behind"] for each in client.do("QUEUE.LIST", "q")}
    assert behind[b"within"] == 1
    assert pop(client, 9, "within") == [5]
    for name in (b"s", b"all", b"seam", b"tail", b"within"):
        pop(client, 9, name.decode())
    assert {each[b"behind"] for each in client.do("QUEUE.LIST", "q")} == {0}
    places = {each[b"name"]: each[b"segment"] for each in info(client)[b"subscribers"]}
    assert set(places.values()) == {b"q"}


def test_a_push_begins_a_new_segment_at_the_limits_of_the_queue(client: ParsedSession) -> None:
    client.do("TOPIC.CONFIG", "q", "SET", "SEGMENT-LENGTH", "10")
    for number in range(35):
        push(client, number)
    assert [segment[b"length"] for segment in info(client)[b"segments"]] == [10, 10, 10]
    client.do("TOPIC.CONFIG", "q", "SET", "SEGMENT-LENGTH", "none", "SEGMENT-BYTES", "500")
    for number in range(35, 70):
        push(client, number)
    sizes = [segment[b"bytes"] for segment in info(client)[b"segments"]]
    assert len(sizes) > 5 and all(500 <= size < 600 for size in sizes[4:])
    assert pop(client, 100) == list(range(70))
    assert client.do("TOPIC.CONFIG", "q", "GET")[b"segment-bytes"] == 500
    prove(client)


def test_a_subscriber_that_waits_gets_what_a_push_has_closed(client: ParsedSession, house: House) -> None:
    client.do("TOPIC.CONFIG", "q", "SET", "SEGMENT-LENGTH", "1")
    waiting = ParsedSession(house)
    assert waiting.do("QUEUE.POP", "q", "s", "BLOCK", 0) is False
    push(client, 1)
    assert waiting.heard()[1] == [b"value", b"1"]
    assert len(segments_of(client)) == 1


def test_all_but_the_entries_stays_with_the_queue(client: ParsedSession) -> None:
    push(client, 1, 2)
    client.do("TOPIC.CONFIG", "q", "SET", "RETAIN-AGE", "7d", "MAX-ENTRY-BYTES", "1kb")
    client.do("TOPIC.DEFER", "q", int(client.house.clock() * 1000) + 5000, "value", "later")
    client.do("QUEUE.SLEEP", "q", "s")
    before = client.do("TOPIC.CONFIG", "q", "GET")
    segment = client.do("QUEUE.CUT", "q")
    assert client.do("TOPIC.CONFIG", "q", "GET") == before
    assert [client.do("TOPIC.DEFERRED", name)[b"count"] for name in ("q", segment)] == [1, 0]
    assert client.do("QUEUE.LIST", segment) == []
    with pytest.raises(hiredis.ReplyError, match="ASLEEP"):
        raise client.do("QUEUE.POP", "q", "s")
    client.do("QUEUE.WAKEUP", "q", "s")
    client.house.clock.now += 6
    client.house.engine.cron(client.house.clock())
    assert [fields[1] for _, fields in client.do("QUEUE.POP", "q", "s", "COUNT", 9)] == [b"1", b"2", b"later"]
    prove(client)


def test_what_a_group_with_consumers_has_not_finished_with_stays(client: ParsedSession) -> None:
    ids = push(client, *range(10))
    client.do("XGROUP", "CREATE", "q", "g", "0")
    client.do("XREADGROUP", "GROUP", "g", "c", "COUNT", 6, "STREAMS", "q", ">")
    client.do("XACK", "q", "g", *ids[:4])
    client.do("QUEUE.CUT", "q")
    assert client.do("XLEN", "q") == 6
    assert [segment[b"length"] for segment in info(client)[b"segments"]] == [4]
    assert client.do("XPENDING", "q", "g")[0] == 2
    client.do("TOPIC.REQUEUE", "q", "g", ids[4])
    read = client.do("XREADGROUP", "GROUP", "g", "c", "COUNT", 100, "STREAMS", "q", ">")
    entries = read[b"q"] if isinstance(read, dict) else read[0][1]
    assert [int(fields[1]) for _, fields in entries] == [4, 6, 7, 8, 9]
    assert client.do("XACK", "q", "g", *ids[4:]) == 6
    assert pop(client, 100) == list(range(10))
    assert client.do("QUEUE.LEN", "q") == 10
    client.do("QUEUE.CUT", "q")
    assert client.do("XLEN", "q") == 0
    assert client.do("QUEUE.LEN", "q") == 10
    prove(client)


def test_a_queue_whose_groups_need_all_of_it_is_not_cut(client: ParsedSession) -> None:
    push(client, 1)
    client.do("XGROUP", "CREATE", "q", "g", "0")
    client.do("XREADGROUP", "GROUP", "g", "c", "STREAMS", "q", ">")
    with pytest.raises(hiredis.ReplyError, match="BUSYGROUP"):
        raise client.do("QUEUE.CUT", "q")
    client.do("TOPIC.CONFIG", "q", "SET", "SEGMENT-LENGTH", "1")
    push(client, 2)
    assert segments_of(client) == []


def test_a_group_is_told_that_its_entries_are_in_a_segment(client: ParsedSession) -> None:
    push(client, 1)
    client.do("QUEUE.CUT", "q")
    client.do("XGROUP", "CREATE", "q", "late", "0")
    with pytest.raises(hiredis.ReplyError, match="closed segment"):
        raise client.do("XREADGROUP", "GROUP", "late", "c", "STREAMS", "q", ">")


def test_what_goes_from_the_chain_is_removed(client: ParsedSession, house: House) -> None:
    for number in range(4):
        push(client, number)
        client.do("QUEUE.CUT", "q")
    names = segments_of(client)
    assert client.do("QUEUE.DROP", "q", "nothing") == 0
    assert client.do("QUEUE.DROP", "q", names[1]) == 1
    assert needless(house) == {names[1]}
    assert client.do("QUEUE.LEN", "q") == 3
    assert pop(client, 1) == [0]
    assert pop(client, 9) == [2, 3]
    client.do("RENAME", "q", "{q}renamed")
    client.do("DEL", "{q}renamed")
    assert needless(house) == set(names)


def needless(house: House) -> set[bytes]:
    return set(house.data.read(lambda txn: segments.forsaken(txn, 100)))


@pytest.mark.parametrize("limit", [("RETAIN-LENGTH", "12"), ("RETAIN-BYTES", "600"), ("RETAIN-AGE", "10s")])
def test_retention_takes_whole_segments_the_oldest_first(
    client: ParsedSession, house: House, limit: tuple[str, str]
) -> None:
    client.do("TOPIC.CONFIG", "q", "SET", "SEGMENT-LENGTH", "5", *limit)
    for number in range(34):
        push(client, number)
        house.clock.now += 1
        house.engine.cron(house.clock())
    for _ in range(20):
        house.engine.cron(house.clock())
    found = pop(client, 100)
    assert found == list(range(found[0], 34))
    assert found[0] % 5 == 0, "whole segments"
    assert 10 <= len(found) < 17
    assert client.do("QUEUE.LEN", "q") == len(found)
    assert len(needless(house)) == found[0] // 5
    prove(client)


def test_an_emptied_queue_has_no_segments(client: ParsedSession, house: House) -> None:
    push(client, 1)
    client.do("QUEUE.CUT", "q")
    push(client, 2)
    client.do("TOPIC.EMPTY", "q")
    assert (segments_of(client), client.do("QUEUE.LEN", "q"), len(needless(house))) == ([], 0, 1)
    assert pop(client, 9) == []
    push(client, 3)
    assert pop(client, 9) == [3]


def test_a_copy_has_what_is_under_the_queue_s_own_key(client: ParsedSession, house: House) -> None:
    push(client, 1)
    client.do("QUEUE.CUT", "q")
    push(client, 2)
    client.do("COPY", "q", "{q}copy")
    client.do("DEL", "{q}copy")
    assert needless(house) == set(), "segments belong to one queue"
    assert pop(client, 9) == [1, 2]


class Model:
    """What should come, in plain lists."""

    def __init__(self) -> None:
        self.history: list[tuple[bytes, int]] = []
        self.places: dict[str, int] = {"s": 0}


@pytest.mark.parametrize("seed", range(12))
def test_a_chain_is_as_one_list(house: House, seed: int) -> None:
    dice = random.Random(seed)
    client, model = member(house), Model()
    client.do("XGROUP", "CREATE", "q", "g", "0")
    client.do("XGROUP", "CREATECONSUMER", "q", "g", "c")
    delivered: list[tuple[bytes, int]] = []
    done: list[int] = []
    numbers = iter(range(1 << 30))
    if seed % 3 == 0:
        client.do("TOPIC.CONFIG", "q", "SET", "SEGMENT-LENGTH", "7")
    for _ in range(250):
        match dice.randrange(9):
            case 0 | 1:
                some = [next(numbers) for _ in range(dice.randint(1, 9))]
                model.history += zip(push(client, *some), some, strict=True)
                house.clock.now += dice.choice([-0.002, 0, 0.001, 5])
            case 2:
                client.do("QUEUE.CUT", "q")
            case 3:
                name, place = f"s{len(model.places)}", dice.randint(0, len(model.history))
                start = model.history[place - 1][0] if place else b"beginning"
                client.do("QUEUE.SUBSCRIBER", "q", name, start)
                model.places[name] = place
            case 4 | 5:
                who, count = dice.choice(list(model.places)), dice.randint(1, 20)
                place = model.places[who]
                wanted = [number for _, number in model.history[place : place + count]]
                assert values(client.do("QUEUE.PEEK", "q", who, "COUNT", count)) == wanted
                assert pop(client, count, who) == wanted
                model.places[who] = place + len(wanted)
            case 6:
                read = client.do("XREADGROUP", "GROUP", "g", "c", "COUNT", dice.randint(1, 9), "STREAMS", "q", ">")
                for _, entries in (read.items() if isinstance(read, dict) else read or ()):
                    delivered += [(id, int(fields[1])) for id, fields in entries]
            case 7 if delivered:
                id, number = delivered.pop(dice.randrange(len(delivered)))
                if dice.random() < 0.3:
                    assert client.do("TOPIC.REQUEUE", "q", "g", id) == 1
                else:
                    assert client.do("XACK", "q", "g", id) == 1
                    done.append(number)
            case 8:
                known = {each[b"name"]: each[b"behind"] for each in client.do("QUEUE.LIST", "q")}
                for who, place in model.places.items():
                    assert known[who.encode()] in (None, len(model.history) - place)
                assert client.do("QUEUE.LEN", "q") == len(model.history)
                spans = [(each[b"first"], each[b"last"]) for each in info(client)[b"segments"]]
                flat = [tuple(map(int, id.split(b"-"))) for span in spans for id in span]
                assert all(one <= other for one, other in pairwise(flat))
    prove(client)
    while True:
        read = client.do("XREADGROUP", "GROUP", "g", "c", "STREAMS", "q", ">")
        if not read:
            break
        for _, entries in (read.items() if isinstance(read, dict) else read):
            delivered += [(id, int(fields[1])) for id, fields in entries]
    assert sorted([*done, *(number for _, number in delivered)]) == [number for _, number in model.history]
