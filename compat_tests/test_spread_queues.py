"""One queue on several members at once: segments begin, close and move, and members are killed in the midst of it,
while it is pushed to and popped from. Nothing acknowledged is lost, nothing comes twice, and the order stays."""

from __future__ import annotations

import asyncio
import json
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
from redis.cluster import RedisCluster
from redis.exceptions import ClusterDownError, ResponseError

from compat_tests.test_node import HERE, NODE
from compat_tests.test_sharded_moves import COLD, LOST, files_in, fill, owner_of, prove
from compat_tests.wholes import ROOT, Ours, shard
from rlite_pubsub import queues
from rlite_pubsub.queues import Item, Queue
from rlite_pubsub.shards import spreading
from rlite_pubsub.shards.whole import MemberAddress, ShardedWhole

QUEUE = "jobs"


@pytest.fixture(scope="module")
def _whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ours]:
    members = Ours(tmp_path_factory.mktemp("whole"))
    yield members
    members.stop()
    prove(members)


@pytest.fixture
def whole(_whole: Ours) -> Iterator[Ours]:
    """One for all tests. Slots are wherever the test before has left them."""
    yield _whole
    for number in range(len(_whole.servers)):
        if _whole.is_dead(number):
            _whole.start(number)
    for server in _whole.servers:
        with server.client() as client:
            client.flushall()


def url(whole: Ours, number: int = 0) -> str:
    return f"redis://127.0.0.1:{whole.ports[number]}/0"


def spread(whole: Ours, *words: str) -> None:
    """As its owner would, who does it again where a member was killed meanwhile."""

    def is_done() -> bool:
        done = subprocess.run(
            [sys.executable, "-m", "rlite_pubsub", "shard", "spread", whole.addresses[0], QUEUE, *words],
            capture_output=True, text=True, cwd=ROOT, timeout=PATIENCE_S,
        )  # fmt: skip
        return done.returncode == 0

    until(is_done, "a spread queue")


def spread_at_once(whole: Ours) -> None:
    """As `shard spread` does, without a process of its own."""
    at = MemberAddress("127.0.0.1", whole.ports[0])
    with ShardedWhole(lambda address: redis.Redis(address.host, address.port)) as members:
        directory = members.directory(at)
        assert spreading.cut(members, directory, QUEUE.encode()) == ""
        spreading.spread(members, directory, QUEUE.encode())
        until(lambda: not any(seen.moving for seen in members.look(members.directory(at))), "an end of the moves")
        members.spread(members.directory(at))


def info(whole: Ours) -> dict[str, Any]:
    with whole.servers[owner_of(whole, QUEUE)].client(decode_responses=True, protocol=3) as client:
        found: dict[str, Any] = client.execute_command("QUEUE.INFO", QUEUE)
        return found


def members_of(whole: Ours) -> list[int]:
    """Who has the closed segments, oldest first."""
    return [owner_of(whole, segment["name"]) for segment in info(whole)["segments"]]


def numbers(items: list[Item]) -> list[int]:
    return [int(item.value) for item in items]


def spread_out(whole: Ours, queue: Queue, segments: int, each: int = 100) -> None:
    """Have a queue of so many closed segments, on all members, and some under its own key."""
    at = 0
    for _ in range(segments):
        queue.push(*map(str, range(at, at + each)))
        at += each
        spread_at_once(whole)
    queue.push(*map(str, range(at, at + each)))
    assert set(members_of(whole)) == {0, 1, 2}


def test_a_spread_queue_is_one_history(whole: Ours) -> None:
    with Queue(url(whole), QUEUE) as queue:
        early = queue.create_subscriber("early")
        spread_out(whole, queue, 4)
        assert len(queue) == 500
        for number in range(3):
            with queues.get_subscriber(url(whole, number), "jobs:early") as found:
                assert numbers(found.peek_many(3)) == [100 * number + at for at in range(3)]
                assert numbers(found.pop_many(100)) == list(range(100 * number, 100 * number + 100))
        assert [status.behind for status in queue.list()] == [200]
        assert numbers(early.pop_many(1000)) == list(range(300, 500))
        assert early.pop(0.01) is None
        late = queue.create_subscriber("late", info(whole)["segments"][2]["first"])
        assert [int(item.value) for item in (late.pop() for _ in range(299)) if item] == list(range(201, 500))
        assert queues.list_queues(url(whole)) == [QUEUE]
        assert queue.delete()

        def is_gone() -> bool:
            return sum(server.client().dbsize() for server in whole.servers) == 0

        until(is_gone, "an end of all segments")


