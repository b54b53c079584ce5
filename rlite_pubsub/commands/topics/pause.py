"""TOPIC.PAUSE, TOPIC.RESUME: a group, or all groups of a topic, are given nothing new. An extension.

Who publishes goes on, and so does what is in flight: it may be acknowledged, and comes back when it is over its time.
TOPIC.SUBSCRIBE and XREAD go on, too: they read for themselves, and share no work.
"""

from __future__ import annotations

from rlite_pubsub.commands.topics.group import SINCE
from rlite_pubsub.engine.arguments.group_lookup import no_group_of_key
from rlite_pubsub.engine.arguments.lookup import topic_for_change
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.groups.group import group_of
from rlite_pubsub.protocol.errors import NO_SUCH_KEY, SYNTAX, CommandError
from rlite_pubsub.protocol.replies import Reply

_UPDATE = (KeySpec(("RW", "UPDATE"), ("index", 1), ("range", 0, 1, 0)),)
_ARGUMENTS = (Arg("name", "key", key_spec=0), Arg("group", optional=True))


@command(
    "topic.pause",
    arity=-2,
    flags="write fast",
    group="stream",
    since=SINCE,
    summary="Stop delivering new entries to a group, or to all groups of a topic",
    complexity="O(1)",
    arguments=_ARGUMENTS,
    key_specs=_UPDATE,
    ours=True,
)
def topic_pause(session: CommandSession, args: list[bytes]) -> Reply:
    """Answer 1, or 0 if it is paused already."""
    return _set(session, args, is_paused=True)


@command(
    "topic.resume",
    arity=-2,
    flags="write fast",
    group="stream",
    since=SINCE,
    summary="Resume a group, or the groups of a topic that are not paused themselves",
    complexity="O(1)",
    arguments=_ARGUMENTS,
    key_specs=_UPDATE,
    ours=True,
)
def topic_resume(session: CommandSession, args: list[bytes]) -> Reply:
    """Answer 1, or 0 if it is not paused. Waiting clients are served."""
    return _set(session, args, is_paused=False)


def _set(session: CommandSession, args: list[bytes], *, is_paused: bool) -> int:
    if len(args) > 3:
        raise CommandError(SYNTAX)
    topic = topic_for_change(session, args[1])
    if topic is None:
        raise CommandError(NO_SUCH_KEY)
    if len(args) == 2:
        if topic.is_paused == is_paused:
            return 0
        topic.is_paused = is_paused
    else:
        group = group_of(topic, args[2])
        if group is None:
            raise no_group_of_key(args[1], args[2])
        if group.settings.is_paused == is_paused:
            return 0
        group.change(is_paused=is_paused)
    topic.wake()
    return 1
