"""One member's slots on their way to another one: their keys are copied while everybody works with them, then they
are given away, and what has changed meanwhile follows.

Laws:
 1. copy: nothing of it counts yet, here or there. Killed, on either side: nobody has noticed.
 2. give away: one commit here. From then on nobody reads or changes the keys here (-ASK), whatever happens.
 3. send what differs: the keys stand still.
 4. take: the other member has all of it, and the slots, in its own commits (engine/shards/arrivals.py).
 5. forget: the keys go from here, then the note that they were given away, with the directory that says where they are.

Between 2 and 4 nobody has the keys: so long pops wait. Whoever is killed there goes on there: 3 to 5 are done again,
and the other member says whether it has taken the slots already. So there is one state of each key at any time.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from rlite_pubsub.cold.errors import ColdError
from rlite_pubsub.cold.places import open_place
from rlite_pubsub.cold.reader import BlockReader
from rlite_pubsub.engine.payloads import payload_of
from rlite_pubsub.engine.shards.arrivals import BEGUN_WITH_BLOCKS, TAKEN
from rlite_pubsub.engine.shards.directory import Member
from rlite_pubsub.engine.shards.slots import slot_of
from rlite_pubsub.engine.waits.loop_turns import LoopTurns
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.protocol.replies import Error
from rlite_pubsub.replication.master_link import MasterAddress, MasterLink, MasterRefused
from rlite_pubsub.shards.block_files import pieces
from rlite_pubsub.shards.copies import (
    Difference,
    TopicCopy,
    has_cold,
    head_of,
    is_kept,
    names_behind,
    record_of,
    runs_of,
    topic_number,
)
from rlite_pubsub.shards.thawing import FrozenBlock, blocks_of, rows_of
from rlite_pubsub.storage.cold import cold_blocks, cold_home
from rlite_pubsub.storage.errors import StoreHeld
from rlite_pubsub.storage.failpoint import failpoint
from rlite_pubsub.storage.keys.key_records import TOPIC, KeyRecord
from rlite_pubsub.storage.names import subscribers
from rlite_pubsub.storage.topics import entry_ids

if TYPE_CHECKING:
    from rlite_pubsub.cold.place import Place
    from rlite_pubsub.engine.engine import Engine
    from rlite_pubsub.storage.cold.cold_blocks import BlockInfo
    from rlite_pubsub.storage.environment import Txn
    from rlite_pubsub.storage.store import Store

log: Final = logging.getLogger("rlite_pubsub")

_HELD_S: Final = 0.01
_PASSES: Final = 8
_FEW_ROWS: Final = 200
"""So few that they can follow when the slots are given away."""
_AT_ONCE: Final = 100
_AT_ONCE_BYTES: Final = 1 << 20
_DROPPED_AT_ONCE: Final = 200


class CanNotMove(Exception):
    """Something here is in the way; nothing was given away."""


class _Compared(NamedTuple):
    """A key, when nobody changes it any more."""

    name: bytes
    record: KeyRecord
    difference: Difference | None
    """None: it is no topic."""
    frozen: list[FrozenBlock]
    """Blocks whose entries go as rows."""
    blocks: list[BlockInfo]
    """Blocks that go as files."""


class Departure:
    """One member's slots on their way to another one."""

    def __init__(
        self, engine: Engine, store: Store, member: Member, slots: list[int], check: Callable[[], None]
    ) -> None:
        self._engine = engine
        self._store = store
        self._sharding = engine.sharding
        self._member = member
        self._slots = slots
        self._wanted = frozenset(slots)
        self._check = check
        self._turns = LoopTurns(engine, check, (StoreHeld,))
        self._names: dict[bytes, None] = {}
        self._topics: dict[bytes, TopicCopy] = {}
        self._values: set[bytes] = set()  # that were sent
        self._whole: list[bytes] = []  # what SHARD.TAKE names
        self._blocks_reader: BlockReader | None = None
        self._takes_files = False  # the other member has a cold store of its own
        self._link: MasterLink | None = None
        self._source = b"%b-%b" % (self._sharding.own, secrets.token_hex(8).encode())

    def abandon(self) -> None:
        """The server ends."""
        if self._link is not None:
            self._link.close()

    def go(self) -> None:
        """Move the slots, from the first byte to the last. Raises OSError, MasterRefused, StoreError, CanNotMove."""
        with closing(self._connect(self._member)) as link:
            self._link = link
            after = self._sharding.after_giving(self._slots, self._member)
            is_given = bool(self._sharding.leaving)
            begun = int(link.ask(b"SHARD.BEGIN", self._source, after.text, *runs_of(self._slots)))
            if begun != TAKEN:
                self._takes_files = begun == BEGUN_WITH_BLOCKS
                failpoint("shard-begun")
                if not is_given:
                    self._check_slots()
                self._in_turn(lambda: self._sharding.begin_copying(self._slots))
                try:
                    self._copy()
                    failpoint("shard-copied")
                    if not is_given:
                        self._give_away()
                    failpoint("shard-given")
                    self._send_rest()
                    failpoint("shard-sent")
                    self._ask(b"SHARD.TAKE", after.text, *self._whole)
                except CanNotMove:
                    # nothing was taken, and what was said before this beginning counts for nothing
                    self._in_turn(self._sharding.take_back)
                    raise
                finally:
                    self._in_turn(self._sharding.end_copying)
                failpoint("shard-taken")
            self._drop_keys()
            failpoint("shard-dropped")
            self._in_turn(lambda: self._sharding.forget_given(after))
            failpoint("shard-forgotten")
        self._tell_others()

    def _check_slots(self) -> None:
        if not all(self._sharding.has(slot) for slot in self._slots):
            raise CanNotMove("another member has some of the slots by now")
        if self._others():
            raise CanNotMove("another process has the store open")

    def _others(self) -> int:
        """Servers and programs that have the store open, beside this one."""
        return len(self._store.live.read(subscribers.records)) - 1

    # -- 1. copy

    def _copy(self) -> None:
        digest: bytes | None = b""
        while digest is not None:
            self._check()
            found, digest = self._store.data.read(partial(names_behind, digest=digest, slots=self._wanted))
            self._copy_keys(found)
        for _ in range(_PASSES):
            if sum(self._copy_topic(name) for name in list(self._topics)) <= _FEW_ROWS:
                return

    def _copy_keys(self, found: Iterable[tuple[bytes, int]]) -> None:
        others = []
        for name, type_ in found:
            if is_kept(name, type_):
                self._names[name] = None
                if type_ == TOPIC:
                    self._copy_topic(name)
                else:
                    others.append(name)
        self._send_values(others)

    def _copy_topic(self, name: bytes) -> int:
        """Send what differs; how many rows that were."""
        now_ms = self._engine.keyspace.clock_ms()
        record = self._store.data.read(lambda txn: record_of(txn, name, now_ms))
        if record is None or record.type != TOPIC:
            return 0
        copy = self._known(name, record)
        if has_cold(record):
            if copy.with_blocks:
                self._send_blocks(name, copy, self._store.data.read(partial(self._files, copy.number)))
            else:
                self._thaw(name, copy, self._store.data.read(partial(self._blocks, name)))
        after: bytes | None = b""
        count = 0
        while after is not None:
            self._check()
            difference, after = self._store.data.read(partial(copy.next_rows, after=after))
            self._send_rows(name, copy, difference)
            count += len(difference.rows)
        return count

    def _known(self, name: bytes, record: KeyRecord) -> TopicCopy:
        """Return what was sent of it."""
        copy = self._topics.get(name)
        if copy is None:
            copy = self._topics[name] = TopicCopy(0, with_blocks=self._takes_files)
        copy.become(topic_number(record))
        return copy

    def _blocks(self, name: bytes, txn: Txn) -> list[FrozenBlock]:
        topic = self._engine.keyspace.stored.committed_topic(txn, 0, name)
        return [] if topic is None or not topic.has_cold else blocks_of(txn, topic)

    def _files(self, number: int, txn: Txn) -> list[BlockInfo]:
        return list(cold_blocks.forward(txn, number))

    def _send_blocks(self, name: bytes, copy: TopicCopy, blocks: list[BlockInfo]) -> None:
        """Send those that the other member does not have, as they are. Raises CanNotMove."""
        for block in copy.lacking(blocks):
            ids = entry_ids.text(block.first), entry_ids.text(block.last)
            sizes = block.count, block.wire_bytes, block.file_bytes, block.sealed_ms
            try:
                self._ask(b"SHARD.BLOCK", name, *ids, *[b"%d" % size for size in sizes], block.sha256.hex().encode())
                for piece in pieces(self._place(), block):
                    self._check()
                    self._ask(b"SHARD.PIECE", piece)
            except ColdError as failure:
                raise CanNotMove(f"a block of the cold store can't be read: {failure}") from failure
            except MasterRefused as refusal:
                raise CanNotMove(f"a block of the cold store can't be kept there: {refusal}") from refusal
            copy.take_block(block)
            failpoint("shard-block-sent")

    def _place(self) -> Place:
        home = self._store.data.read(cold_home.get)
        return open_place("" if home is None else home.url, self._store.folder)

    def _thaw(self, name: bytes, copy: TopicCopy, frozen: list[FrozenBlock]) -> None:
        """Send the entries of blocks that the other member does not know. Raises CanNotMove."""
        for each in frozen:
            if not copy.knows(each):
                sent: list[bytes] = []
                try:
                    for rows in rows_of(each, self._reader()):
                        self._check()
                        self._send_rows(name, copy, Difference([], rows))
                        sent += [row for row, _ in rows]
                except (ColdError, ImportError) as failure:
                    raise CanNotMove(f"a block of the cold store can't be read: {failure}") from failure
                copy.take_thawed(each, sent)

    def _reader(self) -> BlockReader:
        if self._blocks_reader is None:
            self._blocks_reader = BlockReader(Path(self._store.folder), self._store.data.read(cold_home.get))
        return self._blocks_reader

    # -- 2. give away

    def _give_away(self) -> None:
        self._in_turn(self._give)
        if self._others():  # it may have looked before
            raise CanNotMove("another process has opened the store")

    def _give(self) -> None:
        sharding, engine = self._sharding, self._engine
        if self._others():
            raise CanNotMove("another process has the store open")
        sharding.give_away(self._slots, self._member)
        address = self._member.address

        def refusal(name: bytes) -> Error | None:
            slot = slot_of(name)
            return Error(b"ASK %d %b" % (slot, address)) if slot in self._wanted else None

        engine.waiting.end_where(refusal)
        engine.followers.end_where(lambda name: slot_of(name) in self._wanted)

    # -- 3 and 4. send what differs, and have it taken

    def _send_rest(self) -> None:
        """The member's own chores (what is deferred, dead letters, retention) go on, so that all is compared in one
        snapshot: what has been touched up to then is known behind it."""
        touched = self._sharding.touched
        names: set[bytes] = set()
        compared: list[_Compared] = []
        while not names or not touched <= names:
            names = touched.union(self._names)
            compared = self._store.data.read(partial(self._compare, names))
            if not names:
                break
        for each in compared:
            if each.difference is not None:
                self._send_rows(each.name, self._topics[each.name], each.difference)
                self._thaw(each.name, self._topics[each.name], each.frozen)
                self._send_rest_of_blocks(each.name, self._topics[each.name], each.blocks)
        values = [each.name for each in compared if each.difference is None]
        self._send_values([name for name in values if name in touched or name not in self._values])
        topics = [each for each in compared if each.difference is not None]
        heads = [head_of(each.name, each.record, with_blocks=self._takes_files) for each in topics]
        said = [word for head in heads for word in (head.name, b"%d" % head.flags, b"%d" % head.expires_ms, head.body)]
        self._whole = [b"%d" % len(heads), *said, *(name for name in values if name in self._values)]

    def _send_rest_of_blocks(self, name: bytes, copy: TopicCopy, blocks: list[BlockInfo]) -> None:
        self._send_blocks(name, copy, blocks)
        if copy.has_blocks:
            self._ask(b"SHARD.BLOCKS", name, *[entry_ids.text(block.first) for block in blocks])

    def _compare(self, names: set[bytes], txn: Txn) -> list[_Compared]:
        now_ms = self._engine.keyspace.clock_ms()
        found = []
        for name in names:
            record = record_of(txn, name, now_ms)
            if record is None or not is_kept(name, record.type):
                continue
            if record.type != TOPIC:
                found.append(_Compared(name, record, None, [], []))
                continue
            copy = self._known(name, record)
            frozen = self._blocks(name, txn) if has_cold(record) and not copy.with_blocks else []
            blocks = self._files(copy.number, txn) if has_cold(record) and copy.with_blocks else []
            found.append(_Compared(name, record, copy.difference(txn, frozen), frozen, blocks))
        return found

    # -- 5. forget

    def _drop_keys(self) -> None:
        digest: bytes | None = b""
        while digest is not None:
            self._check()
            found, digest = self._store.data.read(partial(names_behind, digest=digest, slots=self._wanted))
            names = [name for name, _ in found]
            for at in range(0, len(names), _DROPPED_AT_ONCE):
                self._in_turn(partial(self._drop, names[at : at + _DROPPED_AT_ONCE]))
                failpoint("shard-dropping")

    def _drop(self, names: list[bytes]) -> None:
        for name in names:
            self._engine.keyspace.delete(0, name)

    def _tell_others(self) -> None:
        """The other members; who does not hear of it sends clients here, and they are sent on."""
        directory = self._sharding.directory
        assert directory is not None
        for member in directory.members:
            if member.id not in (self._sharding.own, self._member.id):
                try:
                    with closing(self._connect(member)) as link:
                        link.ask(b"SHARD.LEARN", directory.text)
                except (OSError, MasterRefused) as failure:
                    log.info("%s does not know yet where slots have gone: %s", member.address.decode(), failure)

    def _connect(self, member: Member) -> MasterLink:
        """Logged in as replicas are. Raises OSError, MasterRefused."""
        settings = self._engine.settings
        known = {"username": settings["masteruser"], "password": settings["masterauth"]}
        address = MasterAddress(member.host.decode(), member.port, **known)
        link = MasterLink(address, float(settings["repl-timeout"]))
        try:
            link.introduce(address, 0)
        except BaseException:
            link.close()
            raise
        return link

    # -- saying it

    def _ask(self, command: bytes, *words: bytes) -> bytes:
        assert self._link is not None
        return self._link.ask(command, self._source, *words)

    def _send_rows(self, name: bytes, copy: TopicCopy, difference: Difference) -> None:
        gone, rows = difference
        is_new = not copy.is_there
        for part in _parts(rows) if rows else [[]]:
            if gone or part or is_new:
                is_new = False
                flat = [word for pair in part for word in pair]
                self._ask(b"SHARD.ROWS", name, b"%d" % len(gone), *gone, *flat)
                copy.take(Difference(gone, part))
                gone = []

    def _send_values(self, names: list[bytes]) -> None:
        for at in range(0, len(names), _AT_ONCE):
            self._check()
            found: list[tuple[bytes, int, bytes]] = []
            self._in_turn(partial(self._read_values, names[at : at + _AT_ONCE], found))
            for name, expires_ms, payload in found:
                self._ask(b"SHARD.VALUES", name, b"%d" % expires_ms, payload)
                self._values.add(name)

    def _read_values(self, names: list[bytes], found: list[tuple[bytes, int, bytes]]) -> None:
        keyspace = self._engine.keyspace
        found.clear()
        for name in names:
            record = keyspace.find(0, name)
            if record is not None and not isinstance(record, Topic):
                found.append((name, record.expires_ms, payload_of(record)))
                self._sharding.touched.discard(name)

    def _in_turn(self, work: Callable[[], None]) -> None:
        """Have the loop do this as a turn, as long as others write. Raises StoreError, CanNotMove."""
        while True:
            try:
                return self._turns.do(work)
            except StoreHeld:
                self._check()
                time.sleep(_HELD_S)


def _parts(rows: list[tuple[bytes, bytes]]) -> Iterator[list[tuple[bytes, bytes]]]:
    part: list[tuple[bytes, bytes]] = []
    size = 0
    for row in rows:
        part.append(row)
        size += len(row[1])
        if size >= _AT_ONCE_BYTES or len(part) >= 10 * _AT_ONCE:
            yield part
            part, size = [], 0
    if part:
        yield part
