"""Slots that move while queues are used, and members that are killed in the midst of it: nothing acknowledged is lost,
nothing comes twice, and the order stays."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from patience import PATIENCE_S, until

from compat_tests.servers import SocketServer
from compat_tests.wholes import OURS, ROOT, Ours, shard
from rlite_pubsub.engine.shards.directory import read as read_directory
from rlite_pubsub.engine.shards.slots import slot_of
from rlite_pubsub.queues import Queue, Subscriber
from rlite_pubsub.topics.route import MemberRoute

LOST = (redis.ConnectionError, redis.TimeoutError, OSError)
QUEUE = "jobs"


@pytest.fixture(scope="module")
def _whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ours]:
    members = Ours(tmp_path_factory.mktemp("whole"))
    yield members
    members.stop()
    prove(members)


@pytest.fixture
def whole(_whole: Ours) -> Iterator[Ours]:
    """One for all tests: to make one takes longer than a test. Slots are wherever the test before has left them."""
    yield _whole
    leave_empty(_whole)


def leave_empty(whole: Ours) -> None:
    """All its members are there, as they were started first, and have nothing."""
    for number in range(len(whole.servers)):
        if whole.is_dead(number):
            whole.start(number)
        with whole.servers[number].client() as client:
            client.flushall()


def prove(whole: Ours) -> None:
    """Every record of every member, and every block, agrees with all others."""
    for folder in whole.folders:
        prove_store(folder)


def prove_store(folder: Path) -> None:
    words = [sys.executable, "-m", "rlite_pubsub", "doctor", "--deep", "-s", str(folder)]
    said = subprocess.run(words, capture_output=True, text=True, cwd=ROOT).stdout
    assert "proof      0 fault(s)" in said, said


def owner_of(whole: Ours, key: str) -> int:
    return next(
        number for number, runs in enumerate(whole.runs())
        if any(first <= slot_of(key.encode()) <= last for first, last in runs)
    )  # fmt: skip


class History:
    """A producer, a popping subscriber and a group's consumer on one queue, and what they were told."""

    def __init__(self, whole: Ours) -> None:
        self.pushed: list[int] = []
        self.popped: list[int] = []
        self.done: list[int] = []
        self.lost_pops = 0
        self.lost_reads = 0
        self._ends = threading.Event()
        self._failures: list[BaseException] = []
        self._urls = [f"redis://127.0.0.1:{port}/0" for port in whole.ports]
        with Queue(self._urls[0], QUEUE) as queue:
            queue.create_subscriber("popper")
            route = MemberRoute(self._urls[0])
            route.ask("XGROUP", "CREATE", QUEUE, "group", "0")
            route.close()
        works = (self._push, self._pop, self._work)
        self._threads = [
            threading.Thread(target=self._run, args=pair) for pair in zip(works, self._urls, strict=True)
        ]
        for thread in self._threads:
            thread.start()

    def _run(self, work: Callable[[str], None], url: str) -> None:
        try:
            work(url)
        except BaseException as failure:
            self._failures.append(failure)

    def _push(self, url: str) -> None:
        with Queue(url, QUEUE) as queue:
            number = 0
            while not self._ends.is_set():
                number += 1
                try:
                    queue.push(str(number))
                    self.pushed.append(number)
                except LOST:
                    time.sleep(0.01)
                time.sleep(0.002)

    def _pop(self, url: str) -> None:
        with Queue(url, QUEUE) as queue:
            popper = queue.subscriber("popper")
            while True:
                try:
                    item = popper.pop(0.1)
                except LOST:
                    self.lost_pops += 1
                    time.sleep(0.01)
                    continue
                if item is not None:
                    self.popped.append(int(item.value))
                elif self._ends.is_set():
                    return

    def _work(self, url: str) -> None:
        route = MemberRoute(url)
        start = "0"  # what was delivered, and whose delivery it has not heard of, first
        while True:
            try:
                read = ("XREADGROUP", "GROUP", "group", "worker", "COUNT", 20, "BLOCK", 100, "STREAMS", QUEUE, start)
                answer = route.ask(*read)
                entries = entries_of(answer)
                for id, number in entries:
                    if route.ask("XACK", QUEUE, "group", id):
                        self.done.append(number)
                    else:
                        self.done.append(-number)  # its acknowledgement was done, and its reply lost
                if not entries:
                    if start == ">" and self._ends.is_set():
                        break
                    start = ">"
            except LOST:
                self.lost_reads += 1
                start = "0"
                time.sleep(0.01)
        route.close()

    def grow(self, count: int) -> None:
        """Until so many more have been pushed, popped and done."""
        wanted = [len(each) + count for each in (self.pushed, self.popped, self.done)]

        def has_grown() -> bool:
            now = [len(each) for each in (self.pushed, self.popped, self.done)]
            return bool(self._failures) or all(one >= other for one, other in zip(now, wanted, strict=True))

        until(has_grown, "more of the history")

    def check(self) -> None:
        """End it, and see that it can have been."""
        self._ends.set()
        for thread in self._threads:
            thread.join(PATIENCE_S)
            assert not thread.is_alive()
        assert self._failures == []
        assert self.popped == sorted(set(self.popped)), "in order, and none twice"
        missing = set(self.pushed) - set(self.popped)
        assert len(missing) <= self.lost_pops, f"{missing} were acknowledged, and never popped"
        done = [number for number in self.done if number > 0]
        assert len(done) == len(set(done)), "none is acknowledged twice"
        lost = set(self.pushed) - {abs(number) for number in self.done}
        with Queue(self._urls[0], QUEUE) as queue:
            (status,) = [each for each in queue.list() if each.name == "group"]
            assert status.behind == 0
        # an XACK that was done and whose reply was lost takes its entry out of sight
        assert len(lost) <= self.lost_reads, f"{lost} were acknowledged, and never done"


