"""SHARD.MOVE, SHARD.MOVES, and what members say to each other while slots move: SHARD.BEGIN, ROWS, VALUES, TAKE. An
extension; the four are for members of the same version alone."""

from __future__ import annotations

from rlite_pubsub.engine.arguments.integers import LONG_MAX, integer
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.shards.arrivals import MovedTopic
from rlite_pubsub.engine.shards.directory import ShardDirectory, read
from rlite_pubsub.engine.shards.sharding import Sharding
from rlite_pubsub.engine.shards.slots import SLOTS
from rlite_pubsub.engine.table import Arg, command
from rlite_pubsub.protocol.errors import CLUSTER_DISABLED, SYNTAX, CommandError
from rlite_pubsub.protocol.replies import OK, Reply

SINCE = "1.0.0"
_BAD_SLOT = b"ERR Invalid or out of range slot"
_NOT_OURS = b"ERR slot %d is not this member's"
_NO_SENDER = b"ERR only a server moves slots"
SOURCE = Arg("member")


def check_sharded(session: CommandSession) -> Sharding:
    """Return what is known of the sharded store. Raises CommandError if there is none."""
    sharding = session.engine.sharding
    if sharding.directory is None:
        raise CommandError(CLUSTER_DISABLED)
    return sharding


def _slots(words: list[bytes]) -> list[int]:
    """Read slots such as `5` and `7-9`."""
    found: list[int] = []
    for word in words:
        first, dash, last = word.partition(b"-")
        begin = integer(first, 0, SLOTS - 1, _BAD_SLOT)
        found += range(begin, integer(last if dash else first, begin, SLOTS - 1, _BAD_SLOT) + 1)
    return list(dict.fromkeys(found))


def _directory(text: bytes) -> ShardDirectory:
    try:
        return read(text)
    except ValueError as failure:
        raise CommandError(b"ERR " + str(failure).encode()) from failure


@command(
    "shard.move",
    arity=-3,
    flags="admin noscript no_multi",
    group="cluster",
    since=SINCE,
    summary="Begin to move slots of this member to another one, with all of their keys",
    complexity="O(N) where N is the number of slots",
    arguments=(SOURCE, Arg("slot_first-last", multiple=True)),
    ours=True,
)
def shard_move(session: CommandSession, args: list[bytes]) -> Reply:
    """Move slots; answer how many more are to be moved, beside those that the member has, or is about to have.
    SHARD.MOVES shows the progress."""
    sharding = check_sharded(session)
    assert sharding.directory is not None
    member = sharding.directory.member(args[1])
    if member is None or member.id == sharding.own:
        raise CommandError(b"ERR Unknown node " + args[1][:40])
    there = [slot for slot, owner in enumerate(sharding.directory.owners) if owner == member]
    done = {*there, *(slot for slot, target in sharding.leaving.items() if target == member)}
    slots = [slot for slot in _slots(args[2:]) if slot not in done]
    for slot in slots:
        if not sharding.has(slot):
            raise CommandError(_NOT_OURS % slot)
    if sharding.send is None:
        raise CommandError(_NO_SENDER)
    sharding.send(member, slots)
    return len(slots)


@command(
    "shard.moves",
    arity=1,
    flags="admin noscript",
    group="cluster",
    since=SINCE,
    summary="Show how many slots are still to be moved from this member, and what holds this up",
    complexity="O(1)",
    ours=True,
)
def shard_moves(session: CommandSession, args: list[bytes]) -> Reply:
    """`failure` is empty where nothing is wrong."""
    slots, failure = check_sharded(session).report()
    return {b"slots": slots, b"failure": failure.encode()}


@command(
    "shard.begin",
    arity=-4,
    flags="admin noscript no_multi",
    group="cluster",
    since=SINCE,
    summary="Begin to receive slots from another member",
    complexity="O(N) where N is the number of slots",
    arguments=(SOURCE, Arg("directory"), Arg("slot_first-last", multiple=True)),
    ours=True,
)
def shard_begin(session: CommandSession, args: list[bytes]) -> Reply:
    """Answer 1, or 2 if blocks may come as files, or 0 if the slots were taken before: `directory` is the one that
    applies once they are."""
    check_sharded(session)
    return session.engine.arrivals.begin(args[1], _slots(args[3:]), _directory(args[2]))


@command(
    "shard.rows",
    arity=-4,
    flags="admin noscript no_multi",
    group="cluster",
    since=SINCE,
    summary="Receive rows of a topic from another member",
    complexity="O(N) where N is the number of rows",
    arguments=(
        SOURCE,
        Arg("name"),
        Arg("gone", "integer"),
        Arg("row", optional=True, multiple=True),
        Arg("row_value", "block", optional=True, multiple=True, arguments=(Arg("row"), Arg("value"))),
    ),
    ours=True,
)
def shard_rows(session: CommandSession, args: list[bytes]) -> Reply:
    check_sharded(session)
    gone = integer(args[3], 0, len(args) - 4, SYNTAX)
    rest = args[4 + gone :]
    if len(rest) % 2:
        raise CommandError(SYNTAX)
    pairs = list(zip(rest[::2], rest[1::2], strict=True))
    session.engine.arrivals.put_rows(args[1], args[2], args[4 : 4 + gone], pairs)
    return OK


@command(
    "shard.values",
    arity=-5,
    flags="admin noscript no_multi",
    group="cluster",
    since=SINCE,
    summary="Receive keys that are not topics from another member",
    complexity="O(N) where N is the number of keys",
    arguments=(
        SOURCE,
        Arg("key", "block", multiple=True, arguments=(Arg("name"), Arg("expires", "unix-time"), Arg("payload"))),
    ),
    ours=True,
)
def shard_values(session: CommandSession, args: list[bytes]) -> Reply:
    check_sharded(session)
    rest = args[2:]
    if len(rest) % 3:
        raise CommandError(SYNTAX)
    for name, expires, payload in zip(rest[::3], rest[1::3], rest[2::3], strict=True):
        session.engine.arrivals.put_value(args[1], name, integer(expires, 0, LONG_MAX, SYNTAX), payload)
    return OK


@command(
    "shard.take",
    arity=-4,
    flags="admin noscript no_multi",
    group="cluster",
    since=SINCE,
    summary="Take over all slots and keys that were received",
    complexity="O(N) where N is the number of keys",
    arguments=(
        SOURCE,
        Arg("directory"),
        Arg("topics", "integer"),
        Arg(
            "topic",
            "block",
            optional=True,
            multiple=True,
            arguments=(Arg("name"), Arg("flags", "integer"), Arg("expires", "unix-time"), Arg("body")),
        ),
        Arg("name", optional=True, multiple=True),
    ),
    ours=True,
)
def shard_take(session: CommandSession, args: list[bytes]) -> Reply:
    check_sharded(session)
    end = 4 + 4 * integer(args[3], 0, (len(args) - 4) // 4, SYNTAX)
    heads = [
        MovedTopic(name, integer(flags, 0, 255, SYNTAX), integer(expires, 0, LONG_MAX, SYNTAX), body)
        for name, flags, expires, body in zip(*[iter(args[4:end])] * 4, strict=True)
    ]
    session.engine.arrivals.take(args[1], _directory(args[2]), heads, args[end:])
    return OK
