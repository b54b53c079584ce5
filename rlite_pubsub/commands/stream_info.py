"""XINFO STREAM and XINFO HELP: what is known of a topic.

A topic of ours is no radix tree. `radix-tree-keys` is the number of nodes that redis-server would have, counted where
there are few and projected from the first of them otherwise (delivery/nodes.py). `radix-tree-nodes` is one more.
"""

from __future__ import annotations

from rlite_pubsub.commands.help import help_reply
from rlite_pubsub.commands.integers import integer
from rlite_pubsub.commands.lookup import find_topic
from rlite_pubsub.commands.session import CommandSession
from rlite_pubsub.commands.stream_group_info import groups_in_full
from rlite_pubsub.commands.stream_range import array
from rlite_pubsub.commands.table import Arg, KeySpec, command, container
from rlite_pubsub.delivery.topic import Topic
from rlite_pubsub.protocol.errors import CommandError, subcommand_syntax
from rlite_pubsub.protocol.replies import Encoded, Reply
from rlite_pubsub.storage import entry_ids

_NO_SUCH_KEY = b"ERR no such key"
_DEFAULT_COUNT = 10
_COUNTED_NODES = 16

container(
    "xinfo",
    arity=-2,
    group="stream",
    since="5.0.0",
    summary="A container for stream introspection commands",
    complexity="Depends on subcommand.",
)


@command(
    "xinfo|stream",
    arity=-3,
    flags="readonly",
    group="stream",
    since="5.0.0",
    categories="stream",
    summary="Get information about a stream",
    complexity="O(1)",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg(
            "full",
            "block",
            token="FULL",
            optional=True,
            arguments=(Arg("count", "integer", token="COUNT", optional=True),),
        ),
    ),
    key_specs=(
        KeySpec(
            (
                "RO",
                "ACCESS",
            ),
            ("index", 2),
            ("range", 0, 1, 0),
        ),
    ),
    history=(
        ("6.0.0", "Added the `FULL` modifier."),
        (
            "7.0.0",
            "Added the `max-deleted-entry-id`, `entries-added`, `recorded-first-entry-id`, `entries-read` and "
            "`lag` fields",
        ),
    ),
)
def xinfo_stream(session: CommandSession, args: list[bytes]) -> Reply:
    topic = find_topic(session, args[2])
    if topic is None:
        raise CommandError(_NO_SUCH_KEY)
    count = _full_count(args)
    keys = _node_count(topic)
    about: dict[Reply, Reply] = {
        b"length": topic.length,
        b"radix-tree-keys": keys,
        b"radix-tree-nodes": keys + 1,
        b"last-generated-id": entry_ids.text(topic.last_id),
        b"max-deleted-entry-id": entry_ids.text(topic.max_deleted_id),
        b"entries-added": topic.entries_added,
        b"recorded-first-entry-id": entry_ids.text(topic.first_id),
    }
    if count is None:
        first, last = next(topic.between(limit=1), None), next(topic.backward(limit=1), None)
        about[b"groups"] = topic.group_count
        about[b"first-entry"] = None if first is None else Encoded(first.wire)
        about[b"last-entry"] = None if last is None else Encoded(last.wire)
    else:
        about[b"entries"] = array(topic.between(limit=count or None))
        about[b"groups"] = groups_in_full(topic, count)
    return about


def _full_count(args: list[bytes]) -> int | None:
    """How many entries FULL shows of each list, 0 being all; None without it. Raises CommandError."""
    options = args[3:]
    if not options:
        return None
    if len(options) not in (1, 3) or options[0].upper() != b"FULL":
        raise subcommand_syntax(args)
    if len(options) == 1:
        return _DEFAULT_COUNT
    if options[1].upper() != b"COUNT":
        raise subcommand_syntax(args)
    count = integer(options[2])
    return _DEFAULT_COUNT if count < 0 else count


def _node_count(topic: Topic) -> int:
    nodes = topic.nodes
    nodes.learn_all(topic.node_limits, _COUNTED_NODES)
    known = len(nodes.known)
    there = sum([node.live for node in nodes.known])
    return known if there >= topic.length or not there else -(-known * topic.length // there)


@command(
    "xinfo|help",
    arity=2,
    flags="loading stale",
    group="stream",
    since="5.0.0",
    categories="stream",
    summary="Show helpful text about the different subcommands",
    complexity="O(1)",
)
def xinfo_help(session: CommandSession, args: list[bytes]) -> Reply:
    return help_reply(
        args,
        "CONSUMERS <key> <groupname>",
        "    Show consumers of <groupname>.",
        "GROUPS <key>",
        "    Show the stream consumer groups.",
        "STREAM <key> [FULL [COUNT <count>]",
        "    Show information about the stream.",
    )
