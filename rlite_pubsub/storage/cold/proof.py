"""Checks that the records of the cold store fit each other: a topic's blocks and their counts, tombstones, shared
blocks, and dropped files.

Every transaction leaves them consistent. A fault is damage, or a bug of this program.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise

from rlite_pubsub.storage import databases
from rlite_pubsub.storage.cold import cold_blocks
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.topics import entry_ids
from rlite_pubsub.storage.topics.proof import TopicHead

_NUMBER_BYTES = 8


def faults(txn: Txn, topics: Mapping[int, TopicHead]) -> Iterator[str]:
    """Yield the faults. `topics`: all existing topics, by number."""
    shared: Counter[str] = Counter()
    for head in databases.heads(txn, databases.COLD, _NUMBER_BYTES):
        number = int.from_bytes(head, "big")
        if number:
            paths = [block.path for block in cold_blocks.forward(txn, number)]
            shared.update(paths)
            if paths and number in topics and not topics[number].has_cold:  # once all are gone a state may be left
                yield f"topic {topics[number].name!r} has blocks, and does not know of them"
    for number, topic in topics.items():
        if topic.has_cold:
            yield from (f"topic {topic.name!r} {fault}" for fault in _of_topic(txn, number, topic))
    of_nobody = databases.COLD + bytes(_NUMBER_BYTES)
    counted = {
        key[len(of_nobody) :].decode(): int.from_bytes(value, "big") for key, value in databases.items(txn, of_nobody)
    }
    if counted != {path: count for path, count in shared.items() if count > 1}:
        yield f"{len(counted)} blocks are said to be of several topics, and others are"
    for key, _ in databases.items(txn, databases.DROPPED_BLOCKS):
        path = key[1 + _NUMBER_BYTES :].decode()
        if path in shared:
            yield f"block {path} is to be removed, and a topic has it"


def _of_topic(txn: Txn, number: int, topic: TopicHead) -> Iterator[str]:
    state = cold_blocks.state(txn, number)
    blocks = list(cold_blocks.forward(txn, number))
    for block in blocks:
        sizes = sum(group.count for group in block.groups), sum(group.wire_bytes for group in block.groups)
        if not block.first <= block.last or sizes != (block.count, block.wire_bytes):
            yield f"has block {block.path}, whose row groups hold something else"
    for block, following in pairwise(blocks):
        if not block.last < following.first:
            yield f"has blocks that overlap: {block.path}, {following.path}"
    if len(blocks) > 1 and blocks[-2].last > state.sealed_to:  # entries of the last one may still be in chunks
        yield f"is sealed to {state.sealed_to}, and its last block but one ends with {blocks[-2].last}"
    buried = list(cold_blocks.buried(txn, number, entry_ids.MIN, entry_ids.MAX))
    for packed, _ in buried:
        id = entry_ids.unpack(packed)
        if not any(block.first <= id <= block.last for block in blocks):
            yield f"has entry {id} deleted in a block, and no block with it"
    held = sum(block.count for block in blocks) - len(buried)
    is_whole = not blocks or (topic.trimmed_id < blocks[0].first and blocks[-1].last <= state.sealed_to)
    if state.live > held or (is_whole and state.live != held):
        yield f"counts {state.live} entries in its blocks, and has {held}"