def entries_of(answer: Any) -> list[tuple[bytes, int]]:
    found = []
    for _, entries in answer or ():
        found += [(id, int(words[b"value"])) for id, words in entries if words]
    return found


SOURCE = [
    "shard-begun",
    "shard-copied",
    "shard-given",
    "shard-sent",
    "shard-taken",
    "shard-dropping",
    "shard-dropped",
    "shard-forgotten",
]
TARGET = ["shard-expected", "shard-rows", "shard-adopted", "shard-learned"]


@pytest.mark.parametrize("step", [*SOURCE, *TARGET])
def test_a_member_that_is_killed_at_any_step_of_a_move_loses_and_doubles_nothing(whole: Ours, step: str) -> None:
    source = owner_of(whole, QUEUE)
    target = (source + 1) % 3
    victim = source if step in SOURCE else target
    with Queue(f"redis://127.0.0.1:{whole.ports[0]}/0", QUEUE) as queue:
        queue.push(*[str(-number) for number in range(1, 300)])  # more than a row
        queue.delete()
    whole.kill(victim)
    whole.start(victim, step)
    history = History(whole)
    history.grow(100)
    shard("move", "--no-wait", whole.addresses[(victim + 1) % 3], whole.addresses[target], QUEUE)
    until(lambda: whole.is_dead(victim), f"the end at {step}")
    whole.start(victim)
    shard("move", whole.addresses[2], whole.addresses[target], QUEUE)
    assert owner_of(whole, QUEUE) == target
    history.grow(100)
    history.check()
    with whole.servers[source].client() as client:
        assert client.dbsize() == 0


def test_pops_go_on_while_a_queue_goes_round_and_members_are_killed(whole: Ours) -> None:
    seed = random.randrange(1 << 30)
    dice = random.Random(seed)
    print("seed", seed)
    history = History(whole)
    for turn in range(3):
        history.grow(50)
        source = owner_of(whole, QUEUE)
        target = (source + 1 + turn % 2) % 3
        shard("move", "--no-wait", whole.addresses[source], whole.addresses[target], QUEUE)
        time.sleep(dice.random() * 0.05)
        victim = turn % 3
        whole.kill(victim)
        whole.start(victim)
        shard("move", whole.addresses[turn % 3], whole.addresses[target], QUEUE)
        assert owner_of(whole, QUEUE) == target
    history.grow(50)
    history.check()


