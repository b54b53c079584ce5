"""What other members are sending: keys of slots that will be this member's, once all of them are here.

Law: nothing of it is seen before `take`, which makes all of it this store's in one commit, and the slots this member's
in the next. Whoever dies before that leaves rows that belong to no key, and the sender starts over: nothing was lost,
for it keeps its keys until it knows that they have been taken. To take the same slots once more changes nothing. Each
beginning has a token, so that what was said before it, and is heard late, counts for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

from rlite_pubsub.engine.payloads import build, read
from rlite_pubsub.engine.shards.block_arrivals import ArrivingBlocks, BlockKeeper, Kept, at
from rlite_pubsub.engine.shards.directory import ShardDirectory
from rlite_pubsub.keyspace.keyspace import Keyspace
from rlite_pubsub.keyspace.topic.topic import COLD_FLAG
from rlite_pubsub.protocol.errors import CommandError
from rlite_pubsub.protocol.rdb import envelope
from rlite_pubsub.protocol.rdb.malformed import Malformed
from rlite_pubsub.storage.cold.cold_blocks import BlockInfo
from rlite_pubsub.storage.commons import shard_rows
from rlite_pubsub.storage.failpoint import failpoint
from rlite_pubsub.storage.keys import garbage, key_records
from rlite_pubsub.storage.topics import whole_topic

if TYPE_CHECKING:
    from rlite_pubsub.engine.shards.sharding import Sharding
    from rlite_pubsub.storage.environment import Txn
    from rlite_pubsub.storage.topics.entry_ids import Id

TAKEN, BEGUN, BEGUN_WITH_BLOCKS = range(3)
"""What comes of a beginning: the slots were taken before; they may be sent; and the files of blocks, too."""
NOT_BEGUN = b"ERR nothing is expected from this member: begin with SHARD.BEGIN"
_BAD_ROW = b"ERR that is no row of a topic"
_NO_COLD_STORE = b"ERR this member keeps no blocks"
_KEEPING = b"ERR a block is being written: begin again in a moment"
_SWEPT = b"ERR another server has begun on this store meanwhile: begin again"
_BAD_VALUE = b"ERR DUMP payload version or checksum are wrong"
_ID_BYTES = 40
_NUMBER = Struct(">Q")


class MovedTopic(NamedTuple):
    """A topic's key, as the sender has it."""

    name: bytes
    flags: int
    expires_ms: int
    body: bytes


class Arrival:
    """What one member is sending."""

    def __init__(self, source: bytes, slots: Iterable[int]) -> None:
        self.source = source
        self.slots = frozenset(slots)
        self.topics: dict[bytes, int] = {}
        """By name, the numbers under which their rows stand."""
        self.blocks: dict[bytes, ArrivingBlocks] = {}
        """By the topic's name."""
        self.coming: ArrivingBlocks | None = None
        """The topic's whose block is awaited."""
        self.values: dict[bytes, tuple[int, bytes]] = {}
        """By name: when it expires (ms; 0: never), and what RESTORE takes."""

    def expect_block(self, name: bytes, number: int) -> ArrivingBlocks:
        """Expect the bytes of a block of this topic; return the topic's blocks."""
        self.coming = self.blocks.setdefault(name, ArrivingBlocks(name, number))
        return self.coming


