"""A large write that a thread makes while a server's loop goes on, all in one commit of its own.

To the loop it is as though another process wrote (law 9): requests that need a commit of data.mdb wait in line
(waits/writer_wait.py), while PING, reads, and messages between clients of this server go on. A reader sees all of it or
nothing, and so does a process that opens the store after a kill -9: there is one transaction.

Laws kept here:
 1. change: what was changed is written in the transaction that changes it -> COMMIT -> tell and ring.
 5. acknowledge after commit; under appendfsync always, once it is on the disk.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from rlite_pubsub.engine.refusal import failed, unwritten
from rlite_pubsub.engine.replicas.outgoing import Outgoing
from rlite_pubsub.engine.waits.thread_wait import ThreadWait
from rlite_pubsub.keyspace.keyspace import Keyspace
from rlite_pubsub.keyspace.news import Key, KeyListener
from rlite_pubsub.keyspace.topic.rules import Rules
from rlite_pubsub.protocol.encoder import encode
from rlite_pubsub.protocol.errors import CommandError
from rlite_pubsub.protocol.replies import NO_REPLY, Error, Reply
from rlite_pubsub.storage.errors import StoreError, StoreHeld
from rlite_pubsub.storage.failpoint import failpoint

if TYPE_CHECKING:
    from rlite_pubsub.engine.engine import Engine
    from rlite_pubsub.engine.session import CommandSession
    from rlite_pubsub.engine.table import Command

log = logging.getLogger("rlite_pubsub")


class _Noted(KeyListener):
    """What happens to keys in the thread, for the loop to pass on: once for each key."""

    def __init__(self) -> None:
        self.told: dict[tuple[str, int, bytes], None] = {}

    def expired(self, database: int, name: bytes) -> None:
        self.told["expired", database, name] = None

    def added(self, database: int, name: bytes) -> None:
        self.told["added", database, name] = None

    def modified(self, database: int, name: bytes) -> None:
        self.told["modified", database, name] = None

    def appended(self, database: int, name: bytes) -> None:
        self.told["appended", database, name] = None

    def trimmed(self, database: int, name: bytes) -> None:
        self.told["trimmed", database, name] = None

    def tell(self, listener: KeyListener) -> None:
        for kind, database, name in self.told:
            getattr(listener, kind)(database, name)


class _Written(NamedTuple):
    """The outcome of the write."""

    reply: Reply
    touched: list[Key]
    """Topics that were appended to. If there are none, nothing was done."""
    is_for_replicas: bool


def write_beside(session: CommandSession, work: Callable[[Keyspace], Reply]) -> Reply | None:
    """Do `work` on a keyspace of a thread's own, and commit it; the session waits for the result. Returns None, having
    done nothing, in a program, where nobody could wait for it. Raises StoreHeld."""
    engine = session.engine
    command = session.last_command
    assert command is not None
    engine.keyspace.give_way()  # the thread must see what this turn has done so far
    if not engine.keyspace.environment.lend():
        return None
    noted = _Noted()
    wait = ThreadWait(
        session,
        lambda: _write(engine, command, work, noted),
        lambda written: _told(session, written, noted),
    )
    session.wait_for(wait)
    return NO_REPLY


def _write(engine: Engine, command: Command, work: Callable[[Keyspace], Reply], noted: _Noted) -> _Written:
    """Do the work and commit it, in the thread. Never fails."""
    environment, of_loop = engine.keyspace.environment, engine.keyspace
    environment.borrow()
    try:
        keyspace = Keyspace(environment, of_loop.clock_ms, rules=Rules(environment))
        if not of_loop.times.may_expire:
            keyspace.times.hold("as the loop's")
        keyspace.news.tell(noted)
        outgoing = Outgoing(keyspace, _nobody, _keeps_nothing)
        reply: Reply
        try:
            reply = work(keyspace)
            if noted.told and engine.announcing is not None:
                engine.announcing.write_beside(keyspace.settle(), [name for _, _, name in noted.told])
        except CommandError as refusal:
            reply = Error(refusal.text)
        except Exception as error:
            reply = failed(keyspace, command, error)
        failure = keyspace.end_turn()
        wants_sync = keyspace.turn.answer_sync() or environment.durability == "always"
        failpoint("written-beside")
        if failure is None and wants_sync:
            failure = _synced(environment.sync)
        if failure is not None and reply.__class__ is not Error:
            log.warning("Can't commit: %s", failure)
            reply = Error(unwritten(failure))
        is_for_replicas = outgoing.has_written
        return _Written(reply, [] if reply.__class__ is Error else list(keyspace.touched), is_for_replicas)
    finally:
        environment.give_back()


def _nobody() -> None:
    """Do nothing: the loop sees by itself whether there are replicas."""


def _keeps_nothing(held: StoreHeld | None) -> None:
    """Do nothing: it publishes no messages."""


def _synced(sync: Callable[[], None]) -> StoreError | None:
    try:
        sync()
    except StoreError as failure:
        return failure
    return None


def _told(session: CommandSession, written: _Written, noted: _Noted) -> bytes:
    """Notify of the changes, here and in other processes, in a turn of the loop. Returns the reply."""
    engine, reply = session.engine, written.reply
    if reply.__class__ is Error:
        engine.stats.count_error(reply)
    elif written.touched:
        noted.tell(engine.keyspace.news.listener)
        engine.waiting.look()
        engine.waiting.shared_waits.ring(written.touched)
        if engine.announcing is not None:
            engine.announcing.ring()
        if written.is_for_replicas:
            engine.replicas.tell()
    return encode(reply, session.protocol)
