"""OBJECT: how a key is kept, as Redis would tell of it."""

from __future__ import annotations

from rlite_pubsub.engine.arguments.help import helps
from rlite_pubsub.engine.arguments.integers import integer
from rlite_pubsub.engine.arguments.lookup import find
from rlite_pubsub.engine.eviction.usage import Often
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command, container
from rlite_pubsub.keyspace.hashes import Hash
from rlite_pubsub.keyspace.lists import List
from rlite_pubsub.keyspace.records import PLAIN, RAW, Record, Text
from rlite_pubsub.keyspace.sets import Set
from rlite_pubsub.keyspace.sorted_sets import SortedSet
from rlite_pubsub.protocol.errors import CommandError
from rlite_pubsub.protocol.replies import Reply

LONGEST_EMBEDDED = 44
SHARED_INTEGERS = 10_000
SHARED_REFERENCES = 2_147_483_647
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
    return None if record is None else references(record)


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
    """Since this process has used it or, if that is later, has read it from the store."""
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


def encoding(record: Record) -> bytes:
    """How Redis would keep it."""
    if isinstance(record, List):
        return b"quicklist"
    if isinstance(record, Set):
        return b"intset" if record.is_of_integers else b"hashtable"
    if isinstance(record, Hash):
        if not record.is_small:
            return b"hashtable"
        return b"listpackex" if record.expires_by_fields else b"listpack"
    if isinstance(record, SortedSet):
        return b"listpack" if record.is_small else b"skiplist"
    if not isinstance(record, Text):
        return b"stream"
    if record.form != RAW:
        if _is_integer(record):
            return b"int"
        if len(record.value) <= LONGEST_EMBEDDED:
            return b"embstr"
    return b"raw"


def references(record: Record) -> int:
    """Redis shares the small integers."""
    is_shared = isinstance(record, Text) and _is_integer(record) and 0 <= int(record.value) < SHARED_INTEGERS
    return SHARED_REFERENCES if is_shared else 1


def _is_integer(text: Text) -> bool:
    if text.form in (RAW, PLAIN) or len(text.value) > 20:
        return False
    try:
        integer(text.value)
    except CommandError:
        return False
    return True


def _counts_frequency(session: CommandSession) -> bool:
    return b"lfu" in session.engine.settings.text("maxmemory-policy")
