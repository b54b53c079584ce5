"""XCFGSET (Redis 8.6): how long, and how many publications of each producer, XADD knows to have been added."""

from __future__ import annotations

from rlite_pubsub.engine.arguments.integers import integer
from rlite_pubsub.engine.arguments.lookup import topic_for_change
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.keyspace.topic.idempotence import configure
from rlite_pubsub.protocol.errors import NO_SUCH_KEY, SYNTAX, CommandError
from rlite_pubsub.protocol.replies import OK, Reply

_MOST = {b"IDMP-DURATION": 86400, b"IDMP-MAXSIZE": 10000}
_UNITS = {b"IDMP-DURATION": b"seconds", b"IDMP-MAXSIZE": b"entries"}


@command(
    "xcfgset",
    arity=-2,
    flags="write denyoom fast",
    group="stream",
    since="8.6.0",
    categories="stream",
    summary="Sets the IDMP configuration parameters for a stream.",
    complexity="O(1)",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("idmp-duration", "integer", token="IDMP-DURATION", optional=True),
        Arg("idmp-maxsize", "integer", token="IDMP-MAXSIZE", optional=True),
    ),
    key_specs=(KeySpec(("RW", "UPDATE"), ("index", 1), ("range", 0, 1, 0)),),
)
def xcfgset(session: CommandSession, args: list[bytes]) -> Reply:
    if len(args) == 2:
        raise CommandError(b"ERR At least one parameter must be specified")
    said: dict[bytes, int] = {}
    for place in range(2, len(args), 2):
        name = args[place].upper()
        if name not in _MOST or place + 1 == len(args):
            raise CommandError(SYNTAX)
        value = integer(args[place + 1])
        if not 1 <= value <= _MOST[name]:
            raise CommandError(b"ERR %b must be between 1 and %d %b" % (name, _MOST[name], _UNITS[name]))
        said[name] = value
    topic = topic_for_change(session, args[1])
    if topic is None:
        raise CommandError(NO_SUCH_KEY)
    configure(topic, said.get(b"IDMP-DURATION"), said.get(b"IDMP-MAXSIZE"))
    return OK
