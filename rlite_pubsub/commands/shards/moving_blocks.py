"""SHARD.BLOCK, PIECE, BLOCKS: blocks of the cold store arrive as files while slots move. An extension, for members of
the same version only."""

from __future__ import annotations

from rlite_pubsub.commands.shards.moving import SOURCE, check_sharded
from rlite_pubsub.engine.arguments.integers import LONG_MAX, integer
from rlite_pubsub.engine.arguments.stream_ids import strict_id
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.shards.block_arrivals import Kept
from rlite_pubsub.engine.table import Arg, command
from rlite_pubsub.engine.waits.thread_wait import ThreadWait
from rlite_pubsub.protocol.encoder import encode
from rlite_pubsub.protocol.errors import SYNTAX, CommandError
from rlite_pubsub.protocol.replies import NO_REPLY, OK, Error, Reply
from rlite_pubsub.storage.cold.cold_blocks import BlockInfo

SINCE = "1.0.0"


@command(
    "shard.block",
    arity=10,
    flags="admin noscript no_multi",
    group="cluster",
    since=SINCE,
    summary="Begin to receive a block of a topic from another member",
    complexity="O(1)",
    arguments=(
        SOURCE,
        Arg("name"),
        Arg("first"),
        Arg("last"),
        Arg("entries", "integer"),
        Arg("wire-bytes", "integer"),
        Arg("file-bytes", "integer"),
        Arg("sealed", "unix-time"),
        Arg("sha256"),
    ),
    ours=True,
)
def shard_block(session: CommandSession, args: list[bytes]) -> Reply:
    """Expect a block; SHARD.PIECE brings its file."""
    check_sharded(session)
    source, name, first, last = args[1:5]
    count, wire_bytes, file_bytes, sealed_ms = (integer(word, 1, LONG_MAX, SYNTAX) for word in args[5:9])
    try:
        digest = bytes.fromhex(args[9].decode("ascii"))
    except ValueError:
        raise CommandError(SYNTAX) from None
    said = BlockInfo("", strict_id(first), strict_id(last), count, wire_bytes, file_bytes, digest, sealed_ms, ())
    session.engine.arrivals.offer_block(source, name, said)
    return OK


@command(
    "shard.piece",
    arity=3,
    flags="admin noscript no_multi",
    group="cluster",
    since=SINCE,
    summary="Receive the next bytes of a block from another member",
    complexity="O(N) where N is the number of bytes",
    arguments=(SOURCE, Arg("bytes")),
    ours=True,
)
def shard_piece(session: CommandSession, args: list[bytes]) -> Reply:
    """Take a piece; the last one is answered once the block is proved and in its place."""
    check_sharded(session)
    arrivals = session.engine.arrivals
    keep = arrivals.put_piece(args[1], args[2])
    if keep is None:
        return OK

    def kept(found: Kept) -> bytes:
        try:
            arrivals.have_kept(found)
        except CommandError as refusal:
            return encode(Error(refusal.text), session.protocol)
        return encode(OK, session.protocol)

    session.wait_for(ThreadWait(session, keep, kept))
    return NO_REPLY


@command(
    "shard.blocks",
    arity=-3,
    flags="admin noscript no_multi",
    group="cluster",
    since=SINCE,
    summary="Forget received blocks of a topic that it has no more",
    complexity="O(N) where N is the number of blocks",
    arguments=(SOURCE, Arg("name"), Arg("first", optional=True, multiple=True)),
    ours=True,
)
def shard_blocks(session: CommandSession, args: list[bytes]) -> Reply:
    """All but those with these first ids."""
    check_sharded(session)
    session.engine.arrivals.leave_only_blocks(args[1], args[2], set(map(strict_id, args[3:])))
    return OK