def test_all_that_a_topic_has_moves_with_it(whole: Ours) -> None:
    source = owner_of(whole, QUEUE)
    target = (source + 1) % 3
    with whole.servers[source].client(decode_responses=True) as client:
        ids = [client.xadd(QUEUE, {"n": number}) for number in range(500)]
        client.xdel(QUEUE, ids[3], ids[250])
        client.xtrim(QUEUE, maxlen=490, approximate=False)
        client.xgroup_create(QUEUE, "g", "0")
        options = ("TIMEOUT", 60_000, "MAXDELIVERIES", 5, "DEADLETTER", f"{{{QUEUE}}}.dead")
        client.execute_command("TOPIC.GROUP", QUEUE, "g", *options)
        client.xreadgroup("g", "ada", {QUEUE: ">"}, count=20)
        client.xreadgroup("g", "bob", {QUEUE: ">"}, count=20)
        client.xack(QUEUE, "g", ids[15])
        client.execute_command("TOPIC.REQUEUE", QUEUE, "g", ids[20], "DELAY", 3_600_000)
        client.execute_command("TOPIC.DEFER", QUEUE, 4_000_000_000_000, "n", "later")
        client.execute_command("TOPIC.CONFIG", QUEUE, "SET", "RETAIN-AGE", "7d")
        client.execute_command("TOPIC.PAUSE", QUEUE, "g")
        client.pexpireat(QUEUE, 4_000_000_000_000)
        client.set(f"{{{QUEUE}}}text", "a", px=3_600_000)
        client.rpush(f"{{{QUEUE}}}list", *range(1000))
        client.hset(f"{{{QUEUE}}}hash", mapping={str(number): number for number in range(1000)})
        client.execute_command("HPEXPIRE", f"{{{QUEUE}}}hash", 3_600_000, "FIELDS", 1, "7")
        client.zadd(f"{{{QUEUE}}}zset", {str(number): number for number in range(1000)})
        before = seen(client)
    shard("move", whole.addresses[0], whole.addresses[target], QUEUE)
    with whole.servers[target].client(decode_responses=True) as client:
        assert seen(client) == before
        assert client.dbsize() == 5
    with whole.servers[source].client() as client:
        assert client.dbsize() == 0


def seen(client: redis.Redis) -> list[Any]:
    ttl = client.execute_command("HPEXPIRETIME", f"{{{QUEUE}}}hash", "FIELDS", 1, "7")
    return [
        client.xrange(QUEUE),
        client.xinfo_stream(QUEUE, full=True),
        client.execute_command("TOPIC.INFO", QUEUE),
        client.execute_command("TOPIC.DEFERRED", QUEUE),
        client.execute_command("TOPIC.GROUP", QUEUE, "g"),
        client.pexpiretime(QUEUE),
        client.get(f"{{{QUEUE}}}text"),
        client.pexpiretime(f"{{{QUEUE}}}text"),
        client.lrange(f"{{{QUEUE}}}list", 0, -1),
        client.hgetall(f"{{{QUEUE}}}hash"),
        ttl,
        client.zrange(f"{{{QUEUE}}}zset", 0, -1, withscores=True),
    ]


def test_who_waits_for_a_key_that_moves_is_sent_on(whole: Ours) -> None:
    source = owner_of(whole, QUEUE)
    target = (source + 1) % 3
    slot, port = slot_of(QUEUE.encode()), whole.ports[target]
    with whole.servers[source].wire() as wire:
        wire.say(b"BLPOP", QUEUE.encode(), b"0")
        shard("move", whole.addresses[0], whole.addresses[target], QUEUE)
        assert wire.read() == b"-ASK %d 127.0.0.1:%d\r\n" % (slot, port)
        assert wire.ask(b"BLPOP", QUEUE.encode(), b"0") == b"-MOVED %d 127.0.0.1:%d\r\n" % (slot, port)


def test_what_another_server_of_the_store_has_swept_away_is_not_taken(whole: Ours) -> None:
    source = owner_of(whole, QUEUE)
    target = (source + 1) % 3
    slot = slot_of(QUEUE.encode())
    with whole.servers[target].client() as client:
        directory = read_directory(client.execute_command("SHARD.DIRECTORY"))
        ids = {member.port: member for member in directory.members}
        after = directory.given([slot], ids[whole.ports[target]]).text
        token = ids[whole.ports[source]].id + b"-token"
        assert client.execute_command("SHARD.BEGIN", token, after, f"{slot}-{slot}") == 1
        client.execute_command("SHARD.ROWS", token, QUEUE, 0)
        SocketServer("ours", OURS, whole.folders[target]).stop()
        with pytest.raises(redis.ResponseError, match="another server has begun on this store"):
            client.execute_command("SHARD.ROWS", token, QUEUE, 0)
        with pytest.raises(redis.ResponseError, match="another server has begun on this store"):
            client.execute_command("SHARD.TAKE", token, after, 1, QUEUE, 0, 0, b"")
    assert owner_of(whole, QUEUE) == source


def test_a_member_that_is_added_gets_its_share(tmp_path: Path) -> None:
    whole = Ours(tmp_path, 2)
    with redis.RedisCluster(host="127.0.0.1", port=whole.ports[0]) as client:
        for number in range(300):
            client.set(f"key-{number}", number)
    (tmp_path / "new").mkdir()
    new = SocketServer("ours", OURS, tmp_path / "new")
    try:
        shard("add", whole.addresses[0], f"127.0.0.1:{new.port}")
        assert "5461 slots to be moved" in shard("rebalance", whole.addresses[1])
        with new.client() as client:
            assert 50 < client.dbsize() < 150
        with redis.RedisCluster(host="127.0.0.1", port=whole.ports[0]) as client:
            assert [client.get(f"key-{number}") for number in range(300)] == [b"%d" % number for number in range(300)]
    finally:
        new.stop()
        whole.stop()


