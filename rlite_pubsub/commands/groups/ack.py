"""XACK: what was delivered is done.

The ids of an acknowledgement are mostly those of one read, in its order: they are parsed all at once, and compared with
the run of pending entries as a whole.
"""

from __future__ import annotations

from struct import Struct
from struct import error as OutOfRange

from rlite_pubsub.engine.arguments.group_lookup import find_group, latest
from rlite_pubsub.engine.arguments.stream_ids import strict_id
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.groups import pending, release
from rlite_pubsub.protocol.replies import Reply
from rlite_pubsub.storage.topics import entry_ids

_DIGITS = b"0123456789"
_LONG_ZEROS = b"0" * 40
"""What is longer than an id may be, and yet no more than 64 bits, has so many in a row."""


@command(
    "xack",
    arity=-4,
    flags="write fast",
    group="stream",
    since="5.0.0",
    categories="stream",
    summary="Marks a pending message as correctly processed, effectively removing it from the pending entries list of "
    "the consumer group. Return value of the command is the number of messages successfully acknowledged, that is, the "
    "IDs we were actually able to resolve in the PEL.",
    complexity="O(1) for each message ID processed.",
    arguments=(Arg("key", "key", key_spec=0), Arg("group"), Arg("ID", multiple=True)),
    key_specs=(KeySpec(("RW", "UPDATE"), ("index", 1), ("range", 0, 1, 0)),),
)
def xack(session: CommandSession, args: list[bytes]) -> Reply:
    group = find_group(session, args[1], args[2])
    if group is None:
        return 0
    packed_ids = packed(args[3:])
    if not group.pending_count and not group.settings.released:
        return 0
    if not group.topic.keyspace.turn.writes:
        group = latest(session, args[1], group)
    if group is None:
        return 0
    acknowledged = pending.acknowledge(group, packed_ids)
    return acknowledged + release.forget(group, packed_ids) if group.settings.released else acknowledged


def packed(ids: list[bytes]) -> bytes:
    """Ids, packed. Those that are two plain numbers each, as most are, are read all at once. Raises CommandError."""
    joined = b",".join(ids)
    if joined.translate(None, _DIGITS) == b"-," * (len(ids) - 1) + b"-" and _LONG_ZEROS not in joined:
        numbers = joined.replace(b",", b"-").split(b"-")
        try:
            return Struct(f">{len(numbers)}Q").pack(*map(int, numbers))
        except (ValueError, OutOfRange):  # half an id, or more than 64 bits
            pass
    return b"".join([entry_ids.pack(strict_id(text)) for text in ids])
