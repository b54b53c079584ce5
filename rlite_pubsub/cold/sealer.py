"""The process that seals: it takes the oldest entries of large topics out of a store and into blocks of its cold store.

    python -m rlite_pubsub.cold.sealer     started, and ended, by a server (server/companions/cold_store.py)

It is a process of its own so that what it does with Arrow, and its GIL, is not the event loop's. The process that
starts it
holds its standard input: when that ends, it ends. Several of them on one store do no harm: one seals at a time.

The steps of a block, in an order in which nothing is lost or doubled wherever it is killed: written, flushed and
verified under a temporary name; renamed; in the manifest; in the store; and then, a few chunks at a time, out of the
hot log (keyspace/topic/sealing.py). The next process goes on with a block that is in the store, and writes one again
that
is not. What is dropped is surely gone from the store before a manifest or a file shows it: a power cut must not bring
back a topic that has what they have not.

A process that begins to seal compares the manifests with the store, and then once an hour: what is missing or not as
the store
has it is rewritten.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import select
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rlite_pubsub import permissions
from rlite_pubsub.cold.places import open_place
from rlite_pubsub.keyspace.keyspace import Keyspace
from rlite_pubsub.keyspace.topic import sealing
from rlite_pubsub.keyspace.topic.sealing import Contents
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.storage.checkpoints.syncing import Syncing
from rlite_pubsub.storage.cold import cold_blocks, cold_home
from rlite_pubsub.storage.errors import StoreError
from rlite_pubsub.storage.failpoint import failpoint
from rlite_pubsub.storage.keys.key_records import TOPIC
from rlite_pubsub.storage.store import Store
from rlite_pubsub.storage.topics import entry_ids
from rlite_pubsub.storage.topics.chunks import Chunk

if TYPE_CHECKING:
    from rlite_pubsub.cold.origin import Origin
    from rlite_pubsub.cold.place import Place
    from rlite_pubsub.cold.survey import Survey
    from rlite_pubsub.storage.cold.cold_blocks import BlockInfo

log = logging.getLogger("rlite_pubsub")

LOOK_SECONDS = 0.5
REST = 9
"""How many times as long as it has taken to look at all topics nothing is looked at: there may be very many."""
LEFT_HOT = 4
"""A topic that is sealed for its size keeps this part of the block size hot: who reads the latest reads no blocks."""
RETRY_SECONDS = 5.0
"""After a failure of the cold store."""
DROPPED_AT_ONCE = 100
LOCK = "sealer.lock"
NICENESS = 10
"""Of the thread that encodes blocks. The holder of the store's write lock has the priority of all others, or a server
would wait for one that is not let on."""


class SealingPlan(NamedTuple):
    """Which entries are sealed, and when."""

    block_bytes: int
    age_ms: int
    """0: whatever its age."""
    grace_ms: int
    """So long a file stays that nobody needs any more."""


class Sealer:
    """Seals the topics of one store. Its methods raise StoreError."""

    def __init__(self, store: Store, place: Place, url: str, plan: SealingPlan, clock_ms: Callable[[], int]) -> None:
        self._store = store
        self._place = place
        self._plan = plan
        self._clock_ms = clock_ms
        self._keyspace = Keyspace(store.data, clock_ms)
        self._keyspace.cold.keep(plan.grace_ms)
        self._home = store.data.write(lambda txn: cold_home.settle(txn, url))
        self._syncing = Syncing(store.data)
        self._seen = -1
        self._first_due_ms = 0
        self._writer = ThreadPoolExecutor(1, initializer=_be_nice)
        self._unlinked: set[str] = set()  # dropped, and in no manifest
        self._files_due_ms = 0
        self.looked_s = 0.0  # how long it took to look at all topics

    def seal_due(self) -> bool:
        """Seal what there is to be sealed, and remove what nobody needs. Whether that was possible: a topic whose
        blocks are not as they should be keeps no other from being sealed."""
        from rlite_pubsub.cold.errors import ColdError, PlaceFailed

        now_ms = self._clock_ms()
        commit = self._store.data.last_commit()
        is_well = now_ms < self._files_due_ms or self._look_at_files(now_ms)
        if commit == self._seen and not (self._plan.age_ms and now_ms >= self._first_due_ms):
            self.sweep()
            return is_well
        self._seen = commit
        self._first_due_ms = now_ms + max(self._plan.age_ms // 10, 1000)
        start = time.monotonic()
        found = list(self._topics())
        self.looked_s = time.monotonic() - start
        for database, name in found:
            try:
                while self._seal(database, name):
                    failpoint("cold-sealed")
            except PlaceFailed:
                raise
            except ColdError as failure:
                log.warning("Can't seal %s: %s", name.decode(errors="backslashreplace"), failure)
                self.forget()
                is_well = False
        self.sweep()
        return is_well

    def _topics(self) -> Iterator[tuple[int, bytes]]:
        """Return the topics that may be due."""
        for topic in self._all_topics():
            is_due = self._plan.age_ms or topic.size_bytes >= self._plan.block_bytes
            if is_due or sealing.unfinished(topic.settle(), topic) is not None:
                yield topic.database, topic.name

    def _all_topics(self) -> Iterator[Topic]:
        """Every one of the store, to be looked at."""
        keyspace = self._keyspace
        for database in keyspace.databases.numbers():
            for name in [name for name, type in keyspace.databases.walk(database) if type == TOPIC]:
                topic = keyspace.find(database, name)
                if isinstance(topic, Topic):
                    yield topic
        keyspace.end_turn()

    # -- sealing

    def _seal(self, database: int, name: bytes) -> bool:
        """Seal one block of a topic, or the rest of one. Whether there was anything to do."""
        from rlite_pubsub.cold import block, columns, paths

        topic = self._find(database, name)
        if topic is None:
            return False
        txn = topic.settle()
        unfinished = sealing.unfinished(txn, topic)
        if unfinished is not None:
            self._keyspace.end_turn()
            self._move(database, name, topic.number, unfinished, self._contents(unfinished))
            return True
        found = self._due(topic)
        number = topic.number
        self._keyspace.end_turn()
        if not found:
            return False
        contents = _contents(found)
        origin = self._origin(name, number)
        path = paths.block_of(name, number, entry_ids.unpack(contents.ids[0]), entry_ids.unpack(contents.ids[-1]))
        batches, now_ms = columns.to_batches(found, name), self._clock_ms()
        sealed = self._writer.submit(block.write, self._place, path, origin, batches, now_ms).result()
        failpoint("cold-written")
        self._mirror(origin, sealed)
        failpoint("cold-mirrored")
        topic = self._to_change(database, name, number)
        if topic is None or not self._still_holds(topic, sealed):
            self._keyspace.end_turn()
            self._take_back(number, path)  # it has gone meanwhile, as a queue does that is moved to another member
            return False
        sealing.begin(topic, sealed)
        self._commit()
        failpoint("cold-begun")
        self._mirror(origin, sealed)  # whoever wrote the manifest before the store had the block did not know of it
        self._move(database, name, number, sealed, contents)
        return True

    def _take_back(self, number: int, path: str) -> None:
        """Remove a block that was written for nothing, unless another worker's is the same."""
        there = self._blocks_of(number)
        if all(block.path != path for block in there):
            self._rewrite({_folder(path)}, {path}, is_kept_empty=bool(there))
            self._place.delete(path)

    def _still_holds(self, topic: Topic, sealed: BlockInfo) -> bool:
        """Return whether something of it is left, not sealed by others or trimmed away meanwhile."""
        return sealing.hot_from(topic) <= sealed.first and topic.trimmed_id < sealed.last

    def _due(self, topic: Topic) -> list[Chunk]:
        """The oldest chunks of a topic that is due: because of its age all there are, so that a block is not tiny, and
        there is one for each such time."""
        txn = topic.settle()
        hot_bytes = sealing.hot_bytes(topic)
        block_bytes = self._plan.block_bytes
        if hot_bytes >= block_bytes:
            return list(sealing.oldest(txn, topic, block_bytes - block_bytes // LEFT_HOT))
        if not self._plan.age_ms:
            return []
        end = entry_ids.pack((max(self._clock_ms() - self._plan.age_ms, 0), 0))
        found = list(sealing.oldest(txn, topic, block_bytes))
        return found if found and found[0].first < end else []

    def _mirror(self, origin: Origin, sealed: BlockInfo) -> None:
        """Write a manifest with the topic's blocks, and this one."""
        from rlite_pubsub.cold import manifest

        def blocks() -> list[BlockInfo]:
            return [*(block for block in self._blocks_of(origin.number) if block.first != sealed.first), sealed]

        manifest.keep(self._place, origin, blocks, make_safe=self._store.data.sync)

    def _contents(self, unfinished: BlockInfo) -> Contents:
        """Return the contents of a block that another worker has written."""
        from rlite_pubsub.cold import block

        return _contents([block.read_group(self._place, unfinished, place) for place in range(len(unfinished.groups))])

    def _move(self, database: int, name: bytes, number: int, sealed: BlockInfo, contents: Contents) -> None:
        is_more = True
        while is_more:
            topic = self._to_change(database, name, number)
            if topic is None or sealing.unfinished(topic.settle(), topic) != sealed:
                self._keyspace.end_turn()
                return  # the topic has gone, or the block was trimmed away
            is_more = sealing.move(topic, sealed, contents)
            self._commit()
            failpoint("cold-slice")

    def _find(self, database: int, name: bytes) -> Topic | None:
        topic = self._keyspace.find(database, name)
        return topic if isinstance(topic, Topic) else None

    def _to_change(self, database: int, name: bytes, number: int) -> Topic | None:
        topic = self._keyspace.for_change(database, name)
        return topic if isinstance(topic, Topic) and topic.number == number else None

    def _commit(self) -> None:
        failure = self._keyspace.end_turn()
        if failure is not None:
            raise failure
        self._syncing.cron(time.monotonic())

    def rest(self) -> None:
        """Law 10: nothing is written for a while. Where that cannot be made safe, the next look tries again."""
        try:
            if self._store.data.safety.is_behind:
                self._syncing.now()
            self._store.data.safety.let_go()
        except StoreError as failure:
            log.warning("Can't bring the store to the disk: %s", failure)

    def _origin(self, name: bytes, number: int) -> Origin:
        from rlite_pubsub.cold.origin import Origin

        return Origin(self._home.store, name, number)

    def forget(self) -> None:
        """Look again, after a failure."""
        self._keyspace.fail(StoreError("given up"))
        self._keyspace.end_turn()
        self._seen = -1

    # -- removing

    def sweep(self) -> None:
        """Take what was dropped out of manifests at once, and remove its files when their grace is over."""
        dropped = self._store.data.read(lambda txn: cold_blocks.dropped(txn, entry_ids.PART_MAX, sys.maxsize))
        self._unlink([path for _, path in dropped if path not in self._unlinked])
        now_ms = self._clock_ms()
        due = [(due_ms, path) for due_ms, path in dropped if due_ms <= now_ms][:DROPPED_AT_ONCE]
        if not due:
            return
        self._store.data.sync()
        for due_ms, path in due:
            self._place.delete(path)
            failpoint("cold-removed")
            self._store.data.write(partial(cold_blocks.forget_dropped, due_ms=due_ms, path=path))
            self._unlinked.discard(path)
        left = {_folder(path) for _, path in dropped[len(due) :]}
        self._rewrite({_folder(path) for _, path in due} - left, set(), is_kept_empty=False)

    def _unlink(self, gone: list[str]) -> None:
        """Take these out of all manifests: a topic that was renamed, or is a copy, has blocks in another's folder."""
        if gone:
            self._rewrite({_folder(path) for path in gone} | self._cold_folders(), set(gone), is_kept_empty=True)
            self._unlinked.update(gone)

    def _cold_folders(self) -> set[str]:
        """Return the folders of all topics that have blocks."""
        from rlite_pubsub.cold import paths

        return {paths.folder_of(topic.name, topic.number) for topic in self._all_topics() if topic.has_cold}

    def _rewrite(self, folders: set[str], gone: set[str], *, is_kept_empty: bool) -> None:
        """Rewrite the manifests of these folders that have something that is gone: with what their topics have."""
        from rlite_pubsub.cold import manifest, paths
        from rlite_pubsub.cold.errors import ManifestDamaged

        for folder in folders:
            try:
                before = manifest.read(self._place, f"{folder}/{paths.MANIFEST}")
            except ManifestDamaged as failure:
                if not isinstance(failure.__cause__, FileNotFoundError):  # all is gone
                    log.warning("%s", failure)
                continue
            origin = before.origin
            has_gone = not before.blocks or any(block.path in gone for block in before.blocks)
            if has_gone and origin.store == self._home.store:
                blocks, make_safe = partial(self._blocks_of, origin.number), self._store.data.sync
                manifest.keep(self._place, origin, blocks, is_kept_empty=is_kept_empty, make_safe=make_safe)

    # -- looking after the files

    def _look_at_files(self, now_ms: int) -> bool:
        """Manifests are as the store has it, and what nobody refers to goes. Whether that was possible."""
        from rlite_pubsub.cold.survey import LOOK_MS, collect, survey

        topics = [(topic.name, topic.number) for topic in self._all_topics() if topic.has_cold]
        known = self._store.data.read(lambda txn: {path for path, _, _ in cold_blocks.files(txn)})
        dropped = self._store.data.read(lambda txn: cold_blocks.dropped(txn, entry_ids.PART_MAX, sys.maxsize))
        known.update(path for _, path in dropped)
        found = survey(self._place)
        for path in collect(self._place, found, self._home.store, known, now_ms / 1000):
            log.info("Removed %s, to which nothing refers: its writer was killed", path)
        is_well = self._mend(found, topics)
        self._files_due_ms = now_ms + LOOK_MS
        return is_well

    def _mend(self, found: Survey, topics: list[tuple[bytes, int]]) -> bool:
        """Each block of these is in a manifest as the store has it."""
        from rlite_pubsub.cold import manifest
        from rlite_pubsub.cold.errors import ColdError, PlaceFailed

        is_well = True
        mirrored = {block.path: block for each in found.manifests for block in each.blocks}
        for name, number in topics:
            wanted = manifest.of(self._origin(name, number), self._blocks_of(number))
            if all(mirrored.get(block.path) == block for block in wanted.blocks):
                continue
            try:
                manifest.write(self._place, wanted, make_safe=self._store.data.sync)
                log.info("Rewrote %s: it was missing, or not as the store has it", wanted.path)
            except PlaceFailed:
                raise
            except ColdError as failure:
                log.warning("Can't write a manifest of %s: %s", name.decode(errors="backslashreplace"), failure)
                is_well = False
        return is_well

    def _blocks_of(self, number: int) -> list[BlockInfo]:
        return self._store.data.read(lambda txn: list(cold_blocks.forward(txn, number)))


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _contents(found: list[Chunk]) -> Contents:
    ids = [chunk.id(place) for chunk in found for place in range(chunk.count)]
    sizes = []
    for chunk in found:
        ends = chunk.ends
        sizes += [end - start for start, end in zip((0, *ends), ends, strict=False)]
    return Contents(ids, sizes)


def _be_nice() -> None:
    """Lower the priority of this thread alone, as Linux can; elsewhere do nothing."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


def run(sealer: Sealer, folder: Path, waits: int) -> None:
    """Seal until what `waits` names has ended."""
    descriptor = permissions.opened(folder / LOCK, os.O_RDWR | os.O_CREAT)
    sealer.rest()
    pause = 0.0
    while True:
        ready, _, _ = select.select([waits], [], [], pause)
        if ready and not os.read(waits, 4096):
            return
        pause = LOOK_SECONDS
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue  # another one is at it
        try:
            pause = max(LOOK_SECONDS, sealer.looked_s * REST) if sealer.seal_due() else RETRY_SECONDS
        except StoreError as failure:
            log.warning("Can't seal: %s", failure)
            sealer.forget()
            pause = RETRY_SECONDS
        finally:
            sealer.rest()
            fcntl.flock(descriptor, fcntl.LOCK_UN)


def main() -> int:
    """See above. What is to be done stands in the first line of the standard input: it may have secrets in it."""
    said = json.loads(sys.stdin.buffer.readline())
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    store = Store.open(said["dir"], quota_bytes=said["quota_bytes"], durability=said["durability"])
    try:
        place = open_place(said["url"], store.folder)
        place.sweep()
        plan = SealingPlan(said["block_bytes"], said["age_s"] * 1000, said["grace_s"] * 1000)
        url = place.shown if "://" in said["url"] else said["url"]  # what the store remembers has no secrets
        sealer = Sealer(store, place, url, plan, lambda: int(time.time() * 1000))
        run(sealer, store.folder, sys.stdin.fileno())
    except StoreError as failure:
        log.error("Can't seal: %s", failure)
        return 1
    finally:
        store.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
