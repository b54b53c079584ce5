"""A server that is killed at random while writers append and the consumers of a group take and acknowledge.

Writers and consumers live in this process and survive it. What they were answered is certain. What they had asked when
the connection broke is open: it has happened, or it has not, but nothing else has.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import redis
from patience import PATIENCE_S
from ports import free_port
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.server.server_process import ServerProcess

Client: TypeAlias = Any
"""A redis.Redis: its types know neither RESP2 from RESP3 nor text from bytes."""
SHARED = "shared"
GROUP = "group"
RECONNECT_S = 0.02
BLOCK_MS = 50
MAX_BATCH = 20


class KilledServer:
    """One server after the other, on one port and one store."""

    def __init__(self, folder: Path, appendfsync: str) -> None:
        self._flags = ("--appendfsync", appendfsync)
        self._folder = folder
        self.port = free_port()
        self.kills = 0
        self._server = self._start()

    def _start(self) -> ServerProcess:
        return ServerProcess(self._folder, *self._flags, port=self.port)

    def kill_and_start(self) -> None:
        self._server.process.kill()
        self._server.process.wait()
        self.kills += 1
        self._server = self._start()

    def stop(self) -> None:
        self._server.process.kill()
        self._server.process.wait()

    def client(self) -> Client:
        """One that never says anything twice by itself."""
        once = Retry(NoBackoff(), 0)
        return redis.Redis(port=self.port, decode_responses=True, socket_timeout=PATIENCE_S, retry=once)


@dataclass
class Batch:
    """Numbers that were asked for together."""

    numbers: list[int]
    is_transaction: bool
    is_certain: bool = False


class Actor:
    """Whoever does something again and again until told to stop, whatever becomes of the server."""

    def __init__(self, server: KilledServer, name: str, seed: int) -> None:
        self.name = name
        self.dice = random.Random(f"{seed} {name}")
        self.failure: BaseException | None = None
        self._client = server.client()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive(), f"{self.name} does not end"
        self._client.close()
        if self.failure is not None:
            raise AssertionError(f"{self.name} failed") from self.failure

    def _run(self) -> None:
        try:
            while not self._stopped.is_set():
                try:
                    self.act()
                except redis.ConnectionError:
                    time.sleep(RECONNECT_S)  # the server is started meanwhile
        except BaseException as failure:
            self.failure = failure

    def act(self) -> None:
        raise NotImplementedError


class Writer(Actor):
    """Appends its numbers to a topic of its own, under ids that tell them, and to the one that all share."""

    def __init__(self, server: KilledServer, name: str, seed: int) -> None:
        self.batches: list[Batch] = []
        self._next = 1
        super().__init__(server, name, seed)

    def act(self) -> None:
        size = self.dice.choice([1, 1, 1, MAX_BATCH])
        batch = Batch(list(range(self._next, self._next + size)), self.dice.random() < 0.5)
        self._next += size
        self.batches.append(batch)
        padding = "x" * self.dice.choice([0, 10, 3000])
        with self._client.pipeline(transaction=batch.is_transaction) as pipe:
            for number in batch.numbers:
                pipe.xadd(self.name, {"number": number, "padding": padding}, id=f"1-{number}")
                pipe.xadd(SHARED, {"writer": self.name, "number": number})
            answers = pipe.execute()
        assert answers[::2] == [f"1-{number}" for number in batch.numbers]
        batch.is_certain = True


@dataclass
class Deliveries:
    """What the consumers of a group say together."""

    new: Counter[str] = field(default_factory=Counter)
    """How often an entry came as a new one."""
    handled: set[str] = field(default_factory=set)
    acknowledged: set[str] = field(default_factory=set)
    """Answered with 1."""
    perhaps_acknowledged: set[str] = field(default_factory=set)
    """Asked for, and not answered."""
    faults: list[str] = field(default_factory=list)


class Consumer(Actor):
    """Takes new entries, what is its own from before, and what others have left; acknowledges most of it."""

    def __init__(self, server: KilledServer, name: str, seed: int, deliveries: Deliveries) -> None:
        self.told = deliveries
        super().__init__(server, name, seed)

    def act(self) -> None:
        kind = self.dice.choice(["new", "new", "new", "mine", "left"])
        ids = self._take(kind)
        self.told.handled.update(ids)
        if self.dice.random() < 0.9:
            self._acknowledge(ids[: self.dice.choice([1, 5, 1000])])

    def _take(self, kind: str) -> list[str]:
        already = set(self.told.acknowledged)  # by anybody, before it was asked
        count = self.dice.choice([1, 10, 200])
        if kind == "left":
            idle_ms = self.dice.choice([0, 20])
            _, taken, _ = self._client.xautoclaim(SHARED, GROUP, self.name, idle_ms, "0-0", count)
        else:
            start = ">" if kind == "new" else "0"
            reply = self._client.xreadgroup(GROUP, self.name, {SHARED: start}, count, block=BLOCK_MS)
            taken = reply[0][1] if reply else []
        ids = [entry_id for entry_id, _ in taken]
        if kind == "new":
            self.told.new.update(ids)
        again = already.intersection(ids)
        if again:
            self.told.faults.append(f"{self.name} was given ({kind}) what was acknowledged: {sorted(again)[:5]}")
        return ids

    def _acknowledge(self, ids: list[str]) -> None:
        if not ids:
            return
        self.told.perhaps_acknowledged.update(ids)
        with self._client.pipeline(transaction=False) as pipe:
            for entry_id in ids:
                pipe.xack(SHARED, GROUP, entry_id)
            for entry_id, is_first in zip(ids, pipe.execute(), strict=True):
                if is_first and entry_id in self.told.acknowledged:
                    self.told.faults.append(f"{entry_id} was acknowledged twice")
                if is_first:
                    self.told.acknowledged.add(entry_id)


def writer_faults(client: Client, writers: list[Writer]) -> list[str]:
    """What does not add up in the topics of the writers, and in the one that they share."""
    shared: dict[str, list[int]] = {writer.name: [] for writer in writers}
    entries = client.xrange(SHARED)
    for _, fields in entries:
        shared[fields["writer"]].append(int(fields["number"]))
    ids = [tuple(map(int, entry_id.split("-"))) for entry_id, _ in entries]
    found = [] if ids == sorted(set(ids)) else [f"{SHARED} is out of order"]
    for writer in writers:
        own = client.xrange(writer.name)
        found += _faults(writer, f"{writer.name}", [int(fields["number"]) for _, fields in own])
        found += _faults(writer, f"{SHARED} of {writer.name}", shared[writer.name])
        if [entry_id for entry_id, _ in own] != [f"1-{fields['number']}" for _, fields in own]:
            found.append(f"{writer.name}: an entry under another's id")
        if (own_length := client.xlen(writer.name)) != len(own):
            found.append(f"{writer.name}: XLEN says {own_length} of {len(own)}")
        numbers = {int(fields["number"]) for _, fields in own}, set(shared[writer.name])
        found += [
            f"{writer.name}: half of a transaction: {batch.numbers}"
            for batch in writer.batches
            if batch.is_transaction and len({number in there for number in batch.numbers for there in numbers}) != 1
        ]
    return found


def _faults(writer: Writer, where: str, numbers: list[int]) -> list[str]:
    there = set(numbers)
    certain = {number for batch in writer.batches if batch.is_certain for number in batch.numbers}
    asked = {number for batch in writer.batches for number in batch.numbers}
    found = [] if numbers == sorted(there) else [f"{where}: twice, or out of order"]
    if missing := sorted(certain - there):
        found.append(f"{where}: {len(missing)} acknowledged entries are not there: {missing[:5]}")
    if strange := sorted(there - asked):
        found.append(f"{where}: {strange[:5]} were never asked for")
    return found


def pending_faults(client: Client, told: Deliveries) -> list[str]:
    """What does not add up in the group, while nobody consumes."""
    found = list(told.faults)
    if twice := [entry_id for entry_id, times in told.new.items() if times > 1]:
        found.append(f"given as new twice: {twice[:5]}")
    summary = client.xpending(SHARED, GROUP)
    there = client.xpending_range(SHARED, GROUP, "-", "+", 10**9)
    pending = {item["message_id"] for item in there}
    of_consumers = Counter(item["consumer"] for item in there)
    if {one["name"]: one["pending"] for one in summary["consumers"]} != of_consumers:
        found.append(f"the consumers have {of_consumers}, the summary says {summary['consumers']}")
    counted = {one["name"]: one["pending"] for one in client.xinfo_consumers(SHARED, GROUP)}
    if {name: count for name, count in counted.items() if count} != of_consumers:
        found.append(f"the consumers have {of_consumers}, XINFO says {counted}")
    if summary["pending"] != len(there) or client.xinfo_groups(SHARED)[0]["pending"] != len(there):
        found.append(f"{len(there)} are pending, and another number is told")
    if back := pending & told.acknowledged:
        found.append(f"acknowledged and pending: {sorted(back)[:5]}")
    if lost := told.handled - told.perhaps_acknowledged - pending:
        found.append(f"given, never acknowledged and not pending: {sorted(lost)[:5]}")
    return found


def drain(client: Client, told: Deliveries) -> None:
    """One consumer that is not disturbed takes all that is left, and acknowledges it."""
    while True:
        _, left, _ = client.xautoclaim(SHARED, GROUP, "last", 0, "0-0", 500)
        reply = client.xreadgroup(GROUP, "last", {SHARED: ">"}, 500)
        new = [entry_id for entry_id, _ in reply[0][1]] if reply else []
        told.new.update(new)
        ids = [entry_id for entry_id, _ in left] + new
        if not ids:
            return
        told.handled.update(ids)
        assert client.xack(SHARED, GROUP, *ids) == len(ids)
        told.acknowledged.update(ids)
        told.perhaps_acknowledged.update(ids)
