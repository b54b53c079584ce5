"""XPENDING: what is pending in a group, as a whole and one by one."""

from __future__ import annotations

from rlite_pubsub.engine.arguments.group_lookup import find_group, no_group
from rlite_pubsub.engine.arguments.integers import integer
from rlite_pubsub.engine.arguments.stream_ids import range_end, range_start
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.groups import claims
from rlite_pubsub.groups.group import Group
from rlite_pubsub.protocol.errors import SYNTAX, CommandError
from rlite_pubsub.protocol.replies import NULL_ARRAY, Reply
from rlite_pubsub.storage.groups import pending
from rlite_pubsub.storage.topics import entry_ids


@command(
    "xpending",
    arity=-3,
    flags="readonly",
    group="stream",
    since="5.0.0",
    categories="stream",
    summary="Return information and entries from a stream consumer group pending entries list, that are messages "
    "fetched but never acknowledged.",
    complexity="O(N) with N being the number of elements returned, so asking for a small fixed number of entries per "
    "call is O(1). O(M), where M is the total number of entries scanned when used with the IDLE filter. When the "
    "command returns just the summary and the list of consumers is small, it runs in O(1) time; otherwise, an "
    "additional O(N) time for iterating every consumer.",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("group"),
        Arg(
            "filters",
            "block",
            optional=True,
            arguments=(
                Arg("min-idle-time", "integer", token="IDLE", optional=True, since="6.2.0"),
                Arg("start"),
                Arg("end"),
                Arg("count", "integer"),
                Arg("consumer", optional=True),
            ),
        ),
    ),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
    tips=("nondeterministic_output",),
    history=(("6.2.0", "Added the `IDLE` option and exclusive range intervals."),),
)
def xpending(session: CommandSession, args: list[bytes]) -> Reply:
    if len(args) == 3:
        return _summary(_group(session, args))
    if not 6 <= len(args) <= 9:
        raise CommandError(SYNTAX)
    at, idle_ms = 3, 0
    if args[3].upper() == b"IDLE":
        idle_ms = integer(args[4])
        if len(args) < 8:
            raise CommandError(SYNTAX)
        at = 5
    count = integer(args[at + 2])
    start, end = range_start(args[at]), range_end(args[at + 1])
    group = _group(session, args)
    if at + 3 < len(args):
        consumer = group.consumer(args[at + 3])
        if consumer is None:
            return []
        found = claims.of_consumer(group, consumer, start)
    else:
        found = claims.walk(group, start, end)
    if count <= 0:
        return []
    now_ms, last = group.topic.keyspace.clock_ms(), entry_ids.pack(end)
    rows: list[Reply] = []
    for packed, (number, delivered_ms, deliveries) in found:
        if packed > last:
            break
        idle = now_ms - delivered_ms
        if idle_ms and idle < idle_ms:
            continue
        text = entry_ids.text(entry_ids.unpack(packed))
        rows.append((text, group.numbered(number).name, max(idle, 0), deliveries))
        if len(rows) == count:
            break
    return rows


def _group(session: CommandSession, args: list[bytes]) -> Group:
    group = find_group(session, args[1], args[2])
    if group is None:
        raise no_group(args[1], args[2])
    return group


def _summary(group: Group) -> Reply:
    """Answer how many are pending, from where to where, and with whom."""
    if not group.pending_count:
        return [0, None, None, NULL_ARRAY]
    txn = group.topic.keyspace.reading()
    first, last = next(pending.walk(txn, group.of_group)), pending.last(txn, group.of_group)
    assert last is not None
    return [
        group.pending_count,
        entry_ids.text(entry_ids.unpack(first.ids)),
        entry_ids.text(entry_ids.unpack(last.high)),
        [(consumer.name, b"%d" % consumer.pending_count) for consumer in group.consumers() if consumer.pending_count],
    ]
