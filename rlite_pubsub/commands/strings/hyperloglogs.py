"""HyperLogLogs: PFADD, PFCOUNT, PFMERGE, PFDEBUG, PFSELFTEST."""

from __future__ import annotations

import random

from rlite_pubsub.engine.arguments.lookup import find_text, keyspace_of, text_for_change
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.keyspace import hyperloglog
from rlite_pubsub.keyspace.hyperloglog import DENSE, REGISTERS, SPARSE, Corrupted, NotAHyperLogLog, Places
from rlite_pubsub.keyspace.records import RAW, Text
from rlite_pubsub.protocol.errors import CommandError
from rlite_pubsub.protocol.replies import OK, Reply, Status
from rlite_pubsub.storage.errors import StoreHeld

_OTHER = b"WRONGTYPE Key is not a valid HyperLogLog string value."
_CORRUPTED = b"INVALIDOBJ Corrupted HLL object detected"
_NO_KEY = b"ERR The specified key does not exist"
_NOT_SPARSE = b"ERR HLL encoding is not sparse"
_MOST_TESTED = 10_000


@command(
    "pfadd",
    arity=-2,
    flags="write denyoom fast",
    group="hyperloglog",
    since="2.8.9",
    categories="hyperloglog",
    summary="Adds the specified elements to the specified HyperLogLog.",
    complexity="O(1) to add every element.",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg("element", optional=True, multiple=True),
    ),
    key_specs=(KeySpec(("RW", "INSERT"), ("index", 1), ("range", 0, 1, 0)),),
)
def pfadd(session: CommandSession, args: list[bytes]) -> Reply:
    text = text_for_change(session, args[1])
    hll = _opened(text) or hyperloglog.new()
    changed = text is None
    try:
        changed |= hyperloglog.add_all(hll, args[2:], _most_bytes(session))
    except Corrupted:
        raise CommandError(_CORRUPTED) from None
    if changed:
        hyperloglog.make_stale(hll)
        _put(session, args[1], text, hll)
        session.engine.notifications.tell("$", b"pfadd", session.db, args[1])
    return int(changed)


@command(
    "pfcount",
    arity=-2,
    flags="readonly may_replicate",
    group="hyperloglog",
    since="2.8.9",
    categories="hyperloglog",
    summary="Return the approximated cardinality of the set(s) observed by the HyperLogLog at key(s).",
    complexity="O(1) with a very small average constant time when called with a single key. O(N) with N being the "
    "number of keys, and much bigger constant times, when called with multiple keys.",
    arguments=(Arg("key", "key", multiple=True, key_spec=0),),
    key_specs=(
        KeySpec(
            ("RW", "ACCESS"),
            ("index", 1),
            ("range", -1, 1, 0),
            notes="RW because it may change the internal representation of the key, and propagate to replicas",
        ),
    ),
)
def pfcount(session: CommandSession, args: list[bytes]) -> Reply:
    if len(args) > 2:
        return hyperloglog.count(_union(session, args[1:])[0])
    text = find_text(session, args[1])
    hll = _opened(text)
    if hll is None:
        return 0
    known = hyperloglog.last_count(hll)
    if known is not None:
        return known
    counted = hyperloglog.count(_registers(hll))
    if _may_keep_count(session):
        hyperloglog.note_count(hll, counted)
        _put(session, args[1], text, hll)
    return counted


def _may_keep_count(session: CommandSession) -> bool:
    """Return whether the count of what was read can be kept for the next time: it may be changed now, and nobody has
    changed anything meanwhile."""
    keyspace = keyspace_of(session)
    if not keyspace.may_write_aside:
        return False
    commits = keyspace.stored.commits_of_others
    try:
        keyspace.writing()
    except StoreHeld:
        return False
    return keyspace.stored.commits_of_others == commits


@command(
    "pfmerge",
    arity=-2,
    flags="write denyoom",
    group="hyperloglog",
    since="2.8.9",
    categories="hyperloglog",
    summary="Merge N different HyperLogLogs into a single one.",
    complexity="O(N) to merge N HyperLogLogs, but with high constant times.",
    arguments=(
        Arg("destkey", "key", key_spec=0),
        Arg("sourcekey", "key", multiple=True, key_spec=1),
    ),
    key_specs=(
        KeySpec(("RW", "ACCESS", "INSERT"), ("index", 1), ("range", 0, 1, 0)),
        KeySpec(("RO", "ACCESS"), ("index", 2), ("range", -1, 1, 0)),
    ),
)
def pfmerge(session: CommandSession, args: list[bytes]) -> Reply:
    keyspace_of(session).writing()  # what is read is the latest
    held, is_dense = _union(session, args[1:])
    text = text_for_change(session, args[1])
    hll = _opened(text) or hyperloglog.new()
    if is_dense:
        hyperloglog.to_dense(hll)
    hyperloglog.raise_all(hll, held, _most_bytes(session))
    hyperloglog.make_stale(hll)
    _put(session, args[1], text, hll)
    session.engine.notifications.tell("$", b"pfadd", session.db, args[1])
    return OK


