"""DEBUG DIGEST: one number that differs where any key, value or expiry does, computed as redis-server 7.0.15 does it.

Both servers with the same keys have the same digest, so that a test can compare all they hold at once. It takes as long
as it takes, with nothing else going on: that is what DEBUG is for.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha1
from typing import TYPE_CHECKING

from rlite_pubsub.keyspace.records import Text
from rlite_pubsub.keyspace.topic.topic import Topic

if TYPE_CHECKING:
    from rlite_pubsub.keyspace.keyspace import Keyspace
    from rlite_pubsub.keyspace.records import Record

BYTES = 20
_STRING, _STREAM = 0, 6
"""Redis's numbers of types."""


class Digest:
    """A number that things are put into, in or out of order."""

    def __init__(self) -> None:
        self._number = 0

    def add(self, other: bytes) -> None:
        """Put in a digest; the order does not matter."""
        self._number ^= int.from_bytes(other, "big")

    def mix(self, data: bytes) -> None:
        """Put in data behind what is there."""
        self.add(sha1(data).digest())
        self._number = int.from_bytes(sha1(self.value).digest(), "big")

    def mix_record(self, record: Record) -> None:
        """Put in what a key holds, and whether it expires."""
        if isinstance(record, Text):
            self.mix(_STRING.to_bytes(4, "big"))
            self.mix(record.value)
        elif isinstance(record, Topic):
            self.mix(_STREAM.to_bytes(4, "big"))
            self._mix_entries(record)
        if record.expires_ms:
            self.add(sha1(b"!!expire!!").digest())

    def _mix_entries(self, topic: Topic) -> None:
        for part in topic.between():
            for entry in part.chunk.entries(part.start, part.stop):
                entry_id, *fields = _bulks(entry)
                self.mix(entry_id.replace(b"-", b"."))
                for field in fields:
                    self.mix(field)

    @property
    def value(self) -> bytes:
        return self._number.to_bytes(BYTES, "big")


def _bulks(wire: bytes) -> Iterator[bytes]:
    """The bulk strings in arrays of them."""
    at = 0
    while at < len(wire):
        end = wire.index(b"\r\n", at)
        if wire[at : at + 1] == b"$":
            length = int(wire[at + 1 : end])
            yield wire[end + 2 : end + 2 + length]
            end += 2 + length
        at = end + 2


def of_key(keyspace: Keyspace, database: int, name: bytes) -> bytes:
    """The digest of what one key holds; zero if there is none."""
    digest = Digest()
    record = keyspace.find(database, name)
    if record is not None:
        digest.mix_record(record)
    return digest.value


def of_all(keyspace: Keyspace) -> bytes:
    """The digest of all databases."""
    whole = Digest()
    for database in keyspace.databases():
        whole.mix(database.to_bytes(4, "big"))
        for name in [name for name, _ in keyspace.walk(database)]:
            record = keyspace.find(database, name)
            if record is not None:
                one = Digest()
                one.mix(name)
                one.mix_record(record)
                whole.add(sha1(one.value).digest())
    return whole.value
