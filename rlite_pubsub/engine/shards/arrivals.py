"""What other members are sending: keys of slots that will be this member's, once all of them are here.

Law: nothing of it is seen before `take`, which makes all of it this store's in one commit, and the slots this member's
in the next. Whoever dies before that leaves rows that belong to no key, and the sender starts over: nothing was lost,
for it keeps its keys until it knows that they have been taken. To take the same slots once more changes nothing. Each
beginning has a token, so that what was said before it, and is heard late, counts for nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

from rlite_pubsub.engine.payloads import build, read
from rlite_pubsub.engine.shards.directory import ShardDirectory
from rlite_pubsub.keyspace.keyspace import Keyspace
from rlite_pubsub.protocol.errors import CommandError
from rlite_pubsub.protocol.rdb import envelope
from rlite_pubsub.protocol.rdb.malformed import Malformed
from rlite_pubsub.storage.commons import shard_rows
from rlite_pubsub.storage.failpoint import failpoint
from rlite_pubsub.storage.keys import garbage, key_records
from rlite_pubsub.storage.topics import whole_topic

if TYPE_CHECKING:
    from rlite_pubsub.engine.shards.sharding import Sharding

NOT_BEGUN = b"ERR nothing is expected from this member: begin with SHARD.BEGIN"
_BAD_ROW = b"ERR that is no row of a topic"
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
        self.values: dict[bytes, tuple[int, bytes]] = {}
        """By name: when it expires (ms; 0: never), and what RESTORE takes."""


class Arrivals:
    """All of one process."""

    def __init__(self, keyspace: Keyspace, sharding: Sharding) -> None:
        self._keyspace = keyspace
        self._sharding = sharding
        self._arrivals: dict[bytes, Arrival] = {}

    def begin(self, source: bytes, slots: Sequence[int], after: ShardDirectory) -> bool:
        """A member (its id, and a token) begins to send slots; what it has sent before is forgotten. False: they have
        been taken, as the directory will be `after` that. Raises StoreError."""
        known = self._sharding.directory
        if known is not None:
            pairs = [(known.holdings[slot], after.holdings[slot]) for slot in slots]
            if all(held is not None and given is not None and held >= given for held, given in pairs):
                return False
        self._arrivals[source[:_ID_BYTES]] = Arrival(source, slots)
        self._sharding.expect(slot for each in self._arrivals.values() for slot in each.slots)
        txn = self._keyspace.writing()
        wanted = {number for each in self._arrivals.values() for number in each.topics.values()}
        for number in list(shard_rows.arriving(txn)):
            if number not in wanted:
                shard_rows.end_arrival(txn, number)
                garbage.add(txn, garbage.TOPIC, number)
        failpoint("shard-expected")
        return True

    def put_rows(
        self, source: bytes, name: bytes, gone: Sequence[bytes], rows: Sequence[tuple[bytes, bytes]]
    ) -> None:
        """These rows of a topic are there, and those are not any more. Raises CommandError, StoreError."""
        arrival = self._expected(source)
        if not all(whole_topic.is_row(row) for row in (*gone, *(row for row, _ in rows))):
            raise CommandError(_BAD_ROW)
        txn = self._keyspace.writing()
        number = arrival.topics.get(name)
        if number is None:
            arrival.topics[name] = number = key_records.new_topic(txn)
            shard_rows.begin_arrival(txn, number)
        whole_topic.remove(txn, number, gone)
        whole_topic.put(txn, number, rows)
        failpoint("shard-rows")

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