@command(
    "pfdebug",
    arity=3,
    flags="write denyoom admin",
    group="hyperloglog",
    since="2.8.9",
    categories="hyperloglog",
    summary="Internal commands for debugging HyperLogLog values",
    complexity="N/A",
    arguments=(
        Arg("subcommand"),
        Arg("key", "key", key_spec=0),
    ),
    key_specs=(KeySpec(("RW", "ACCESS"), ("index", 2), ("range", 0, 1, 0)),),
    doc_flags=("syscmd",),
)
def pfdebug(session: CommandSession, args: list[bytes]) -> Reply:
    word, key = args[1].lower(), args[2]
    text = text_for_change(session, key)
    hll = _opened(text)
    if hll is None:
        raise CommandError(_NO_KEY)
    if word not in (b"getreg", b"decode", b"encoding", b"todense"):
        raise CommandError(b"ERR Unknown PFDEBUG subcommand '%b'" % args[1])
    if len(args) != 3:
        raise CommandError(b"ERR Wrong number of arguments for the '%b' subcommand" % args[1])
    if word == b"encoding":
        return Status(b"sparse" if hyperloglog.encoding(hll) == SPARSE else b"dense")
    if word == b"decode":
        return _decoded(hll)
    held = _registers(hll)
    was_sparse = hyperloglog.to_dense(hll)
    if was_sparse:
        _put(session, key, text, hll)
    return int(was_sparse) if word == b"todense" else list(held)


@command(
    "pfselftest",
    arity=1,
    flags="admin",
    group="hyperloglog",
    since="2.8.9",
    categories="hyperloglog",
    summary="An internal command for testing HyperLogLog values",
    complexity="N/A",
    doc_flags=("syscmd",),
)
def pfselftest(session: CommandSession, args: list[bytes]) -> Reply:
    most_bytes, places = _most_bytes(session), Places()
    sparse, dense = hyperloglog.new(), hyperloglog.new()
    hyperloglog.to_dense(dense)
    seed = random.getrandbits(64)
    checkpoint = 1
    for number in range(1, _MOST_TESTED + 1):
        element = (number ^ seed).to_bytes(8, "little")
        hyperloglog.add(sparse, element, most_bytes, places)
        hyperloglog.add(dense, element, most_bytes, places)
        if number == checkpoint:
            _check(sparse, dense, number, number < most_bytes // 2)
            checkpoint *= 10
    return OK


def _check(sparse: bytearray, dense: bytearray, number: int, is_small: bool) -> None:
    """Check both, which have counted this many. Raises CommandError."""
    if is_small and hyperloglog.encoding(sparse) != SPARSE:
        raise CommandError(b"ERR TESTFAILED sparse encoding not used")
    held = hyperloglog.registers(dense)
    if held != hyperloglog.registers(sparse):
        raise CommandError(b"ERR TESTFAILED dense/sparse disagree")
    counted = hyperloglog.count(held)
    most = 1 if number == 10 else -(-1.04 / REGISTERS**0.5 * 6 * number // 1)
    if abs(counted - number) > most:
        raise CommandError(b"ERR TESTFAILED Too big error. card:%d abserr:%d" % (number, abs(counted - number)))


def _most_bytes(session: CommandSession) -> int:
    most: int = session.engine.settings["hll-sparse-max-bytes"]
    return most


def _opened(text: Text | None) -> bytearray | None:
    """Return the HyperLogLog; None if the key does not exist. Raises CommandError."""
    if text is None:
        return None
    try:
        return hyperloglog.opened(text.value)
    except NotAHyperLogLog:
        raise CommandError(_OTHER) from None


def _registers(hll: bytearray) -> bytearray:
    try:
        return hyperloglog.registers(hll)
    except Corrupted:
        raise CommandError(_CORRUPTED) from None


def _union(session: CommandSession, keys: list[bytes]) -> tuple[bytearray, bool]:
    """The highest that each register holds in any of them, and whether any of them is dense. Raises CommandError."""
    held, is_dense = bytearray(REGISTERS), False
    for key in keys:
        hll = _opened(find_text(session, key))
        if hll is not None:
            is_dense |= hyperloglog.encoding(hll) == DENSE
            try:
                held = hyperloglog.raised(held, hll)
            except Corrupted:
                raise CommandError(_CORRUPTED) from None
    return held, is_dense


def _put(session: CommandSession, key: bytes, before: Text | None, hll: bytearray) -> None:
    expires_ms = 0 if before is None else before.expires_ms
    keyspace_of(session).put_string(session.db, key, bytes(hll), expires_ms, RAW)


def _decoded(hll: bytearray) -> bytes:
    if hyperloglog.encoding(hll) != SPARSE:
        raise CommandError(_NOT_SPARSE)
    try:
        runs = [
            b"v:%d,%d" % (value, length) if value else b"%b:%d" % (b"Z" if is_long else b"z", length)
            for value, length, is_long in hyperloglog.runs(hll)
        ]
    except Corrupted:
        raise CommandError(_CORRUPTED) from None
    return b" ".join(runs)
