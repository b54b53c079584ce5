"""OBJECT: how a key is kept, as Redis would tell of it."""

from __future__ import annotations

from rlite_pubsub.engine.arguments.help import helps
from rlite_pubsub.engine.arguments.lookup import find
from rlite_pubsub.engine.encodings import encoding, references
from rlite_pubsub.engine.eviction.usage import Often
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command, container
from rlite_pubsub.keyspace.records import Record
from rlite_pubsub.protocol.errors import CommandError
from rlite_pubsub.protocol.replies import Reply

_LATER = "Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust."

container(
    "object",
    arity=-2,
    group="generic",
    since="2.2.3",
    summary="A container for object introspection commands",
    complexity="Depends on subcommand.",
)


helps(
    "object",
    "ENCODING <key>",
    "    Return the kind of internal representation used in order to store the value",
    "    associated with a <key>.",
    "FREQ <key>",
    "    Return the access frequency index of the <key>. The returned integer is",
    "    proportional to the logarithm of the recent access frequency of the key.",
    "IDLETIME <key>",
    "    Return the idle time of the <key>, that is the approximated number of",
    "    seconds elapsed since the last access to the key.",
    "REFCOUNT <key>",
    "    Return the number of references of the value associated with the specified",
    "    <key>.",
    group="generic",
    since="6.2.0",
    categories="keyspace",
)


@command(
    "object|encoding",
    arity=3,
    flags="readonly",
    group="generic",
    since="2.2.3",
    categories="keyspace",
    summary="Inspect the internal encoding of a Redis object",
    complexity="O(1)",
    arguments=(Arg("key", "key", key_spec=0),),
    key_specs=(KeySpec(("RO",), ("index", 2), ("range", 0, 1, 0)),),
    tips=("nondeterministic_output",),
)
def object_encoding(session: CommandSession, args: list[bytes]) -> Reply:
    record = _find(session, args)
    return None if record is None else encoding(record)


@command(
    "object|refcount",
    arity=3,
    flags="readonly",
    group="generic",
    since="2.2.3",
    categories="keyspace",
    summary="Get the number of references to the value of the key",
    complexity="O(1)",
    arguments=(Arg("key", "key", key_spec=0),),
    key_specs=(KeySpec(("RO",), ("index", 2), ("range", 0, 1, 0)),),
    tips=("nondeterministic_output",),
)
def object_refcount(session: CommandSession, args: list[bytes]) -> Reply:
    record = _find(session, args)
    if record is None:
        return None
    return references(record, shares_integers=session.engine.memory_limit.shares_integers)


@command(
    "object|idletime",
    arity=3,
    flags="readonly",
    group="generic",
    since="2.2.3",
    categories="keyspace",
    summary="Get the time since a Redis object was last accessed",
    complexity="O(1)",
    arguments=(Arg("key", "key", key_spec=0),),
    key_specs=(KeySpec(("RO",), ("index", 2), ("range", 0, 1, 0)),),
    tips=("nondeterministic_output",),
)
def object_idletime(session: CommandSession, args: list[bytes]) -> Reply:
    """Count from when this process last used it or, if that is later, read it from the store."""
    record = _find(session, args)
    if record is None:
        return None
    if _counts_frequency(session):
        raise CommandError(f"ERR An LFU maxmemory policy is selected, idle time not tracked. {_LATER}".encode())
    return max(0, int(session.engine.clock() - record.used_at))


@command(
    "object|freq",
    arity=3,
    flags="readonly",
    group="generic",
    since="4.0.0",
    categories="keyspace",
    summary="Get the logarithmic access frequency counter of a Redis object",
    complexity="O(1)",
    arguments=(Arg("key", "key", key_spec=0),),
    key_specs=(KeySpec(("RO",), ("index", 2), ("range", 0, 1, 0)),),
    tips=("nondeterministic_output",),
)
def object_freq(session: CommandSession, args: list[bytes]) -> Reply:
    record = _find(session, args)
    if record is None:
        return None
    usage = session.engine.memory_limit.usage
    if not isinstance(usage, Often):
        raise CommandError(
            f"ERR An LFU maxmemory policy is not selected, access frequency not tracked. {_LATER}".encode()
        )
    return usage.worth(session.db, args[2], session.engine.clock())


def _find(session: CommandSession, args: list[bytes]) -> Record | None:
    return find(session, args[2], touch=False, notify=False)


def _counts_frequency(session: CommandSession) -> bool:
    return b"lfu" in session.engine.settings.text("maxmemory-policy")
