"""TOPIC.BLOCKS: what of a topic is in the cold store, for those who read its files themselves. Ours.

A topic is its blocks in order, without what stands at or below `floor`, without `deleted`, and no further than
`sealed-to`; and then what the server has above `sealed-to`.
"""

from __future__ import annotations

from rlite_pubsub.commands.lookup import find_topic
from rlite_pubsub.commands.session import CommandSession
from rlite_pubsub.commands.table import Arg, KeySpec, command
from rlite_pubsub.protocol.errors import NO_SUCH_KEY, CommandError
from rlite_pubsub.protocol.replies import Reply
from rlite_pubsub.storage import cold_blocks, cold_home, entry_ids
from rlite_pubsub.storage.cold_blocks import BlockInfo


@command(
    "topic.blocks",
    arity=2,
    flags="readonly",
    group="stream",
    since="0.2.0",
    summary="Where in the cold store a topic's oldest entries are, and which of these are gone",
    complexity="O(N) where N is the number of blocks, and of entries that were deleted from them",
    arguments=(Arg("name", "key", key_spec=0),),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
    ours=True,
)
def topic_blocks(session: CommandSession, args: list[bytes]) -> Reply:
    topic = find_topic(session, args[1])
    if topic is None:
        raise CommandError(NO_SUCH_KEY)
    txn = topic.settle()
    blocks: list[BlockInfo] = []
    deleted: list[Reply] = []
    if topic.has_cold:
        blocks = list(cold_blocks.forward(txn, topic.number))
        found = cold_blocks.buried(txn, topic.number, entry_ids.MIN, entry_ids.MAX)
        deleted = [entry_ids.text(entry_ids.unpack(packed)) for packed, _ in found]
    home = cold_home.get(txn)
    return {
        b"cold": home.url.encode() if home is not None else b"",
        b"store": home.store.encode() if home is not None else b"",
        b"number": topic.number,
        b"sealed-to": entry_ids.text(topic.cold.state.sealed_to if topic.has_cold else entry_ids.MIN),
        b"floor": entry_ids.text(topic.trimmed_id),
        b"deleted": deleted,
        b"blocks": [_about(block) for block in blocks],
    }


def _about(block: BlockInfo) -> Reply:
    return {
        b"path": block.path.encode(),
        b"first": entry_ids.text(block.first),
        b"last": entry_ids.text(block.last),
        b"count": block.count,
        b"wire-bytes": block.wire_bytes,
        b"file-bytes": block.file_bytes,
        b"sha256": block.sha256.hex().encode(),
        b"sealed-ms": block.sealed_ms,
    }