class Arrivals:
    """All of one process."""

    def __init__(self, keyspace: Keyspace, sharding: Sharding) -> None:
        self._keyspace = keyspace
        self._sharding = sharding
        self._arrivals: dict[bytes, Arrival] = {}
        self._keeper: BlockKeeper | None = None
        self._keeping: set[object] = set()
        """One for each block that a thread is writing; only the thread takes it away."""

    def keep_blocks_by(self, keeper: BlockKeeper) -> None:
        """Keep blocks in the cold store of this server, if it has one. Remove what a former server was sent, and had
        not taken when it was killed. Raises StoreError."""
        self._keeper = keeper
        if self._keyspace.environment.read(lambda txn: any(True for _ in shard_rows.arriving(txn))):
            self._sweep(self._keyspace.writing())
            self._keyspace.give_way()

    def begin(self, source: bytes, slots: Sequence[int], after: ShardDirectory) -> int:
        """Let a member (its id, and a token) begin to send slots; forget what it has sent before. Return one of the
        three above; `after` is the directory once they are taken. Raises CommandError, StoreError."""
        known = self._sharding.directory
        if known is not None:
            pairs = [(known.holdings[slot], after.holdings[slot]) for slot in slots]
            if all(held is not None and given is not None and held >= given for held, given in pairs):
                return TAKEN
        if self._keeping:  # it could be written behind the sweep
            raise CommandError(_KEEPING)
        self._arrivals[source[:_ID_BYTES]] = Arrival(source, slots)
        self._sharding.expect(slot for each in self._arrivals.values() for slot in each.slots)
        self._sweep(self._keyspace.writing())
        failpoint("shard-expected")
        return BEGUN if self._keeper is None or not self._keeper.begin() else BEGUN_WITH_BLOCKS

    def _sweep(self, txn: Txn) -> None:
        """Remove what nobody is sending any more."""
        wanted = {number for each in self._arrivals.values() for number in each.topics.values()}
        for number in list(shard_rows.arriving(txn)):
            if number not in wanted:
                shard_rows.end_arrival(txn, number)
                garbage.add(txn, garbage.TOPIC, number)

    def put_rows(
        self, source: bytes, name: bytes, gone: Sequence[bytes], rows: Sequence[tuple[bytes, bytes]]
    ) -> None:
        """These rows of a topic are there, and those are not any more. Raises CommandError, StoreError."""
        arrival = self._expected(source)
        if not all(whole_topic.is_row(row) for row in (*gone, *(row for row, _ in rows))):
            raise CommandError(_BAD_ROW)
        txn = self._keyspace.writing()
        number = _number(txn, arrival, name)
        whole_topic.remove(txn, number, gone)
        whole_topic.put(txn, number, rows)
        failpoint("shard-rows")

    def offer_block(self, source: bytes, name: bytes, said: BlockInfo) -> None:
        """Expect a block of a topic next. Raises CommandError, StoreError."""
        arrival, keeper = self._expected(source), self._keeper
        if keeper is None:
            raise CommandError(_NO_COLD_STORE)
        txn = self._keyspace.writing()
        number = _number(txn, arrival, name)
        here = at(said, keeper.path_of(name, number, said.first, said.last))
        arrival.expect_block(name, number).offer(txn, here, self._due_ms())

    def put_piece(self, source: bytes, piece: bytes) -> Callable[[], Kept] | None:
        """Take the next bytes of that block's file. With the last of them, return what is to be done in a thread, and
        then told to `have_kept`. Raises CommandError."""
        arrival, keeper = self._expected(source), self._keeper
        if arrival.coming is None or keeper is None:
            raise CommandError(_NO_COLD_STORE)
        if not arrival.coming.put(piece):
            return None
        keep, token = arrival.coming.keeping(keeper), object()
        self._keeping.add(token)

        def work() -> Kept:
            try:
                return keep()
            finally:
                self._keeping.discard(token)

        return work

    def have_kept(self, kept: Kept) -> None:
        """Note what the thread has done. Raises CommandError if it could not keep the block."""
        if kept.failure is not None:
            raise CommandError(b"ERR " + str(kept.failure).encode())
        kept.blocks.kept[kept.block.first] = kept.block

    def leave_only_blocks(self, source: bytes, name: bytes, firsts: Collection[Id]) -> None:
        """Leave a topic only the blocks with these first ids. Raises CommandError, StoreError."""
        blocks = self._expected(source).blocks.get(name)
        if blocks is not None:
            blocks.leave_only(self._keyspace.writing(), firsts, self._due_ms())

    def _due_ms(self) -> int:
        return self._keyspace.clock_ms() + self._keyspace.cold.grace_ms

    def put_value(self, source: bytes, name: bytes, expires_ms: int, payload: bytes) -> None:
        """This is a key's value, as DUMP has it. Raises CommandError."""
        arrival = self._expected(source)
        if not envelope.is_sealed(payload):
            raise CommandError(_BAD_VALUE)
        arrival.values[name] = expires_ms, payload

    def take(
        self, source: bytes, after: ShardDirectory, topics: Sequence[MovedTopic], values: Sequence[bytes]
    ) -> None:
        """All is here: these topics and other keys are the whole of it. From now on the slots are this member's. Raises
        CommandError, StoreError."""
        arrival = self._expected(source)
        keyspace = self._keyspace
        if not arrival.values.keys() >= set(values) or not arrival.topics.keys() >= {head.name for head in topics}:
            raise CommandError(NOT_BEGUN)
        try:
            images = [(name, arrival.values[name][0], read(arrival.values[name][1])) for name in values]
        except Malformed:
            raise CommandError(_BAD_VALUE) from None
        txn = keyspace.writing()
        if not all(shard_rows.is_arriving(txn, arrival.topics[head.name]) for head in topics):
            raise CommandError(_SWEPT)
        for head in topics:
            if head.flags & COLD_FLAG and head.name in arrival.blocks:
                arrival.blocks[head.name].take(txn)
        for name in (*(head.name for head in topics), *values):
            keyspace.delete(0, name)
        taken = {arrival.topics[head.name] for head in topics}
        for head in topics:
            number = arrival.topics[head.name]
            whole_topic.place(txn, number, keyspace.stored.place_for(0, head.name))
            body = _NUMBER.pack(number) + head.body[_NUMBER.size :]
            keyspace.stored.adopt_topic(0, head.name, head.flags, head.expires_ms, body)
            shard_rows.end_arrival(txn, number)
        for number in set(arrival.topics.values()) - taken:
            shard_rows.end_arrival(txn, number)
            garbage.add(txn, garbage.TOPIC, number)
        for name, expires_ms, image in images:
            record = build(keyspace, 0, name, image)
            if expires_ms:
                keyspace.set_expiry(record, expires_ms)
        keyspace.give_way()
        if keyspace.turn.failure is not None:
            raise keyspace.turn.failure
        failpoint("shard-adopted")
        self._sharding.learn(after)
        failpoint("shard-learned")
        del self._arrivals[source[:_ID_BYTES]]
        self._sharding.expect(slot for each in self._arrivals.values() for slot in each.slots)

    def _expected(self, source: bytes) -> Arrival:
        arrival = self._arrivals.get(source[:_ID_BYTES])
        if arrival is None or arrival.source != source:
            raise CommandError(NOT_BEGUN)
        return arrival


def _number(txn: Txn, arrival: Arrival, name: bytes) -> int:
    """Return the number under which a topic's rows stand. Raises CommandError."""
    number = arrival.topics.get(name)
    if number is None:
        arrival.topics[name] = number = key_records.new_topic(txn)
        shard_rows.begin_arrival(txn, number)
    elif not shard_rows.is_arriving(txn, number):
        raise CommandError(_SWEPT)
    return number
