"""XTRIM, and the trimming of XADD."""

from __future__ import annotations

from rlite_pubsub.engine.arguments.lookup import find_topic, topic_for_change
from rlite_pubsub.engine.arguments.stream_arguments import Trimming, trimming
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.engine.waits.cold_wait import Places, reads_ahead, rehearse
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.keyspace.topic.trimming import about_from_id, about_to_length, from_id, to_length
from rlite_pubsub.protocol.replies import Reply
from rlite_pubsub.storage.topics import entry_ids


@command(
    "xtrim",
    arity=-4,
    flags="write",
    group="stream",
    since="5.0.0",
    categories="stream",
    summary="Trims the stream to (approximately if '~' is passed) a certain size",
    complexity="O(N), with N being the number of evicted entries. Constant times are very small however, since "
    "entries are organized in macro nodes containing multiple entries that can be released with a single "
    "deallocation.",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg(
            "trim",
            "block",
            arguments=(
                Arg(
                    "strategy",
                    "oneof",
                    arguments=(
                        Arg("maxlen", "pure-token", token="MAXLEN"),
                        Arg("minid", "pure-token", token="MINID", since="6.2.0"),
                    ),
                ),
                Arg(
                    "operator",
                    "oneof",
                    optional=True,
                    arguments=(
                        Arg("equal", "pure-token", token="="),
                        Arg("approximately", "pure-token", token="~"),
                    ),
                ),
                Arg("threshold"),
                Arg("count", "integer", token="LIMIT", optional=True, since="6.2.0"),
            ),
        ),
    ),
    key_specs=(
        KeySpec(
            (
                "RW",
                "DELETE",
            ),
            ("index", 1),
            ("range", 0, 1, 0),
        ),
    ),
    tips=("nondeterministic_output",),
    history=(("6.2.0", "Added the `MINID` trimming strategy and the `LIMIT` option."),),
)
def xtrim(session: CommandSession, args: list[bytes]) -> Reply:
    wanted = trimming(args)
    topic = topic_for_change(session, args[1])
    if topic is None:
        return 0
    rehearse_trim(session, topic, wanted, 0)
    return trim(session, topic, wanted)


def rehearse_trim(session: CommandSession, topic: Topic, wanted: Trimming, more: int) -> None:
    """Read what an exact trim will have to know of the cold part, to which so many entries are about to be added."""
    rehearse(session, topic, lambda: look_at_trim(topic, wanted, more))


def look_at_trim(topic: Topic, wanted: Trimming, more: int) -> None:
    """Do the reading. Raises ColdMiss."""
    if wanted.is_approximate or not topic.has_cold:
        return
    if wanted.min_id is None:
        excess = topic.length + more - wanted.max_length
    else:
        end = entry_ids.before(wanted.min_id)
        excess = sum([part.count for part in topic.between(end=end)]) if end is not None else 0
    topic.cold.look_at_trim(excess)


@reads_ahead(b"xtrim")
def _look_ahead(session: CommandSession, args: list[bytes], places: Places) -> None:
    topic = find_topic(session, args[1])
    if topic is not None:
        look_at_trim(topic, trimming(args), 0)


def trim(session: CommandSession, topic: Topic, wanted: Trimming) -> int:
    """Trim a topic that `topic_for_change` has found, and tell of it; how many entries were removed."""
    if wanted.min_id is None and topic.length <= wanted.max_length:
        return 0
    if not wanted.is_approximate:
        removed = to_length(topic, wanted.max_length) if wanted.min_id is None else from_id(topic, wanted.min_id)
    else:
        limit = session.engine.node_limits.most_trimmed if wanted.limit is None else wanted.limit
        if wanted.min_id is None:
            removed = about_to_length(topic, wanted.max_length, limit)
        else:
            removed = about_from_id(topic, wanted.min_id, limit)
    if removed:
        session.engine.notifications.tell("t", b"xtrim", topic.database, topic.name)
    return removed
