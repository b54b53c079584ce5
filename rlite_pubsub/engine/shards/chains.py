"""Reading a queue that is spread over several stores (groups/chain.py): entries of its closed segments, wherever these
are, and then those under its own key, as one history.

A segment that this member has is read where it is. Another member's is fetched (segment_pieces.py); a program that has
a member's folder open, and talks to no members, sends its client to the member's server instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from secrets import token_hex
from typing import TYPE_CHECKING, Final

from rlite_pubsub.engine.shards.segment_pieces import SegmentMiss, SegmentPieces
from rlite_pubsub.engine.shards.sharding import Redirect
from rlite_pubsub.engine.shards.slots import slot_of
from rlite_pubsub.engine.waits.cold_wait import rehearse
from rlite_pubsub.groups import chain
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.protocol.errors import CLUSTER_DISABLED, CommandError, c_string
from rlite_pubsub.storage.memory import EPHEMERAL
from rlite_pubsub.storage.topics import entry_ids, segments
from rlite_pubsub.storage.topics.topic_settings import NO_APPEND_RULES

if TYPE_CHECKING:
    from rlite_pubsub.engine.client import Client
    from rlite_pubsub.engine.shards.sharding import Sharding
    from rlite_pubsub.keyspace.keyspace import Keyspace
    from rlite_pubsub.storage.topics.chunks import ChunkSlice
    from rlite_pubsub.storage.topics.entry_ids import Id
    from rlite_pubsub.storage.topics.segments import Segment

MOST_BYTES: Final = 8 << 20
"""A request for many entries gets fewer of them, once it has so much of other members'."""
_TAG_BYTES: Final = 6
_DRAWS: Final = 200_000
_NOT_NOW: Final = b"ERR The next values are another member's, for which a transaction or a script can't wait"


class Chains:
    """The spread queues of one process."""

    def __init__(self, keyspace: Keyspace, sharding: Sharding, pieces: SegmentPieces) -> None:
        self.pieces = pieces
        self._keyspace = keyspace
        self._sharding = sharding

    def cut(self, queue: Topic) -> Segment | None:
        """Close what a queue from `for_change` has, as a segment in a slot of its own, which this member has, too; None
        if there is nothing to close. Raises CommandError."""
        try:
            return chain.cut(self._keyspace.stored, queue, self._free_name(queue.name))
        except chain.StillNeeded as failure:
            raise CommandError(b"BUSYGROUP The queue can't be cut: %b" % str(failure).encode()) from failure

    def cut_if_full(self, queue: Topic) -> None:
        """Begin a new segment if a queue has as much under its own key as it may; where its groups need that still, a
        later push begins it."""
        retention = queue.keyspace.retention
        rules = retention.append_rules(queue) if retention is not None else NO_APPEND_RULES
        is_long = 0 < rules.segment_entries <= queue.length
        if (is_long or 0 < rules.segment_bytes <= queue.size_bytes) and self._sharding.directory is not None:
            with suppress(CommandError):
                self.cut(queue)

    def _free_name(self, queue: bytes) -> bytes:
        """Return a key's name that nobody has ever had, in another slot of this member than the queue's."""
        if self._sharding.directory is None:
            raise CommandError(CLUSTER_DISABLED)
        if queue.endswith(EPHEMERAL):
            raise CommandError(b"ERR an ephemeral queue has no segments")
        own = slot_of(queue)
        for _ in range(_DRAWS):
            name = b"{%b}%b" % (token_hex(_TAG_BYTES).encode(), queue)
            if slot_of(name) != own and self._sharding.has(slot_of(name)):
                return name
        raise CommandError(b"ERR this member has no slot for a segment: give it more (rlite-pubsub shard rebalance)")

    def gather(self, session: Client, queue: Topic, after: Id, count: int) -> list[ChunkSlice]:
        """Return at most `count` entries after this id: those in front of a member that does not answer, if there are
        any. Change nothing before. Raises SegmentMiss, ColdMiss, CommandError."""
        found: list[ChunkSlice] = []
        left, size = count, 0
        while left and (segment := segments.behind(self._keyspace.reading(), queue.number, after)) is not None:
            here = self._here(segment)
            if here is None:
                try:
                    parts, after = self._elsewhere(session, segment, after, left)
                except CommandError:
                    if found:
                        return found  # what is here; who asks for more is told why there is none
                    raise
                size += sum(len(part.wire) for part in parts)
            else:
                parts, after = self._read(session, here, segment, after, left)
            found += parts
            left -= sum(part.count for part in parts)
            if found and size >= MOST_BYTES:
                return found
        start = entry_ids.after(after)
        if left and start is not None and start <= queue.last_id:
            reads = partial(_between, queue, start, left)
            rehearse(session, queue, reads)
            found += reads()
        return found

    def entries(self, session: Client, queue: Topic, ids: list[bytes]) -> list[bytes | None]:
        """Return the entries of packed ids, wherever they are; None for those that are gone. Raises as `gather`."""
        found = queue.entries(ids)
        for place, (packed, entry) in enumerate(zip(ids, found, strict=True)):
            before = entry_ids.before(entry_ids.unpack(packed))
            if entry is None and before is not None and chain.is_closed_behind(queue, before):
                parts = self.gather(session, queue, before, 1)
                if parts and parts[0].ids[: entry_ids.BYTES] == packed:
                    found[place] = parts[0].chunk.entries(parts[0].start, parts[0].stop)[0]
        return found

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """A reader within this can wait for the cold store, even if its session can't be parked."""
        shelf = self._keyspace.cold.shelf
        if shelf is None:
            yield
        else:
            with shelf.waiting():
                yield

    def _here(self, segment: Segment) -> Topic | None:
        """Return a segment's topic, if this member has it."""
        if not self._sharding.has(slot_of(segment.name)):
            return None
        topic = self._keyspace.find(0, segment.name)
        if not isinstance(topic, Topic):
            raise gone(segment.name)
        return topic

    def _read(
        self, session: Client, topic: Topic, segment: Segment, after: Id, count: int
    ) -> tuple[list[ChunkSlice], Id]:
        start = entry_ids.after(after)
        assert start is not None
        reads = partial(_between, topic, start, count)
        rehearse(session, topic, reads)
        parts = reads()
        if sum(part.count for part in parts) < count:
            return parts, segment.last
        ids = parts[-1].ids
        return parts, entry_ids.unpack(ids, len(ids) - entry_ids.BYTES)

    def _elsewhere(
        self, session: Client, segment: Segment, after: Id, count: int
    ) -> tuple[list[ChunkSlice], Id]:
        if self.pieces.fetch is None:
            raise self._to_server(segment)
        try:
            parts, up_to = self.pieces.get(segment.name, after, count)
        except SegmentMiss:
            if session.deny_blocking:
                raise CommandError(_NOT_NOW) from None
            raise
        return parts, min(up_to, segment.last)

    def _to_server(self, segment: Segment) -> CommandError:
        directory = self._sharding.directory
        own = None if directory is None else directory.member(self._sharding.own)
        if own is None:
            return gone(segment.name)
        return Redirect(b"MOVED %d %b" % (slot_of(segment.name), own.address))


def _between(topic: Topic, start: Id, count: int) -> list[ChunkSlice]:
    return list(topic.between(start, limit=count))


def gone(name: bytes) -> CommandError:
    """The error where a segment that the directory names is not there any more."""
    return CommandError(b"NOSEGMENT Segment '%b' of the queue has been removed; QUEUE.DROP forgets it" % c_string(name))
