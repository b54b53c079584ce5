"""TOPIC.BLOCKS and TOPIC.SWAP: which of a topic is in the cold store, and one block there instead of several. An
extension."""

from __future__ import annotations

from rlite_pubsub.engine.arguments.integers import LONG_MAX, integer
from rlite_pubsub.engine.arguments.lookup import find_topic, keyspace_of, topic_for_change
from rlite_pubsub.engine.arguments.stream_ids import strict_id
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.protocol.errors import NO_SUCH_KEY, SYNTAX, CommandError
from rlite_pubsub.protocol.replies import Reply
from rlite_pubsub.storage.cold import cold_blocks, cold_home
from rlite_pubsub.storage.cold.cold_blocks import BlockInfo, GroupInfo
from rlite_pubsub.storage.topics import entry_ids
from rlite_pubsub.storage.topics.entry_ids import Id

# -- TOPIC.BLOCKS: what of a topic is in the cold store, for programs that read its files themselves. An extension. A
# topic is its
# blocks in order, without what stands at or below `floor`, without `deleted`, and no further than `sealed-to`; and then
# what the server has above `sealed-to`.

@command(
    "topic.blocks",
    arity=2,
    flags="readonly",
    group="stream",
    since="0.2.0",
    summary="Show which blocks of the cold store hold a topic's oldest entries, and which of these are deleted",
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


_DIGEST_DIGITS = 64
_OF_BLOCK, _OF_GROUP = 4, 4
NOT_THESE = b"ERR these are not adjacent blocks of the topic, or the new one does not have their entries"


@command(
    "topic.swap",
    arity=-13,
    flags="write admin denyoom",
    group="stream",
    since="0.2.0",
    summary="Replace several blocks of the cold store by one with the same entries",
    complexity="O(N) where N is the number of blocks, and of entries that were deleted from them",
    arguments=(
        Arg("name", "key", key_spec=0),
        Arg("number", "integer"),
        Arg("numfirsts", "integer"),
        Arg("first", "string", multiple=True),
        Arg("path", "string"),
        Arg("file-bytes", "integer"),
        Arg("sha256", "string"),
        Arg("sealed-ms", "integer"),
        Arg("group", "block", multiple=True, arguments=(
            Arg("first", "string"), Arg("last", "string"), Arg("count", "integer"), Arg("wire-bytes", "integer"),
        )),
    ),
    key_specs=(KeySpec(("RW", "UPDATE"), ("index", 1), ("range", 0, 1, 0)),),
    ours=True,
)  # fmt: skip
def topic_swap(session: CommandSession, args: list[bytes]) -> Reply:
    """`number` is the topic's (TOPIC.BLOCKS), `first` the first ids of the blocks that go. 1; 0 if the new block is
    there already, so that it can be asked for again."""
    number = integer(args[2], 1, LONG_MAX)
    count = integer(args[3], 1, LONG_MAX)
    rest = args[4 + count :]
    if len(rest) < _OF_BLOCK + _OF_GROUP or (len(rest) - _OF_BLOCK) % _OF_GROUP:
        raise CommandError(SYNTAX)
    firsts = [strict_id(word) for word in args[4 : 4 + count]]
    new = _block(rest)
    topic = find_topic(session, args[1])
    if topic is None:
        raise CommandError(NO_SUCH_KEY)
    if topic.number != number or not topic.has_cold:
        raise CommandError(NOT_THESE)
    there = next(cold_blocks.forward(topic.settle(), number, new.first), None)
    if there is not None and (there.path, there.sha256) == (new.path, new.sha256):
        return 0
    topic = topic_for_change(session, args[1])
    assert topic is not None
    keyspace = keyspace_of(session)
    txn = keyspace.writing()
    topic.settle()
    if not topic.cold.swap(txn, firsts, new):
        raise CommandError(NOT_THESE)
    topic.keyspace.keep(topic)
    return 1


def _block(words: list[bytes]) -> BlockInfo:
    """Path, bytes, digest, time, and the row groups."""
    path, file_bytes, digest, sealed_ms = words[:_OF_BLOCK]
    groups = tuple(_group(words[at : at + _OF_GROUP]) for at in range(_OF_BLOCK, len(words), _OF_GROUP))
    try:
        text, sha256 = path.decode(), bytes.fromhex(digest.decode())
    except ValueError:
        raise CommandError(SYNTAX) from None
    is_path = bool(text) and not text.startswith("/") and ".." not in text.split("/")
    if not is_path or len(digest) != _DIGEST_DIGITS or not _is_ordered([*_edges(groups)]):
        raise CommandError(SYNTAX)
    return BlockInfo(
        text,
        groups[0].first,
        groups[-1].last,
        sum(group.count for group in groups),
        sum(group.wire_bytes for group in groups),
        integer(file_bytes, 1, LONG_MAX),
        sha256,
        integer(sealed_ms, 0, LONG_MAX),
        groups,
    )


def _group(words: list[bytes]) -> GroupInfo:
    first, last, count, wire_bytes = words
    return GroupInfo(
        strict_id(first), strict_id(last), integer(count, 1, (1 << 32) - 1), integer(wire_bytes, 1, LONG_MAX)
    )


def _edges(groups: tuple[GroupInfo, ...]) -> list[tuple[Id, bool]]:
    return [edge for group in groups for edge in ((group.first, False), (group.last, group.count == 1))]


def _is_ordered(edges: list[tuple[Id, bool]]) -> bool:
    """Each id above the one before; a group of one entry has the same twice."""
    return all(one < other or (one == other and may) for (one, _), (other, may) in zip(edges, edges[1:], strict=False))
