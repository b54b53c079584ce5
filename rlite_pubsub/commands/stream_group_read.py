"""XREADGROUP: entries are delivered to the consumers of a group."""

from __future__ import annotations

from functools import partial

from rlite_pubsub.commands.cold_wait import rehearse
from rlite_pubsub.commands.group_delivery import (
    NEW,
    Target,
    ahead,
    delivered,
    has_landed,
    land,
    may_have_something,
)
from rlite_pubsub.commands.group_lookup import no_group
from rlite_pubsub.commands.group_waiting import wait
from rlite_pubsub.commands.lookup import find_topic
from rlite_pubsub.commands.session import CommandSession
from rlite_pubsub.commands.stream_arguments import Reading, of_keys, reading
from rlite_pubsub.commands.stream_ids import strict_id
from rlite_pubsub.commands.table import Arg, KeySpec, command
from rlite_pubsub.protocol.errors import CommandError
from rlite_pubsub.protocol.replies import NULL_ARRAY, Reply

_NO_DOLLAR = (
    b"ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history of this consumer by "
    b"specifying a proper ID, or use the > ID to get new messages. The $ ID would just return an empty result set."
)
_WITH_GROUP = b" in XREADGROUP with GROUP option"


@command(
    "xreadgroup",
    arity=-7,
    flags="blocking write",
    group="stream",
    since="5.0.0",
    categories="stream",
    summary="Return new entries from a stream using a consumer group, or access the history of the pending entries for "
    "a given consumer. Can block.",
    complexity="For each stream mentioned: O(M) with M being the number of elements returned. If M is constant (e.g. "
    "always asking for the first 10 elements with COUNT), you can consider it O(1). On the other side when XREADGROUP "
    "blocks, XADD will pay the O(N) time in order to serve the N clients blocked on the stream getting new data.",
    arguments=(
        Arg("group_consumer", "block", token="GROUP", arguments=(Arg("group"), Arg("consumer"))),
        Arg("count", "integer", token="COUNT", optional=True),
        Arg("milliseconds", "integer", token="BLOCK", optional=True),
        Arg("noack", "pure-token", token="NOACK", optional=True),
        Arg(
            "streams",
            "block",
            token="STREAMS",
            arguments=(Arg("key", "key", key_spec=0, multiple=True), Arg("ID", multiple=True)),
        ),
    ),
    key_specs=(KeySpec(("RO", "ACCESS"), ("keyword", "STREAMS", 4), ("range", -1, 1, 2)),),
)
def xreadgroup(session: CommandSession, args: list[bytes]) -> Reply:
    wanted = reading(args, by_group=True)
    targets = _targets(session, wanted)
    targets = _rehearse(session, targets, wanted)
    if session.instance.readership.join(session, [target.group for target in targets], wanted.consumer):
        targets = _targets(session, wanted)  # the latest
    keyspace = targets[0].group.topic.keyspace
    found: list[tuple[bytes, Reply]] = []
    if any(may_have_something(target, wanted) for target in targets):
        if not keyspace.turn.writes:
            keyspace.writing()
            targets = _targets(session, wanted)  # the latest
        for target in targets:
            reply = delivered(session, target, wanted) if may_have_something(target, wanted) else None
            if reply is not None:
                found.append((target.key, reply))
    if found:
        return of_keys(session, found)
    return NULL_ARRAY if wanted.block_ms is None else wait(session, wanted, wanted.block_ms)


def _rehearse(session: CommandSession, targets: list[Target], wanted: Reading) -> list[Target]:
    """Read what will be delivered, where that is in the cold store; the latest targets. Raises ColdMiss."""
    if any(target.group.topic.has_cold and has_landed(target) for target in targets):
        targets[0].group.topic.keyspace.writing()
        targets = _targets(session, wanted)
        for target in targets:
            land(target)
    for target in targets:
        rehearse(session, target.group.topic, partial(ahead, target, wanted))
    return targets


def _targets(session: CommandSession, wanted: Reading) -> list[Target]:
    name = wanted.group
    assert name is not None
    targets = []
    for key, text in zip(wanted.keys, wanted.ids, strict=True):
        topic = find_topic(session, key)
        group = None if topic is None else topic.group(name)
        if group is None:
            raise no_group(key, name, _WITH_GROUP)
        if text == b">":
            start = NEW
        elif text == b"$":
            raise CommandError(_NO_DOLLAR)
        else:
            start = strict_id(text)
        targets.append(Target(key, group, start))
    return targets
