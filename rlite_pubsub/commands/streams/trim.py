"""XTRIM."""

from __future__ import annotations

from rlite_pubsub.engine.arguments.lookup import find_topic, topic_for_change
from rlite_pubsub.engine.arguments.stream_arguments import trimming
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.engine.topics.trimming import read_for_trim, rehearse_trim, trim
from rlite_pubsub.engine.waits.cold_wait import Places, reads_ahead
from rlite_pubsub.protocol.replies import Reply


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
    if topic.has_cold:
        rehearse_trim(session, topic, wanted, 0)
    return trim(session, topic, wanted)


@reads_ahead(b"xtrim")
def _read_ahead(session: CommandSession, args: list[bytes], places: Places) -> None:
    topic = find_topic(session, args[1])
    if topic is not None:
        read_for_trim(topic, trimming(args), 0)
