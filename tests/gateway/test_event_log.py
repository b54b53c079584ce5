"""Pages of the topic, with and without the index: the same events, in the same order, and a rare type alone."""

from __future__ import annotations

import asyncio
import gc
import random
import time
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest
from bus import Bus
from event_source import events, lines_of

from rlite_pubsub.engine.commit import Acknowledged
from rlite_pubsub.engine.turn import end_turn
from rlite_pubsub.gateway.events import event
from rlite_pubsub.gateway.events.event_log import EVENTS, PAGE_BYTES, PAGE_IDS, EventLog
from rlite_pubsub.gateway.events.indexing import REST_SECONDS, STEP_CHUNKS
from rlite_pubsub.gateway.events.matcher import Matcher
from rlite_pubsub.gateway.events.posting import NoRoom, PostRefused
from rlite_pubsub.keyspace.sweeping import sweep_some
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.storage.environment import Environment
from rlite_pubsub.storage.errors import StoreFull
from rlite_pubsub.storage.topics import chunks, entry_ids, type_index
from rlite_pubsub.storage.topics.chunks import Chunk
from rlite_pubsub.storage.turn import Turn


@pytest.mark.parametrize("seed", range(8))
def test_pages_have_every_event_once_however_much_of_the_topic_is_indexed(bus: Bus, seed: int) -> None:
    dice = random.Random(seed)
    for _ in range(dice.randint(1, 6)):
        rare = dice.choice(["rare", "odd"])
        bus.append(dice.choices(["common", "usual", rare], [100, 80, dice.randint(1, 3)], k=dice.randint(1, 3000)))
        if dice.random() < 0.6:
            bus.index()
    gone = [id for id, _ in dice.sample(bus.said, len(bus.said) // 10)]
    topic = bus.keyspace.for_change(0, event.TOPIC)
    assert isinstance(topic, Topic)
    topic.delete(gone)
    bus.commit()
    bus.said = [each for each in bus.said if each[0] not in set(gone)]
    for after in (entry_ids.MIN, *[id for id, _ in dice.sample(bus.said, min(4, len(bus.said)))]):
        assert [each.id for each in bus.read(after=after)] == bus.expected(after=after)
        wanted = {"^rare$": ("rare",), "^odd|rare": ("odd", "rare"), "^u": ("usual",), "^$": ("",)}
        for pattern, types in wanted.items():
            found = bus.read(pattern, after=after)
            assert [each.id for each in found] == bus.expected(*types, after=after)


def test_rare_type_is_read_without_the_others(bus: Bus) -> None:
    bus.append((["common"] * 999 + ["rare"]) * 20)
    bus.index()
    decoded: list[bytes] = []
    decode = event.decode
    counting = EVENTS._replace(decode=lambda entry: decoded.append(entry) or decode(entry))  # type: ignore[func-returns-value]
    bus.log = EventLog(bus.keyspace, counting)
    assert [each.id for each in bus.read("^rare$")] == bus.expected("rare")
    assert len(decoded) == 20


@pytest.mark.sources("counts what compiled code reads")
def test_replay_of_a_rare_type_touches_the_chunks_that_have_it_and_no_other(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    rare, every = 40, 1000
    bus.append((["common"] * (every - 1) + ["rare"]) * rare, b"x" * 100)
    bus.index()
    read: list[bytes] = []
    real = chunks.forward

    def counted(*about: Any) -> Iterator[Chunk]:
        for each in real(*about):
            read.append(each.key)
            yield each

    monkeypatch.setattr(chunks, "forward", counted)
    assert len(bus.read()) == rare * every
    all_of_them = len(set(read))
    read.clear()
    assert [each.id for each in bus.read("^rare$")] == bus.expected("rare")
    assert len(read) == len(set(read)) == rare
    assert all_of_them > 10 * rare


@pytest.mark.sources("forbids compiled code to read")
def test_type_that_is_not_there_is_answered_without_the_topic(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    bus.append(["common"] * 10_000)
    bus.index()

    def untouchable(*about: Any) -> Iterator[Any]:
        raise AssertionError("the topic was read")
        yield

    monkeypatch.setattr(chunks, "between", untouchable)
    assert bus.read("^nothing$") == []


def test_topic_is_taken_in_by_steps_and_can_be_read_between_them(bus: Bus) -> None:
    bus.append(["common"] * 20_000 + ["rare"], b"x" * 100)
    assert bus.indexing.step()
    bus.commit()
    assert entry_ids.MIN < bus.indexed() < bus.said[-1][0]
    assert [each.id for each in bus.read("rare")] == bus.expected("rare")
    assert bus.index() > 20_000 * 150 / 4096 / STEP_CHUNKS / 2
    assert bus.indexed() == bus.said[-1][0]


def test_index_follows_within_a_second_and_rests_then(bus: Bus) -> None:
    bus.append(["a"] * 10)
    bus.indexing.note()
    bus.indexing.note()
    bus.house.timers.advance(REST_SECONDS)
    bus.commit()
    assert bus.indexed() == bus.said[-1][0]
    before = bus.keyspace.environment.last_commit()
    bus.house.timers.advance(REST_SECONDS)
    bus.commit()
    assert bus.keyspace.environment.last_commit() == before


def test_what_is_trimmed_goes_out_of_the_index(bus: Bus) -> None:
    bus.append(["old"] * 3000 + ["new"] * 3000)
    bus.index()
    topic = bus.keyspace.for_change(0, event.TOPIC)
    assert isinstance(topic, Topic)
    topic.trim(3500)
    bus.commit()
    bus.index()
    number = topic.number
    (left,) = bus.keyspace.environment.read(lambda txn: list(type_index.types(txn, number)))
    assert left.name == b"new" and 2500 <= left.entries <= 2500 + type_index.ROW_IDS


def test_deleted_topic_takes_its_index_with_it(bus: Bus) -> None:
    bus.append(["a"] * 10_000)
    bus.index()
    bus.keyspace.delete(0, event.TOPIC)
    bus.commit()
    while sweep_some(bus.keyspace.parts, 1000):
        bus.commit()
    bus.commit()
    assert not bus.keyspace.environment.read(
        lambda txn: [key for key, _ in txn.cursor() if key.startswith(b"Y")]
    )


# -- posting, where the store or the disk refuses


class Turns:
    def __init__(self) -> None:
        self.wanted = 0

    def soon(self) -> None:
        self.wanted += 1


async def test_posts_of_a_turn_are_one_commit(bus: Bus) -> None:
    turns = Turns()
    posting = bus.posting(turns.soon)
    before = bus.keyspace.environment.last_commit()
    posts = [posting.post(b"events", (b"type", b"t", b"body", b"%d" % number)) for number in range(50)]
    assert turns.wanted == 1
    assert not any(post.done() for post in posts)
    bus.house.engine.commit()
    assert not any(post.done() for post in posts)
    end_turn(bus.house.engine.hub.agenda)
    assert [await post for post in posts] == sorted({await post for post in posts})
    assert bus.keyspace.environment.last_commit() == before + 1


def never_committing(environment: Environment) -> Callable[..., None]:
    """Its `end`, on a disk that is full."""
    end = environment.end

    def end_full(turn: Turn, *, commit: bool) -> None:
        end(turn, commit=False)
        if commit:
            raise StoreFull(environment.path, 1)

    return end_full


async def test_post_is_refused_where_the_commit_fails(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    posting = bus.posting()
    post = posting.post(b"events", (b"type", b"t", b"body", b"x"))

    with monkeypatch.context() as patched:
        patched.setattr(bus.keyspace.environment, "end", never_committing(bus.keyspace.environment))
        bus.house.engine.commit()
    end_turn(bus.house.engine.hub.agenda)
    with pytest.raises(NoRoom):
        await post
    assert bus.keyspace.find(0, event.TOPIC) is None


async def test_large_batch_that_cannot_be_committed_is_refused_whole_at_once(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 20_000
    posting = bus.posting()
    posts = [posting.post(b"events", (b"type", b"t")) for _ in range(count)]

    with monkeypatch.context() as patched:
        patched.setattr(bus.keyspace.environment, "end", never_committing(bus.keyspace.environment))
        began = time.process_time()
        bus.house.engine.commit()
        end_turn(bus.house.engine.hub.agenda)
    assert time.process_time() - began < 2  # looking for each reply among all others takes ten times as long
    assert {type(post.exception()) for post in posts} == {NoRoom} and not posting.posted


async def test_post_waits_for_the_disk_where_its_answer_is_withheld(bus: Bus) -> None:
    engine = bus.house.engine
    posting = bus.posting()
    post = posting.post(b"events", (b"type", b"t", b"body", b"x"))
    withheld: Acknowledged = []
    engine.key_commit.withhold_by(withheld.extend, withheld.extend)
    engine.commit()
    ((session, _),) = withheld
    engine.hub.withhold(session)
    end_turn(engine.hub.agenda)
    await asyncio.sleep(0)
    assert not post.done()
    engine.hub.let_go(session)
    end_turn(engine.hub.agenda)
    assert await post


async def test_posts_of_one_turn_that_are_more_than_the_segments_leave_no_more_than_these(bus: Bus) -> None:
    engine = bus.house.engine
    posting = bus.posting()
    engine.settings.set("events-segments", [b"4"])
    engine.settings.set("events-segment-size", [b"100kb"])
    posts = [posting.post(b"events", (b"type", b"t", b"body", b"x" * 60_000)) for _ in range(100)]
    engine.commit()
    end_turn(engine.hub.agenda)
    assert len([await post for post in posts]) == 100
    assert 300_000 < bus.topic().size_bytes <= 400 * 1024


async def test_posts_wait_for_the_next_turn_where_this_one_is_undone(bus: Bus) -> None:
    turns = Turns()
    posting = bus.posting(turns.soon)
    bus.keyspace.fail(ValueError("a command broke"))
    post = posting.post(b"events", (b"type", b"t", b"body", b"x"))
    bus.house.engine.commit()
    end_turn(bus.house.engine.hub.agenda)
    assert not post.done() and turns.wanted == 2
    bus.house.engine.commit()
    end_turn(bus.house.engine.hub.agenda)
    assert await post


async def test_posts_that_nobody_can_store_any_more_are_refused(bus: Bus) -> None:
    posting = bus.posting()
    post = posting.post(b"events", (b"type", b"t", b"body", b"x"))
    posting.close()
    with pytest.raises(PostRefused):
        await post


def test_page_that_takes_exactly_as_many_ids_as_it_may_is_not_taken_for_the_last(bus: Bus) -> None:
    rare, row = 4 * type_index.ROW_IDS, type_index.ROW_IDS
    bus.append(["rare"] * rare + ["common"] * rare * 4)
    bus.index()
    after = bus.said[3 * row - PAGE_IDS - 1][0]  # what is left of its row and two more make a page
    assert [each.id for each in bus.read("rare", after=after)] == bus.expected("rare", after=after)


def test_page_of_a_rare_type_has_few_events_where_they_are_large(bus: Bus) -> None:
    for _ in range(40):
        bus.append(["rare"], b"x" * 200_000)
        bus.append(["common"] * 5)
    bus.index()
    page = bus.log.page(entry_ids.MIN, Matcher(["rare"]))
    assert PAGE_BYTES < len(page.data) < PAGE_BYTES + 300_000
    assert [event.id for event in bus.read("rare")] == bus.expected("rare")


def test_pages_that_readers_share_take_bounded_memory(bus: Bus) -> None:
    for _ in range(40):
        bus.append(["t"], b"x" * 280_000)
    tracemalloc.start()
    try:
        assert len(bus.read()) == 40
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] < 8 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("is_indexed", [False, True])
def test_page_ends_where_matching_takes_long_and_the_next_goes_on_there(bus: Bus, is_indexed: bool) -> None:
    types = [f"type{number % 50}" for number in range(200)]
    bus.append(types)
    if is_indexed:
        bus.index()
    matcher = Matcher(["[13579]$"], count(0, 1).__next__)  # one type takes a second
    after, data, pages = entry_ids.MIN, b"", 0
    while not (page := bus.log.page(after, matcher)).is_end:
        after, data, pages = page.after, data + page.data, pages + 1
    data += page.data
    assert pages >= 10
    found = [event.id for event in events(lines_of(data.decode()))]
    assert found == bus.expected(*[type for type in set(types) if type[-1] in "13579"])
