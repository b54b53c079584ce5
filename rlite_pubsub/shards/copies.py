"""What of some slots' keys another member has been sent, and what it lacks still.

A topic's rows are compared by hashes of what was sent, so that they can be copied while they change, again and again,
until little differs; the last comparison, once nobody changes them, is exact.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from itertools import islice
from typing import Final, NamedTuple

from rlite_pubsub.engine.shards.arrivals import MovedTopic
from rlite_pubsub.engine.shards.slots import slot_of
from rlite_pubsub.keyspace.topic.topic import COLD_FLAG
from rlite_pubsub.shards.thawing import FrozenBlock
from rlite_pubsub.storage.cold.cold_blocks import BlockInfo
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.keys import key_records
from rlite_pubsub.storage.keys.key_records import TOPIC, KeyRecord
from rlite_pubsub.storage.memory import EPHEMERAL
from rlite_pubsub.storage.topics import whole_topic
from rlite_pubsub.storage.topics.entry_ids import Id

KEYS_AT_ONCE: Final = 5000
ROWS_BYTES: Final = 1 << 20


class Difference(NamedTuple):
    """What the other member lacks of a topic, or has too much."""

    gone: list[bytes]
    rows: list[tuple[bytes, bytes]]


class TopicCopy:
    """One topic, as the other member has it."""

    def __init__(self, number: int, *, with_blocks: bool) -> None:
        """`with_blocks`: its blocks are sent as files, not as rows of the hot log."""
        self.number = number
        self.with_blocks = with_blocks
        self.is_there = False
        """The other member knows of it, be it without a row."""
        self._sent: dict[bytes, int] = {}
        self._thawed: dict[Hashable, list[bytes]] = {}
        self._blocks: dict[Id, BlockInfo] = {}

    def lacking(self, blocks: list[BlockInfo]) -> list[BlockInfo]:
        """Return those of its blocks that the other member has not been sent."""
        return [block for block in blocks if self._blocks.get(block.first) != block]

    def take_block(self, block: BlockInfo) -> None:
        """Note that the other member has been sent this one."""
        self._blocks[block.first] = block
        self.is_there = True

    @property
    def has_blocks(self) -> bool:
        """Whether the other member has been sent some."""
        return bool(self._blocks)

    def knows(self, frozen: FrozenBlock) -> bool:
        """Return whether the other member has been sent this block's entries."""
        return frozen.name in self._thawed

    def take_thawed(self, frozen: FrozenBlock, rows: list[bytes]) -> None:
        """Note that it has been sent them, as these rows."""
        self._thawed[frozen.name] = rows

    def become(self, number: int) -> None:
        """Its rows stand under this number now: it was removed and made again, say, and is sent over the old one."""
        self.number = number

    def take(self, difference: Difference) -> None:
        """Note that the other member has been sent this."""
        self.is_there = True
        for row in difference.gone:
            self._sent.pop(row, None)
        for row, value in difference.rows:
            self._sent[row] = hash(value)

    def next_rows(self, txn: Txn, after: bytes) -> tuple[Difference, bytes | None]:
        """Return what differs after this row, up to about a megabyte, and where to go on (None: at the end).
        What is gone is left to `difference`."""
        found: list[tuple[bytes, bytes]] = []
        size = 0
        for row, value in whole_topic.rows(txn, self.number, after, with_cold=self.with_blocks):
            if self._sent.get(row) != hash(value):
                found.append((row, value))
                size += len(value)
                if size >= ROWS_BYTES:
                    return Difference([], found), row
        return Difference([], found), None

    def difference(self, txn: Txn, frozen: list[FrozenBlock]) -> Difference:
        """All that differs, but for the entries of blocks that it does not know."""
        there = {row for each in frozen for row in self._thawed.get(each.name, ())}
        found = []
        for row, value in whole_topic.rows(txn, self.number, with_cold=self.with_blocks):
            there.add(row)
            if self._sent.get(row) != hash(value):
                found.append((row, value))
        return Difference([row for row in self._sent if row not in there], found)


def topic_number(record: KeyRecord) -> int:
    """Under which its rows stand."""
    return int.from_bytes(record.body[:8], "big")


def has_cold(record: KeyRecord) -> bool:
    """Return whether some of it is in the cold store."""
    return bool(record.flags & COLD_FLAG)


def record_of(txn: Txn, name: bytes, now_ms: int) -> KeyRecord | None:
    """A key of database 0, if there is one and its time is not over."""
    space = key_records.space(txn, 0).number
    record = key_records.get(txn, key_records.place(space, name)) if space else None
    return None if record is None or 0 < record.expires_ms <= now_ms else record


def head_of(name: bytes, record: KeyRecord, *, with_blocks: bool) -> MovedTopic:
    """As the other member is to have it; without blocks, if it has been sent their entries."""
    flags = record.flags if with_blocks else record.flags & ~COLD_FLAG
    return MovedTopic(name, flags, record.expires_ms, record.body)


def names_behind(txn: Txn, digest: bytes, slots: frozenset[int]) -> tuple[list[tuple[bytes, int]], bytes | None]:
    """(name, type) of keys in these slots, out of the next few thousand keys behind this digest; where it goes on
    (None: at the end)."""
    space = key_records.space(txn, 0).number
    found: list[tuple[bytes, int]] = []
    if not space:
        return found, None
    looked_at = list(islice(key_records.walk(txn, space, digest), KEYS_AT_ONCE))
    for _, type_, _, name in looked_at:
        if slot_of(name) in slots:
            found.append((name, type_))
    return found, None if len(looked_at) < KEYS_AT_ONCE else looked_at[-1][0] + b"\0"


def is_kept(name: bytes, type_: int) -> bool:
    """Ephemeral topics stay behind: they are nobody's once their readers have gone."""
    return type_ != TOPIC or not name.endswith(EPHEMERAL)


def runs_of(slots: list[int]) -> Iterator[bytes]:
    """As SHARD.BEGIN takes them."""
    begin = end = -2
    for slot in sorted(slots):
        if slot != end + 1:
            if begin >= 0:
                yield b"%d-%d" % (begin, end)
            begin = slot
        end = slot
    if begin >= 0:
        yield b"%d-%d" % (begin, end)
