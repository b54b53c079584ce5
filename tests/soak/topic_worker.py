"""A worker of the soak of topics: writes to them, or follows them from a random point on, and keeps a page.

    python -m tests.soak.topic_worker TARGET ROLE SEED PAGE STOP_FILE

TARGET is a store's folder, or the URL of a server on it. A page is one line of JSON for each thing:

    wrote      topic, ids
    start      topic, the id behind which it begins, or None: with the first entry that it got; whether it has
               asked for what was to come
    got        topic, id
    gap        topic, how many entries were lost
    silent     writes no more
    ended      has got the last entry of all of its topics
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import time
from pathlib import Path
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

import rlite_pubsub
from rlite_pubsub import topics
from rlite_pubsub.topics import aio
from tests.patience import PATIENCE_S

LONG = ("long-1", "long-2")
SHORT = "short"
"""Is trimmed all the time. Only programs without a server write to it: what they wrote is certain."""
END_FIELD = "end"
BEGINNING = "0-0"
RECONNECT_S = 0.05


class Page:
    """What a worker has to say. Each line is one write."""

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def say(self, *words: object) -> None:
        os.write(self._descriptor, (json.dumps(words) + "\n").encode())


class Worker:
    """One of them."""

    def __init__(self, target: str, seed: str, page: str, stop_file: str) -> None:
        self.target = target
        self.is_embedded = "://" not in target
        self.dice = random.Random(int(seed))
        self.page = Page(page)
        self._stop_file = Path(stop_file)
        self._ended: set[str] = set()
        self._enough = self.dice.choice([200, 2000, 10**9])
        self._got = 0

    def client(self) -> Any:
        if self.is_embedded:
            return rlite_pubsub.Redis(self.target, decode_responses=True)
        return redis.from_url(self.target, decode_responses=True, retry=Retry(NoBackoff(), 0))

    # -- writing

    def write(self) -> None:
        client = self.client()
        choice = (*LONG, SHORT) if self.is_embedded else LONG
        while not self._stop_file.exists():
            topic, size = self.dice.choice(choice), self.dice.choice([1, 1, 1, 20])
            try:
                with client.pipeline(transaction=self.dice.random() < 0.5) as pipe:
                    for _ in range(size):
                        pipe.xadd(topic, {"padding": "x" * self.dice.choice([1, 10, 1000])})
                    self.page.say("wrote", topic, pipe.execute())
            except redis.ConnectionError:
                if self.is_embedded:
                    raise
                time.sleep(RECONNECT_S)
            time.sleep(self.dice.random() * 0.01)  # the others want the processors too
        self.page.say("silent")

    # -- following

    def _starts(self) -> dict[str, str | None]:
        """For some topics: from the beginning, from what comes, or from an entry of late."""
        client = self.client()
        chosen = self.dice.sample((*LONG, SHORT), self.dice.randint(1, 3))
        starts: dict[str, str | None] = {}
        for topic in chosen:
            match self.dice.choice(["beginning", "now", "late"]):
                case "beginning":
                    starts[topic] = BEGINNING
                case "now":
                    starts[topic] = None
                case _:
                    count = self.dice.randint(1, 500)
                    late = self._persistently(client.xrevrange, topic, count=count)
                    starts[topic] = late[-1][0] if late else BEGINNING
        client.close()
        return starts

    def _persistently(self, ask: Any, *words: Any, **options: Any) -> Any:
        """For as long as a server is away."""
        while True:
            try:
                return ask(*words, **options)
            except redis.ConnectionError:
                if self.is_embedded:
                    raise
                time.sleep(RECONNECT_S)

    def _take(self, topic: str, entry_id: str, is_end: bool) -> bool:
        """Whether there is more to come."""
        self.page.say("got", topic, entry_id)
        self._got += 1
        if is_end:
            self._ended.add(topic)
        return self._got < self._enough

    def _has_ended(self, starts: dict[str, Any]) -> bool:
        if self._ended != set(starts):
            return False
        self.page.say("ended")
        return True

    def read(self) -> None:
        """By XREAD BLOCK, as a program does that knows nothing of ours."""
        client = self.client()
        last: dict[str, str] = {}
        for topic, start in self._starts().items():
            if start is None:
                newest = self._persistently(client.xrevrange, topic, count=1)
                start = newest[0][0] if newest else BEGINNING
            last[topic] = start
            self.page.say("start", topic, start, False)
        deadline = time.monotonic() + PATIENCE_S
        while not self._has_ended(last):
            count = self.dice.choice([None, 1, 7, 300])
            for topic, entries in self._persistently(client.xread, last, count, block=500):
                deadline = time.monotonic() + PATIENCE_S
                for last[topic], fields in entries:
                    if not self._take(topic, last[topic], END_FIELD in fields):
                        return
            assert time.monotonic() < deadline, "the end was not read"

    def subscribe(self) -> None:
        """By topics.subscribe."""
        starts = self._starts()
        with self._persistently(
            topics.subscribe, self.target, *starts, since=starts, on_gap=self._told_of_gap
        ) as subscription:
            follower = Follower(self, starts)
            while not self._has_ended(starts):
                entry = subscription.get(follower.patience_s)
                if not follower.sees(entry, subscription.positions):
                    return

    async def subscribe_in_asyncio(self) -> None:
        """By topics.aio.subscribe."""
        starts = self._starts()
        async with await self._begun(starts) as subscription:
            follower = Follower(self, starts)
            while not self._has_ended(starts):
                entry = await subscription.get(follower.patience_s)
                if not follower.sees(entry, subscription.positions):
                    return

    async def _begun(self, starts: dict[str, str | None]) -> aio.Subscription:
        """It is subscribed when it is there, or says that it can't be: servers are killed."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                return await aio.subscribe(self.target, *starts, since=starts, on_gap=self._told_of_gap)
            except redis.ConnectionError:
                assert time.monotonic() < deadline, "there was no server"
                await asyncio.sleep(0.05)

    def _told_of_gap(self, gap: topics.Gap) -> None:
        self.page.say("gap", gap.topic, gap.lost)

    def take(self, entry: topics.Entry) -> bool:
        return self._take(entry.topic, entry.id, END_FIELD.encode() in entry.fields)


class Follower:
    """What a subscription says, and where it began."""

    def __init__(self, worker: Worker, starts: dict[str, str | None]) -> None:
        self._worker = worker
        self._unknown = {topic for topic, start in starts.items() if start is None}
        for topic, start in starts.items():
            if start is not None:
                worker.page.say("start", topic, start, False)

    @property
    def patience_s(self) -> float:
        return 0.01 if self._unknown else PATIENCE_S

    def sees(self, entry: topics.Entry | None, positions: dict[str, str]) -> bool:
        """Whether there is more to come."""
        assert entry is not None or self._unknown, "the end was not heard"
        if entry is not None and entry.topic in self._unknown:
            self._unknown.remove(entry.topic)
            self._worker.page.say("start", entry.topic, None, True)
        for topic in [topic for topic in self._unknown if positions[topic] != "$"]:
            self._unknown.remove(topic)
            self._worker.page.say("start", topic, positions[topic], True)
        return entry is None or self._worker.take(entry)


def main(target: str, role: str, seed: str, page: str, stop_file: str) -> None:
    worker = Worker(target, seed, page, stop_file)
    if role == "asyncio":
        asyncio.run(worker.subscribe_in_asyncio())
    else:
        {"writer": worker.write, "reader": worker.read, "subscriber": worker.subscribe}[role]()


if __name__ == "__main__":
    main(*sys.argv[1:])