COLD = ("--cold-store", "local", "--cold-block-size", "64kb", "--cold-grace", "5")


@pytest.fixture(scope="module")
def _cold(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ours]:
    pytest.importorskip("pyarrow")
    members = Ours(tmp_path_factory.mktemp("cold"), 3, *COLD)
    yield members
    members.stop()
    prove(members)


@pytest.fixture
def cold(_cold: Ours) -> Iterator[Ours]:
    """As `whole`, with blocks."""
    yield _cold
    leave_empty(_cold)


def cold_entries(client: redis.Redis) -> int:
    return int(client.execute_command("TOPIC.INFO", QUEUE)["cold-entries"])


BLOCK_STEPS = ["shard-block-sent", "shard-block-offered", "shard-block-written", "shard-block-mirrored"]
"""The first is the sender's."""


@pytest.mark.parametrize("step", ["", "shard-copied", "shard-given", "shard-adopted", "shard-dropped", *BLOCK_STEPS])
def test_a_queue_s_cold_entries_come_with_it_in_their_order(cold: Ours, step: str) -> None:
    source = owner_of(cold, QUEUE)
    target = (source + 1) % 3
    victim = target if step in ("shard-adopted", *BLOCK_STEPS[1:]) else source
    if step:
        cold.kill(victim)
        cold.start(victim, step)
    with Queue(f"redis://127.0.0.1:{cold.ports[0]}/0", QUEUE) as queue:
        fill(queue, 0, 3000)
        popper = queue.create_subscriber("popper")
        assert [int(item.value) for item in popper.pop_many(700)] == list(range(700))
        with cold.servers[source].client(decode_responses=True) as client:
            until(lambda: cold_entries(client) > 1000, "blocks")
            ids = [id for id, _ in client.xrange(QUEUE, count=900)]
            client.xdel(QUEUE, ids[750], ids[800])
            client.xtrim(QUEUE, maxlen=2990, approximate=False)
            before = client.xrange(QUEUE)
            sealed = [about for _, *about in blocks_of(client)]
        shard("move", *(["--no-wait"] if step else []), cold.addresses[(victim + 1) % 3], cold.addresses[target], QUEUE)
        if step:
            until(lambda: cold.is_dead(victim), f"the end at {step}")
            if step in BLOCK_STEPS[1:]:
                prove_store(cold.folders[victim])  # with a topic that has not arrived
            cold.start(victim)
            shard("move", cold.addresses[2], cold.addresses[target], QUEUE)
        with cold.servers[target].client(decode_responses=True) as client:
            assert client.xrange(QUEUE) == before
            assert client.xlen(QUEUE) == len(before)
            there = [about for _, *about in blocks_of(client)]
            assert there[: len(sealed)] == sealed, "they have come as they were sealed"
        rest = [number for number in range(700, 3000) if number not in (750, 800)]
        assert [int(item.value) for item in popper.pop_many(3000)] == rest
    with cold.servers[source].client() as client:
        assert client.dbsize() == 0
    with cold.servers[target].client(decode_responses=True) as client:
        until(lambda: files_in(cold, target) == {path for path, *_ in blocks_of(client)}, "an end of others' files")
    until(lambda: files_in(cold, source) == set(), "an end of what has moved")


def fill(queue: Queue, start: int, stop: int) -> None:
    """Push these numbers, each in a hundred digits."""
    for at in range(start, stop, 100):
        queue.push(*[f"{number:0100}" for number in range(at, at + 100)])


def popped(popper: Subscriber, count: int) -> list[int]:
    return [int(item.value) for item in popper.pop_many(count)]


def test_a_member_without_a_cold_store_gets_cold_entries_as_rows(cold: Ours) -> None:
    source = owner_of(cold, QUEUE)
    target = (source + 1) % 3
    cold.kill(target)
    cold.start(target, "", "--cold-store", "no")
    with Queue(f"redis://127.0.0.1:{cold.ports[0]}/0", QUEUE) as queue:
        fill(queue, 0, 3000)
        popper = queue.create_subscriber("popper")
        with cold.servers[source].client(decode_responses=True) as client:
            until(lambda: cold_entries(client) > 1000, "blocks")
            before = client.xrange(QUEUE)
        shard("move", cold.addresses[0], cold.addresses[target], QUEUE)
        with cold.servers[target].client(decode_responses=True) as client:
            assert client.xrange(QUEUE) == before
            assert cold_entries(client) == 0
        until(lambda: files_in(cold, target) == set(), "an end of what was there before")
        assert popped(popper, 3000) == list(range(3000))
    until(lambda: files_in(cold, source) == set(), "an end of what has moved")
    cold.kill(target)