async def test_the_asynchronous_queue_reads_it_too(whole: Ours) -> None:
    with Queue(url(whole), QUEUE) as queue:
        await asyncio.to_thread(spread_out, whole, queue, 3)
    async with queues.aio.Queue(url(whole, 1), QUEUE) as found:
        assert await found.size() == 400
        worker = await found.create_subscriber("worker")
        got = [await worker.pop() for _ in range(250)]
        got += await worker.pop_many(1000)
        assert [int(item.value) for item in got if item] == list(range(400))


def test_a_program_on_a_member_s_folder_reads_it_too(whole: Ours) -> None:
    with Queue(url(whole), QUEUE) as queue:
        spread_out(whole, queue, 3)
        queue.create_subscriber("worker")
    for folder in whole.folders:
        with queues.get_subscriber(folder, "jobs:worker") as worker:
            assert len(worker.pop_many(50)) == 50
    with queues.get_subscriber(url(whole), "jobs:worker") as worker:
        assert numbers(worker.pop_many(1000)) == list(range(150, 400))


def test_cluster_clients_push_and_pop_by_the_queue_s_own_key(whole: Ours) -> None:
    with Queue(url(whole), QUEUE) as queue:
        queue.create_subscriber("redis-py")
        queue.create_subscriber("ioredis")
        spread_out(whole, queue, 3)
    with RedisCluster(host="127.0.0.1", port=whole.ports[1]) as cluster:
        cluster.execute_command("QUEUE.PUSH", QUEUE, "from redis-py")
        got = []
        for number in range(401):
            if number % 100 == 50:  # the queue's own key moves, while the client knows where it was
                spread(whole, "--to", whole.addresses[(owner_of(whole, QUEUE) + 1) % 3])
            got.append(cluster.execute_command("QUEUE.POP", QUEUE, "redis-py", "BLOCK", 1000)[1][1])
        assert got == [*(b"%d" % number for number in range(400)), b"from redis-py"]
    if NODE is None:
        pytest.skip("no node: ioredis is not tested")
    words = [str(NODE), str(HERE / "node" / "ioredis-queue.mjs"), str(whole.ports[2]), QUEUE, "20", "421"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    pushed = [f"from ioredis {number}" for number in range(20)]
    assert json.loads(done.stdout) == [*map(str, range(400)), "from redis-py", *pushed]


def test_a_transaction_is_told_that_it_can_t_wait_for_another_member(whole: Ours) -> None:
    with Queue(url(whole), QUEUE) as queue:
        spread_out(whole, queue, 3)
        queue.create_subscriber("worker")
        owner = owner_of(whole, QUEUE)
        while members_of(whole)[0] == owner:
            spread(whole, "--to", whole.addresses[(owner + 1) % 3])
            owner = owner_of(whole, QUEUE)
        with whole.servers[owner].client() as client, client.pipeline() as pipe:
            pipe.execute_command("QUEUE.POP", QUEUE, "worker")
            pipe.incr(f"{{{QUEUE}}}done")
            popped, done = pipe.execute(raise_on_error=False)
        assert isinstance(popped, ResponseError) and "another member's" in str(popped) and done == 1
        assert numbers(queue.subscriber("worker").pop_many(1000)) == list(range(len(queue)))


def test_while_a_segment_s_member_is_away_its_values_wait(whole: Ours) -> None:
    with Queue(url(whole), QUEUE) as queue:
        spread_out(whole, queue, 3)
        worker = queue.create_subscriber("worker")
        owner = owner_of(whole, QUEUE)
        victim = next(member for member in members_of(whole) if member != owner)
        first = members_of(whole).index(victim) * 100
        whole.kill(victim)
        with whole.servers[owner].client() as client:
            for number in range(first):
                assert client.execute_command("QUEUE.POP", QUEUE, "worker")[1][1] == b"%d" % number
            with pytest.raises(ClusterDownError):
                client.execute_command("QUEUE.POP", QUEUE, "worker")
            client.execute_command("QUEUE.PUSH", QUEUE, "400")
        found: list[Item | None] = []
        waiting = threading.Thread(target=lambda: found.append(worker.pop(PATIENCE_S)))
        waiting.start()
        whole.start(victim)
        waiting.join(PATIENCE_S)
        assert [int(item.value) for item in found if item] == [first]
        assert numbers(worker.pop_many(1000)) == list(range(first + 1, 401))


def test_what_is_needless_is_removed_once_its_member_is_back(whole: Ours) -> None:
    with Queue(url(whole), QUEUE) as queue:
        spread_out(whole, queue, 3)
        owner = owner_of(whole, QUEUE)
        victim = next(member for member in members_of(whole) if member != owner)
        whole.kill(victim)
        queue_at_owner = Queue(url(whole, owner), QUEUE)
        assert queue_at_owner.delete()
        queue_at_owner.close()
        whole.kill(owner)  # what is to be removed outlives it
        whole.start(victim)
        whole.start(owner)
        until(lambda: sum(server.client().dbsize() for server in whole.servers) == 0, "an end of all segments")


@pytest.mark.parametrize("step", ["queue-cut", "segment-lost", "segment-removed"])
def test_a_member_that_is_killed_at_any_step_of_a_cut_or_a_drop_loses_nothing_else(whole: Ours, step: str) -> None:
    with Queue(url(whole), QUEUE) as queue:
        spread_out(whole, queue, 3)
        worker = queue.create_subscriber("worker")
        owner = owner_of(whole, QUEUE)
        names = [segment["name"] for segment in info(whole)["segments"]]
        elsewhere = next(at for at, member in enumerate(members_of(whole)) if member != owner)
        whole.kill(owner)
        whole.start(owner, step)
        words = ("QUEUE.CUT", QUEUE) if step == "queue-cut" else ("QUEUE.DROP", QUEUE, names[elsewhere])
        with whole.servers[owner].client() as client:
            if step == "segment-removed":
                client.execute_command(*words)
            else:
                with pytest.raises(redis.ConnectionError):
                    client.execute_command(*words)
        until(lambda: whole.is_dead(owner), f"the end at {step}")
        whole.start(owner)
        if step == "segment-removed":
            lost = set(range(elsewhere * 100, elsewhere * 100 + 100))
            assert len(info(whole)["segments"]) == 2
            until(lambda: sum(server.client().dbsize() for server in whole.servers) == 3, "an end of the segment")
        else:
            lost = set()
            assert len(info(whole)["segments"]) == 3, "the commit had not been done"
        with whole.servers[owner].client() as client:
            client.execute_command("QUEUE.CUT", QUEUE)
        assert numbers(worker.pop_many(1000)) == [number for number in range(400) if number not in lost]


@pytest.mark.parametrize("step", ["shard-given", "shard-taken", "shard-dropping", "shard-adopted", "shard-learned"])
def test_a_directory_moves_with_its_queue_and_its_segments_stay(whole: Ours, step: str) -> None:
    """What the former owner still has of the queue is removed, and nothing of its segments with it."""
    with Queue(url(whole), QUEUE) as queue:
        spread_out(whole, queue, 3)
        worker = queue.create_subscriber("worker")
        source = owner_of(whole, QUEUE)
        target = (source + 1) % 3
        assert numbers(worker.pop_many(150)) == list(range(150))
        before = info(whole)
        victim = target if step in ("shard-adopted", "shard-learned") else source
        whole.kill(victim)
        whole.start(victim, step)
        shard("move", "--no-wait", whole.addresses[(victim + 1) % 3], whole.addresses[target], QUEUE)
        until(lambda: whole.is_dead(victim), f"the end at {step}")
        whole.start(victim)
        shard("move", whole.addresses[0], whole.addresses[target], QUEUE)
        assert owner_of(whole, QUEUE) == target
        assert info(whole) == before
        time.sleep(2)  # twice as long as what is needless stays
        assert sum(server.client().dbsize() for server in whole.servers) == 4
        assert numbers(worker.pop_many(1000)) == list(range(150, 400))


class History:
    """A producer, and subscribers that pop one by one, many at once, and two under one name."""

    def __init__(self, whole: Ours) -> None:
        self.pushed: list[int] = []
        self.popped: dict[str, list[int]] = {"one": [], "many": [], "shared": []}
        self.lost_pops: dict[str, int] = dict.fromkeys(self.popped, 0)
        self._ends = threading.Event()
        self._failures: list[BaseException] = []
        self._urls = [url(whole, number) for number in range(3)]
        with Queue(self._urls[0], QUEUE) as queue:
            for name in self.popped:
                queue.create_subscriber(name)
        works: list[Callable[[str], None]] = [
            self._push,
            lambda where: self._pop(where, "one", 1),
            lambda where: self._pop(where, "many", 37),
            lambda where: self._pop(where, "shared", 5),
            lambda where: self._pop(where, "shared", 5),
        ]
        self._threads = [
            threading.Thread(target=self._run, args=(work, self._urls[number % 3])) for number, work in enumerate(works)
        ]
        for thread in self._threads:
            thread.start()

    def _run(self, work: Callable[[str], None], where: str) -> None:
        try:
            work(where)
        except BaseException as failure:
            self._failures.append(failure)

    def _push(self, where: str) -> None:
        with Queue(where, QUEUE) as queue:
            number = 0
            while not self._ends.is_set():
                some = list(range(number, number + 3))
                number += 3
                try:
                    queue.push(*map(str, some))
                    self.pushed += some
                except LOST:
                    time.sleep(0.01)
                time.sleep(0.002)

    def _pop(self, where: str, name: str, count: int) -> None:
        with Queue(where, QUEUE) as queue:
            popper = queue.subscriber(name)
            while True:
                try:
                    items = popper.pop_many(count, 0.1)
                except LOST:
                    self.lost_pops[name] += count
                    time.sleep(0.01)
                    continue
                except ClusterDownError:  # the member of the next segment was away for longer than a client waits
                    continue
                self.popped[name] += numbers(items)
                if not items and self._ends.is_set():
                    return

    def grow(self, count: int) -> None:
        """Until so many more have been pushed, and popped by everybody."""
        wanted = len(self.pushed) + count

        def has_grown() -> bool:
            return bool(self._failures) or all(
                len(each) >= wanted - 200 for each in (self.pushed, *self.popped.values())
            )

        until(has_grown, "more of the history")

    def check(self) -> None:
        """End it, and see that it can have been."""
        self._ends.set()
        for thread in self._threads:
            thread.join(PATIENCE_S)
            assert not thread.is_alive()
        assert self._failures == []
        for name, popped in self.popped.items():
            assert len(popped) == len(set(popped)), f"{name}: none comes twice"
            if name != "shared":
                assert popped == sorted(popped), f"{name}: in order"
            missing = set(self.pushed) - set(popped)
            assert len(missing) <= self.lost_pops[name], f"{name}: {missing} were acknowledged, and never popped"


def test_pushes_and_pops_go_on_while_segments_begin_close_and_move_and_members_are_killed(whole: Ours) -> None:
    seed = random.randrange(1 << 30)
    dice = random.Random(seed)
    print("seed", seed)
    history = History(whole)
    with whole.servers[owner_of(whole, QUEUE)].client() as client:
        client.execute_command("TOPIC.CONFIG", QUEUE, "SET", "SEGMENT-LENGTH", 150)
    for turn in range(3):
        history.grow(150)
        to = ["--to", whole.addresses[dice.randrange(3)]] if turn % 2 else []
        moving = threading.Thread(target=spread, args=(whole, *to))
        moving.start()
        time.sleep(dice.random() * 0.5)
        victim = turn % 3
        whole.kill(victim)
        time.sleep(dice.random() * 0.2)
        whole.start(victim)
        moving.join(PATIENCE_S)
        assert not moving.is_alive()
    history.grow(150)
    assert len(set(members_of(whole))) == 3
    with Queue(url(whole), QUEUE) as queue:
        replay = queue.create_subscriber("replay")
        history.check()
        everything: list[int] = []
        while items := replay.pop_many(100):
            everything += numbers(items)
        assert everything == sorted(set(everything))
        assert set(history.pushed) <= set(everything), "all of it can be read once more"
        assert len(queue) == len(everything)


@pytest.fixture
def cold(tmp_path: Path) -> Iterator[Ours]:
    pytest.importorskip("pyarrow")
    members = Ours(tmp_path, 3, *COLD)
    yield members
    members.stop()
    prove(members)


def test_segments_move_with_their_blocks(cold: Ours) -> None:
    with Queue(url(cold), QUEUE) as queue:
        worker = queue.create_subscriber("worker")
        for at in range(0, 9000, 3000):
            fill(queue, at, at + 3000)
            with cold.servers[owner_of(cold, QUEUE)].client(decode_responses=True) as client:
                until(lambda: client.execute_command("TOPIC.INFO", QUEUE)["cold-entries"] > 1000, "blocks")
            spread(cold)
        assert set(members_of(cold)) == {0, 1, 2}
        assert all(files_in(cold, number) for number in range(3))
        listed = shard("queues", cold.addresses[1], QUEUE)
        assert [int(line.split()[4]) > 0 for line in listed.splitlines()[2:5]] == [True] * 3, listed
        spread(cold, "--to", cold.addresses[(owner_of(cold, QUEUE) + 1) % 3])
        fill(queue, 9000, 9100)
        assert numbers(worker.pop_many(4000)) == list(range(4000))
        assert [int(item.value) for item in (worker.pop() for _ in range(10)) if item] == list(range(4000, 4010))
        assert numbers(worker.pop_many(9000)) == list(range(4010, 9100))
