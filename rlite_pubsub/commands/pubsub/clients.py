"""SUBSCRIBER.CLIENTS, KILL, RATES: who is connected to any process of the store, and how much is published. Ours.

CLIENT LIST and CLIENT KILL are about the process that is asked, as in Redis; these are about all that share the store.
"""

from __future__ import annotations

from rlite_pubsub.engine.arguments.integers import LONG_MAX, integer
from rlite_pubsub.engine.refusal import refused
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.stats.reporting import MOST_CLIENTS, ProcessClients, Reporting
from rlite_pubsub.engine.table import Arg, command
from rlite_pubsub.protocol.errors import SYNTAX, CommandError
from rlite_pubsub.protocol.replies import Reply, Status
from rlite_pubsub.pubsub.kinds import CHANNELS, PATTERNS
from rlite_pubsub.storage.errors import StoreError

_SINCE = "1.0.0"
_MOST_RATES = 10_000
_NO_PROCESS = b"ERR no such process; SUBSCRIBER.CLIENTS shows their ids"
_BAD_PROCESS = b"ERR a process is named by its id, 16 hexadecimal digits; SUBSCRIBER.CLIENTS shows it"
_COUNT = Arg("count", "integer", token="COUNT", optional=True)


@command(
    "subscriber.clients",
    arity=-1,
    flags="admin noscript loading stale",
    categories="connection",
    group="pubsub",
    since=_SINCE,
    summary="List the connections of every process of the store, the slowest readers first",
    complexity="O(N log C) where N is the number of connections, and C how many are shown of each process",
    arguments=(_COUNT,),
    tips=("nondeterministic_output",),
    ours=True,
)
def subscriber_clients(session: CommandSession, args: list[bytes]) -> Reply:
    """A map for each process, this one first. Others are asked, and tell within a second or so: until then, and where
    one does not answer, `at_ms` is 0 and there are no clients of it."""
    count = _count(args[1:], 1000, MOST_CLIENTS)
    try:
        return [_process(each) for each in _reporting(session).everybody(count)]
    except StoreError as failure:
        raise refused(failure) from failure


def _process(told: ProcessClients) -> Reply:
    return {
        b"process": b"%016x" % told.id,
        b"pid": told.record.pid,
        b"kind": told.record.kind.encode(),
        b"at_ms": told.at_ms,
        b"total": told.total,
        b"clients": told.clients,
    }


@command(
    "subscriber.kill",
    arity=3,
    flags="admin noscript loading stale",
    categories="connection",
    group="pubsub",
    since=_SINCE,
    summary="Close a connection of any process of the store",
    complexity="O(1)",
    arguments=(Arg("process"), Arg("client-id", "integer")),
    ours=True,
)
def subscriber_kill(session: CommandSession, args: list[bytes]) -> Reply:
    """Answer 1, or 0 if there is no such connection; ASKED for one of another process: that closes the connection
    within a moment."""
    try:
        process = int(args[1], 16) if len(args[1]) == 16 else -1
    except ValueError:
        process = -1
    if process < 0:
        raise CommandError(_BAD_PROCESS)
    client = integer(args[2], 1, LONG_MAX)
    reporting = _reporting(session)
    if process == reporting.own:
        victim = session.engine.sessions.get(client)
        if victim is None:
            return 0
        if victim is session:
            victim.close_after_reply()
        else:
            victim.close_now()
        return 1
    try:
        if not reporting.close(process, client):
            raise CommandError(_NO_PROCESS)
    except StoreError as failure:
        raise refused(failure) from failure
    return Status(b"ASKED")


@command(
    "subscriber.rates",
    arity=-1,
    flags="pubsub loading stale",
    group="pubsub",
    since=_SINCE,
    summary="Show how many messages a second the busiest channels with subscribers in this process have",
    complexity="O(N log C) where N is the number of channels, and C how many are shown",
    arguments=(_COUNT,),
    tips=("nondeterministic_output",),
    ours=True,
)
def subscriber_rates(session: CommandSession, args: list[bytes]) -> Reply:
    """Each with its name, its messages a second, and its subscribers here. Counting begins with the first question and
    ends when nobody asks for ten seconds: null until there is something to tell."""
    count = _count(args[1:], 100, _MOST_RATES)
    rates = session.engine.channel_rates.look()
    if rates is None:
        return None
    busiest = sorted(rates.items(), key=lambda pair: (-pair[1], pair[0]))[:count]
    return [[name, b"%.1f" % rate, _receivers(session, name)] for name, rate in busiest]


def _receivers(session: CommandSession, name: bytes) -> int:
    hub = session.hub
    matching = hub.patterns.matching(name) if len(hub.patterns) else ()
    return hub.session_count(CHANNELS, name) + sum(hub.session_count(PATTERNS, each) for each in matching)


def _count(words: list[bytes], default: int, most: int) -> int:
    if not words:
        return default
    if len(words) != 2 or words[0].upper() != b"COUNT":
        raise CommandError(SYNTAX)
    return min(integer(words[1], 1, LONG_MAX), most)


def _reporting(session: CommandSession) -> Reporting:
    if session.engine.reporting is None:
        raise CommandError(b"ERR there is no store")
    return session.engine.reporting
