"""How long keys live: TTL, PTTL, EXPIRETIME, PEXPIRETIME."""

from __future__ import annotations

from rlite_pubsub.commands.lookup import find, keyspace_of
from rlite_pubsub.commands.session import CommandSession
from rlite_pubsub.commands.table import Arg, KeySpec, command
from rlite_pubsub.protocol.replies import Reply

_NO_KEY = -2
_NEVER = -1


@command(
    "ttl",
    arity=2,
    flags="readonly fast",
    group="generic",
    since="1.0.0",
    categories="keyspace",
    summary="Get the time to live for a key in seconds",
    complexity="O(1)",
    arguments=(Arg("key", "key", key_spec=0),),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
    tips=("nondeterministic_output",),
    history=(("2.8.0", "Added the -2 reply."),),
)
def ttl(session: CommandSession, args: list[bytes]) -> Reply:
    return _in_seconds(_left_ms(session, args[1]))


@command(
    "pttl",
    arity=2,
    flags="readonly fast",
    group="generic",
    since="2.6.0",
    categories="keyspace",
    summary="Get the time to live for a key in milliseconds",
    complexity="O(1)",
    arguments=(Arg("key", "key", key_spec=0),),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
    tips=("nondeterministic_output",),
    history=(("2.8.0", "Added the -2 reply."),),
)
def pttl(session: CommandSession, args: list[bytes]) -> Reply:
    return _left_ms(session, args[1])


@command(
    "expiretime",
    arity=2,
    flags="readonly fast",
    group="generic",
    since="7.0.0",
    categories="keyspace",
    summary="Get the expiration Unix timestamp for a key",
    complexity="O(1)",
    arguments=(Arg("key", "key", key_spec=0),),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
)
def expiretime(session: CommandSession, args: list[bytes]) -> Reply:
    return _in_seconds(_end_ms(session, args[1]))


@command(
    "pexpiretime",
    arity=2,
    flags="readonly fast",
    group="generic",
    since="7.0.0",
    categories="keyspace",
    summary="Get the expiration Unix timestamp for a key in milliseconds",
    complexity="O(1)",
    arguments=(Arg("key", "key", key_spec=0),),
    key_specs=(KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),),
)
def pexpiretime(session: CommandSession, args: list[bytes]) -> Reply:
    return _end_ms(session, args[1])


def _end_ms(session: CommandSession, key: bytes) -> int:
    record = find(session, key, touch=False)
    return _NO_KEY if record is None else record.expires_ms or _NEVER


def _left_ms(session: CommandSession, key: bytes) -> int:
    end_ms = _end_ms(session, key)
    return end_ms if end_ms < 0 else max(end_ms - keyspace_of(session).clock_ms(), 0)


def _in_seconds(milliseconds: int) -> int:
    """To the nearest second."""
    return milliseconds if milliseconds < 0 else (milliseconds + 500) // 1000
