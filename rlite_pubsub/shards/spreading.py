"""Spreading queues over the members of a sharded store: which segment of a queue goes where.

Nothing here need come to its end, as in whole.py: a cut is one commit of the member that has the queue, a segment is
moved as any key is, and to spread a queue that is spread evenly moves nothing.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, NamedTuple

from redis.exceptions import RedisError, ResponseError

from rlite_pubsub.engine.shards.directory import Member, ShardDirectory
from rlite_pubsub.engine.shards.slots import slot_of
from rlite_pubsub.shards.whole import ShardedWhole, WholeError, address_of


class SegmentPlace(NamedTuple):
    """A part of a queue, and who has it."""

    name: bytes
    member: Member
    entries: int
    size_bytes: int
    first: str
    """Empty: the queue's own key, which grows."""
    last: str
    blocks: int | None
    """None: its member does not say."""


class SubscriberPlace(NamedTuple):
    """How far a subscriber has come."""

    name: str
    position: str
    behind: int | None
    segment: bytes
    """The key that has its next values."""


class QueuePlaces(NamedTuple):
    """A queue's directory."""

    name: bytes
    parts: list[SegmentPlace]
    """Oldest first; the last one is the queue's own key."""
    subscribers: list[SubscriberPlace]


def queues_of(whole: ShardedWhole, directory: ShardDirectory) -> list[bytes]:
    """Return the names of all queues. Raises RedisError."""
    names: set[bytes] = set()
    for member in directory.members:
        listed = whole.ask(address_of(member), "QUEUE.LIST")
        names.update(name for name in listed if directory.owners[slot_of(name)] == member)
    return sorted(names)


def places_of(whole: ShardedWhole, directory: ShardDirectory, queue: bytes) -> QueuePlaces:
    """Return where a queue is. Raises WholeError, RedisError."""
    info = _known(whole.ask(address_of(_owner(directory, queue)), "QUEUE.INFO", queue))
    parts = []
    for segment in map(_known, info[b"segments"]):
        name = segment[b"name"]
        span = segment[b"first"].decode(), segment[b"last"].decode()
        parts.append(_place(whole, directory, name, segment[b"length"], segment[b"bytes"], *span))
    own = info[b"own-length"], info[b"own-bytes"]
    parts.append(_place(whole, directory, queue, *own, "", info[b"last-id"].decode()))
    subscribers = []
    for each in map(_known, info[b"subscribers"]):
        name, position = each[b"name"].decode(errors="backslashreplace"), each[b"position"].decode()
        subscribers.append(SubscriberPlace(name, position, each[b"behind"], each[b"segment"]))
    return QueuePlaces(queue, parts, subscribers)


def cut(whole: ShardedWhole, directory: ShardDirectory, queue: bytes) -> str:
    """Begin a new segment of a queue, if there is anything in the last one. Return why its groups do not allow it now;
    empty if it is done. Raises WholeError, RedisError."""
    try:
        whole.ask(address_of(_owner(directory, queue)), "QUEUE.CUT", queue)
    except ResponseError as refusal:
        code, _, why = str(refusal).partition(" ")
        if code != "BUSYGROUP":
            raise
        return why
    return ""


def spread(whole: ShardedWhole, directory: ShardDirectory, queue: bytes) -> int:
    """Have closed segments moved so that all members have about as many bytes of a queue; how many. Raises WholeError,
    RedisError."""
    places = places_of(whole, directory, queue)
    moves = evenly(places.parts[:-1], directory.members)
    for segment, member in moves:
        whole.move(directory, [slot_of(segment.name)], member)
    return len(moves)


def evenly(parts: list[SegmentPlace], members: tuple[Member, ...]) -> list[tuple[SegmentPlace, Member]]:
    """Return which segments are to be moved, and where. What is spread evenly stays."""
    loads = dict.fromkeys(members, 0)
    moves = []
    for part in sorted(parts, key=lambda part: (-part.size_bytes, part.name)):
        least = min(loads, key=lambda member: (loads[member], member != part.member, member))
        loads[least] += part.size_bytes
        if least != part.member:
            moves.append((part, least))
    return moves


def _place(
    whole: ShardedWhole, directory: ShardDirectory, name: bytes, entries: int, size_bytes: int, first: str, last: str
) -> SegmentPlace:
    member = _owner(directory, name)
    blocks: int | None = None
    with suppress(RedisError):  # what the directory says is worth showing even if this member is away
        blocks = len(_known(whole.ask(address_of(member), "TOPIC.BLOCKS", name))[b"blocks"])
    return SegmentPlace(name, member, entries, size_bytes, first, last, blocks)


def _owner(directory: ShardDirectory, key: bytes) -> Member:
    owner = directory.owners[slot_of(key)]
    if owner is None:
        raise WholeError(f"no member has slot {slot_of(key)}")
    return owner


def _known(row: Any) -> dict[bytes, Any]:
    return row if isinstance(row, dict) else dict(zip(row[::2], row[1::2], strict=True))