@pytest.mark.parametrize(("damage", "step"), [("changed", ""), ("gone", ""), ("changed", "shard-given")])
def test_a_queue_with_a_damaged_block_stays_until_the_block_is_mended(cold: Ours, damage: str, step: str) -> None:
    source = owner_of(cold, QUEUE)
    target = (source + 1) % 3
    if step:
        cold.kill(source)
        cold.start(source, step)
    with Queue(f"redis://127.0.0.1:{cold.ports[0]}/0", QUEUE) as queue:
        fill(queue, 0, 3000)
        popper = queue.create_subscriber("popper")
        with cold.servers[source].client(decode_responses=True) as client:
            until(lambda: cold_entries(client) > 1000, "blocks")
            path = cold.folders[source] / "cold" / blocks_of(client)[1][0]
        whole_file = path.read_bytes()
        if step:
            shard("move", "--no-wait", cold.addresses[target], cold.addresses[target], QUEUE)
            until(lambda: cold.is_dead(source), f"the end at {step}")
        if damage == "gone":
            path.unlink()
        else:
            path.write_bytes(whole_file[:1000] + bytes([whole_file[1000] ^ 1]) + whole_file[1001:])
        if step:
            cold.start(source)
        else:
            shard("move", "--no-wait", cold.addresses[target], cold.addresses[target], QUEUE)
        with cold.servers[source].client(decode_responses=True) as client:
            until(lambda: str(path.name) in failure_of(client), "the reason why it does not move")
            assert "a block of the cold store can't be read" in failure_of(client)
        assert owner_of(cold, QUEUE) == source
        queue.push("3000")
        path.write_bytes(whole_file)
        shard("move", cold.addresses[target], cold.addresses[target], QUEUE)
        assert owner_of(cold, QUEUE) == target
        assert popped(popper, 4000) == list(range(3001))


def failure_of(client: redis.Redis) -> str:
    """Why slots can't be moved."""
    said = client.execute_command("SHARD.MOVES")
    known = said if isinstance(said, dict) else dict(zip(said[::2], said[1::2], strict=True))
    return str(known["failure"])


def test_a_queue_that_comes_back_has_what_it_got_on_the_way(cold: Ours) -> None:
    source = owner_of(cold, QUEUE)
    other = (source + 1) % 3
    with Queue(f"redis://127.0.0.1:{cold.ports[0]}/0", QUEUE) as queue:
        popper = queue.create_subscriber("popper")
        fill(queue, 0, 3000)
        with cold.servers[source].client(decode_responses=True) as client:
            until(lambda: cold_entries(client) > 1000, "blocks")
            first_paths = {path for path, *_ in blocks_of(client)}
        assert popped(popper, 500) == list(range(500))
        shard("move", cold.addresses[0], cold.addresses[other], QUEUE)
        fill(queue, 3000, 6000)
        with cold.servers[other].client(decode_responses=True) as client:
            until(lambda: cold_entries(client) > 4000, "blocks of the other member's own")
        assert popped(popper, 500) == list(range(500, 1000))
        shard("move", cold.addresses[0], cold.addresses[source], QUEUE)
        with cold.servers[source].client(decode_responses=True) as client:
            assert first_paths.isdisjoint(path for path, *_ in blocks_of(client))
            assert popped(popper, 6000) == list(range(1000, 6000))
            until(lambda: files_in(cold, source) == {path for path, *_ in blocks_of(client)}, "an end of the first")
    until(lambda: files_in(cold, other) == set(), "an end of what has moved")


def blocks_of(client: redis.Redis) -> list[tuple[str, str, str, int]]:
    """Path, first and last id, and when it was sealed, of each block of the queue."""
    said = client.execute_command("TOPIC.BLOCKS", QUEUE)
    known = said if isinstance(said, dict) else dict(zip(said[::2], said[1::2], strict=True))
    rows = [row if isinstance(row, dict) else dict(zip(row[::2], row[1::2], strict=True)) for row in known["blocks"]]
    return [(row["path"], row["first"], row["last"], row["sealed-ms"]) for row in rows]


def files_in(whole: Ours, number: int) -> set[str]:
    """A member's blocks, by its files."""
    folder = whole.folders[number] / "cold"
    return {str(path.relative_to(folder)) for path in folder.rglob("*.parquet")}
