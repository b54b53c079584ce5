"""MULTI, EXEC, DISCARD, WATCH, UNWATCH."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from rlite_pubsub.engine.arguments.lookup import keyspace_of
from rlite_pubsub.engine.dispatch import answer, call
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, Command, KeySpec, command
from rlite_pubsub.engine.waits.cold_wait import AHEAD, Places
from rlite_pubsub.keyspace.topic.cold_shelf import ColdMiss
from rlite_pubsub.protocol import errors
from rlite_pubsub.protocol.errors import CommandError
from rlite_pubsub.protocol.replies import NO_REPLY, NULL_ARRAY, OK, Error, Reply
from rlite_pubsub.pubsub.kinds import CHANNELS, SHARDS
from rlite_pubsub.pubsub.publish import check_writers
from rlite_pubsub.storage.errors import StoreError, StoreHeld

_PUBLISHING: Final = {b"publish": CHANNELS, b"spublish": SHARDS}
_MAY_WRITE: Final = frozenset(("may_replicate", "movablekeys"))
"""The flags of EVAL, FCALL and their kin, but for those that only read."""
_ONLY_READS: Final = frozenset(("readonly", "pubsub"))
"""A command that reads topics and has the first flag alone changes nothing."""


@command(
    "multi",
    arity=1,
    flags="noscript loading stale fast allow_busy",
    group="transactions",
    since="1.2.0",
    summary="Mark the start of a transaction block",
    complexity="O(1)",
)
def multi(session: CommandSession, args: list[bytes]) -> Reply:
    if session.transaction is not None:
        raise CommandError(b"ERR MULTI calls can not be nested")
    session.begin_transaction()
    return OK


@command(
    "discard",
    arity=1,
    flags="noscript loading stale fast allow_busy",
    group="transactions",
    since="2.0.0",
    summary="Discard all commands issued after MULTI",
    complexity="O(N), when N is the number of queued commands",
)
def discard(session: CommandSession, args: list[bytes]) -> Reply:
    if session.transaction is None:
        raise CommandError(b"ERR DISCARD without MULTI")
    session.discard()
    return OK


@command(
    "exec",
    arity=1,
    flags="noscript loading stale skip_slowlog",
    group="transactions",
    since="1.2.0",
    summary="Execute all commands issued after MULTI",
    complexity="Depends on commands in the transaction",
)
def exec_(session: CommandSession, args: list[bytes]) -> Reply:
    """The header of the array goes out first, and each command answers for itself behind it: what a command pushes to
    its own session stands where Redis puts it, between the elements."""
    transaction = session.transaction
    if transaction is None:
        raise CommandError(b"ERR EXEC without MULTI")
    watching = session.engine.watching
    try:
        if session.watched:
            watching.check(session, keyspace_of(session))
        if not transaction.aborted and not session.cas_broken:
            _rehearse(session, transaction.queue)
            _check_writers(session, transaction.queue)
            if session.watched:  # again: others may have written until it was our turn to write, and can't any more
                watching.check(session, keyspace_of(session))
    except (StoreHeld, ColdMiss):
        raise  # EXEC waits, and is handed in again
    except Exception:
        session.discard()  # the transaction ends with EXEC, whatever its answer is
        raise
    cas_broken = session.cas_broken
    session.discard()
    if transaction.aborted:
        return Error(errors.EXEC_ABORTED)
    if cas_broken:
        return NULL_ARRAY
    queue = transaction.queue
    session.begin_exec(transaction)
    if not (session.replies_off or session.skip_replies & 1):
        session.send(b"*%d\r\n" % len(queue))
    engine = session.engine
    waits, times = engine.writer_waits, engine.keyspace.times
    engine.freeze_time()  # as in Redis, none of its keys expires between two of its commands
    waits.begin_whole()
    times.begin_whole()
    try:
        for queued, queued_args in queue:
            if session.limits is not None:
                from rlite_pubsub.engine.access.permission import check_queued  # as in dispatch.py

                refusal = check_queued(session, session.limits, queued, queued_args)
                if refusal is not None:
                    session.engine.stats.count_error(refusal)
                    answer(session, Error(refusal))
                    continue
            call(session, queued, queued_args)
    finally:
        times.end_whole()
        waits.end_whole()
        engine.unfreeze_time()
    session.end_exec()
    return NO_REPLY


def _check_writers(session: CommandSession, queue: list[tuple[Command, list[bytes]]]) -> None:
    """Law 9: a transaction that has begun waits for nobody, so what it will write must be writable; and from here on
    nobody else writes keys, up to the turn's end. Raises StoreHeld; StoreError if the transaction watches keys."""
    hub = session.hub
    writes = any("write" in queued.flags or _MAY_WRITE <= queued.flags for queued, _ in queue)
    if any(queued.group == "pubsub" for queued, _ in queue):
        hub.check_writer()
    for queued, args in queue:
        kind = _PUBLISHING.get(queued.name)
        if kind is not None and check_writers(hub, kind, args[1]):
            writes = True
        elif queued.name == b"wait":  # asks about what stands in the stream before the transaction
            session.engine.keyspace.give_way()
    if writes:  # the last of it, for the questions before may end the turn's transaction
        try:
            session.engine.keyspace.writing()
        except StoreHeld:
            raise
        except StoreError:
            if session.watched:  # it cannot be told whether what they have read still holds
                raise
            return  # the first of them meets it again, and says so


def _rehearse(session: CommandSession, queue: list[tuple[Command, list[bytes]]]) -> None:
    """Let the queued commands that read topics read once, so that what they need of the cold store is here. Raises
    ColdMiss."""
    keyspace = session.engine.keyspace
    cold = keyspace.cold.shelf
    if cold is None:
        return
    stats = session.engine.stats
    hits, misses = stats.keyspace_hits, stats.keyspace_misses
    places = Places()
    database = session.begin_rehearsal()
    try:
        with cold.waiting():
            for queued, args in queue:
                ahead, handler = AHEAD.get(queued.name), queued.handler
                only_reads = queued.group == "stream" and queued.flags & _ONLY_READS == {"readonly"}
                with suppress(CommandError):
                    if ahead is not None:
                        ahead(session, args, places)
                    elif only_reads and handler is not None:
                        handler(session, args)
    finally:
        session.end_rehearsal(database)
        stats.keyspace_hits, stats.keyspace_misses = hits, misses


@command(
    "watch",
    arity=-2,
    flags="noscript loading stale fast allow_busy",
    group="transactions",
    since="2.2.0",
    summary="Watch the given keys to determine execution of the MULTI/EXEC block",
    complexity="O(1) for every key.",
    arguments=(Arg("key", "key", key_spec=0, multiple=True),),
    key_specs=(KeySpec(("RO",), ("index", 1), ("range", -1, 1, 0)),),
)
def watch(session: CommandSession, args: list[bytes]) -> Reply:
    if session.transaction is not None:
        raise CommandError(b"ERR WATCH inside MULTI is not allowed")
    if session.cas_broken:
        return OK
    session.engine.watching.watch(session, keyspace_of(session), args[1:])
    return OK


@command(
    "unwatch",
    arity=1,
    flags="noscript loading stale fast allow_busy",
    group="transactions",
    since="2.2.0",
    summary="Forget about all watched keys",
    complexity="O(1)",
)
def unwatch(session: CommandSession, args: list[bytes]) -> Reply:
    session.unwatch()
    return OK
