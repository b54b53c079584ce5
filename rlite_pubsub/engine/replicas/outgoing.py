"""What a process has to tell replicas: of each command and each change of keys, in the commit that it belongs to.

Promises:
 - What the store has and what its stream tells are one commit: whoever commits keys, a server, a program or a thread
   beside the loop, writes the stream, and nobody else does. A snapshot and the stream behind it leave nothing out, and
   tell nothing twice.
 - What a command, a transaction or a script has done is one for a replica, so that it is never in the midst of it.
 - Messages stand between the changes of keys as they were said. They are in no transaction of keys: where that fails, a
   message is told with the next one. Libraries of functions are told in the commit that changes them.
 - No other process hears a message before the stream has it, or its publisher's death would keep it from replicas
   alone: while another process writes keys, both wait. `writer-patience` ends that.
 - What cannot be said as a command said it (chance, time, scripts, commands of ours) is told by its effect.

Law 11: the stream is there while a replica is attached. Each process sees that it is when it first works behind another
one's commit (`Keyspace.look`), which it then does in any case; until that nothing is asked.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from rlite_pubsub.engine.replicas import states
from rlite_pubsub.engine.replicas.wording import EMPTYING, LIBRARIES, MESSAGES, restored, told
from rlite_pubsub.keyspace.effects import BEYOND, Effects, Expiry, Telling
from rlite_pubsub.protocol.encoder import bulk_array
from rlite_pubsub.protocol.replies import Error, Reply
from rlite_pubsub.storage.agenda import KEYS
from rlite_pubsub.storage.commons import replica_stream
from rlite_pubsub.storage.errors import StoreHeld

if TYPE_CHECKING:
    from rlite_pubsub.engine.table import Command
    from rlite_pubsub.keyspace.keyspace import Keyspace
    from rlite_pubsub.storage.environment import Txn

T = TypeVar("T")

log = logging.getLogger("rlite_pubsub")

_MULTI = bulk_array([b"MULTI"])
_EXEC = bulk_array([b"EXEC"])
GET_ACK = bulk_array([b"REPLCONF", b"GETACK", b"*"])
PING = bulk_array([b"PING"])


class Outgoing:
    """Of one keyspace."""

    def __init__(
        self,
        keyspace: Keyspace,
        turned: Callable[[], None],
        keep_letters: Callable[[StoreHeld | None], None],
    ) -> None:
        """`turned` is called when the stream begins, or ends, and `keep_letters` when messages to other processes have
        to wait for it, or (None) no longer."""
        self.is_on = False
        self.ends = 0
        """Of the stream, as this process saw it last."""
        self.writers: dict[int, int] = {}
        """Sessions, by id, and where the stream ended behind the last that they have written."""
        self.senders: set[int] = set()
        """Subscribers: the servers that have said that they have replicas."""
        self._keyspace = keyspace
        self._turned = turned
        self._keep_letters = keep_letters
        self._is_keeping = False
        self._effects = Effects()
        self._told = 0
        """Requests of this turn that were there before the command that is executed."""
        self._messages: list[Telling] = []  # of this turn
        self._owed: list[Telling] = []  # messages of turns that could not be committed
        self._writing: dict[int, None] = {}  # sessions that have written in this turn
        self.has_written = False
        """Since somebody looked: those who send it are to be woken."""
        keyspace.call_after_others(self._look)

    def look_around(self) -> None:
        """See whether another process has begun the stream, or ended it. Raises StoreError."""
        self._keyspace.environment.read(self._look)

    def ask(self, question: Callable[[Txn], T]) -> T:
        """Read the store through the turn's transaction, so that what stands in the midst of one is not committed by
        halves. Raises StoreError."""
        txn = self._keyspace.turn.txn
        return self._keyspace.environment.read(question) if txn is None else question(txn)

    def _look(self, txn: Txn) -> None:
        """Read what somebody else may have committed: that there are replicas, or none any more."""
        stream = replica_stream.get(txn)
        self.senders = set() if stream is None else {replica.subscriber for _, replica in replica_stream.replicas(txn)}
        self._turn(stream is not None)

    def _turn(self, is_on: bool) -> None:
        if is_on == self.is_on:
            return
        self.is_on = is_on
        self._effects.forget()
        self._messages.clear()
        self._owed.clear()
        self._writing.clear()
        self.writers.clear()
        self._keep(None)
        self._keyspace.news.note(self._effects if is_on else None)
        self._keyspace.tell_of_commits(self if is_on else None)
        self._turned()

    # -- what is done

    def begin_unit(self) -> None:
        """Begin one unit for replicas: a command, or what stands in a transaction or a script."""
        self.settle()
        self._effects.begin_unit()

    def settle(self) -> None:
        """Tell what was done so far by what has become of its keys, before a command follows."""
        if self._effects.keys:
            states.settle(self._keyspace, self._effects)
        self._told = len(self._effects.requests)

    def executed(self, session_id: int, database: int, command: Command, args: list[bytes], reply: Reply) -> None:
        """Note a command that was executed, after a call of `settle`. Raises StoreError."""
        effects = self._effects
        if command.name in MESSAGES:
            if reply.__class__ is not Error:
                self._messages.append((database, args))
                effects.requests.append((database, args))
                self._keyspace.agenda.due |= KEYS
        elif command.name in LIBRARIES:
            if reply.__class__ is not Error:
                self.writers[session_id] = self.ends
        if command.name in EMPTYING and reply.__class__ is not Error:
            del effects.requests[self._told :]
            effects.keys.clear()
            effects.topics.clear()
            effects.requests.append((database, args))
            self._keyspace.agenda.due |= KEYS  # a replica may have what is not here, and loses that, too
        keys = effects.keys
        if not keys:
            if effects.requests:
                self._writing[session_id] = None
            return
        self._writing[session_id] = None
        words = None
        if command.name == b"restore":
            words = restored(args, self._keyspace.stored.get(database, args[1]))
        elif reply.__class__ is not Error:
            words = told(command.name, args, reply)
        if words is None or any([what & BEYOND for what in keys.values()]):
            states.settle(self._keyspace, effects)
            return
        keys.clear()
        effects.topics.clear()
        effects.requests.append((database, words))

    def begin_owed(self) -> None:
        """Bring about a commit if something is to be written though no key has changed. While another process
        writes it waits."""
        if self._owed or self._effects.requests:
            held: StoreHeld | None = None
            try:
                self._keyspace.writing()
            except StoreHeld as error:
                held = error
            if not self._keyspace.turn.writes:
                self._keyspace.agenda.later |= KEYS
            if held is not None or self._is_keeping:
                self._keep(held)

    def _keep(self, held: StoreHeld | None) -> None:
        self._is_keeping = held is not None
        self._keep_letters(held)

    # -- the commit

    def write(self) -> None:
        """Write the stream in the commit's transaction, just before it. Raises StoreError."""
        effects = self._effects
        states.settle(self._keyspace, effects)
        if not effects.requests and not self._owed:
            return
        txn = self._keyspace.writing()
        stream = replica_stream.get(txn)
        if stream is None:
            self._turn(False)
            return
        units = [[message] for message in self._owed]
        units += effects.units_of_requests()
        now_ms = self._keyspace.clock_ms()
        if stream.until_ms <= now_ms:  # its replicas have been away for too long
            replica_stream.end(txn)
            self._turn(False)
            return
        self.ends = _put(txn, stream, units, now_ms)
        self._keyspace.stored.wrote_beside()
        effects.written()
        self.has_written = True

    def committed(self) -> None:
        """Note that what was written is committed."""
        self._messages.clear()
        self._owed.clear()
        for session_id in self._writing:
            self.writers[session_id] = self.ends
        self._writing.clear()

    def failed(self) -> None:
        """Note that the commit failed: what is in no transaction of keys is said with the next one."""
        self._writing.clear()
        self.has_written = False
        self._owed += self._messages
        self._messages.clear()
        if self._owed:
            self._keyspace.agenda.later |= KEYS

    def forget(self, session_id: int) -> None:
        """Forget a session that is gone."""
        self.writers.pop(session_id, None)
        self._writing.pop(session_id, None)

    # -- beside the commits of keys

    def write_beside(self, txn: Txn, requests: list[list[bytes]]) -> None:
        """By this transaction, which is not the turn's, something has changed beside keys: replicas hear it in the same
        commit."""
        self._look(txn)
        stream = replica_stream.get(txn)
        if stream is not None:
            database = max(stream.database, 0)
            unit = [(database, words) for words in requests]
            self.ends = _put(txn, stream, [unit], self._keyspace.clock_ms())
            self.has_written = True
            self._keyspace.agenda.due |= KEYS

    def mark(self, data: bytes) -> None:
        """Have all replicas hear this at once: a PING, or that they are to acknowledge. Raises StoreError."""

        def work(txn: Txn) -> int | None:
            stream = replica_stream.get(txn)
            if stream is None:
                return None
            return replica_stream.append(txn, stream, data, self._keyspace.clock_ms()).ends

        ends = self._keyspace.environment.write(work)
        if ends is not None:
            self.ends = ends


def _put(txn: Txn, stream: replica_stream.Stream, units: list[list[Telling]], now_ms: int) -> int:
    """Tell replicas; where the stream ends behind it."""
    parts: list[bytes] = []
    database = stream.database
    for unit in units:
        _pack(parts, unit, database)
        database = unit[-1][0]
    return replica_stream.append(txn, stream._replace(database=database), b"".join(parts), now_ms).ends


def _pack(parts: list[bytes], requests: list[Telling], selected: int) -> None:
    """As they are sent: one transaction, where they are several, but for keys whose time was over before or after all
    else. A database is selected where it is another one than before."""
    current = requests[0][0]
    if current != selected:
        parts.append(bulk_array([b"SELECT", b"%d" % current]))
    done = [at for at, telling in enumerate(requests) if telling.__class__ is not Expiry]
    first, last = (done[0], done[-1]) if len(done) > 1 else (-1, -1)
    for at, (database, words) in enumerate(requests):
        if at == first:
            parts.append(_MULTI)
        if database != current:
            parts.append(bulk_array([b"SELECT", b"%d" % database]))
            current = database
        parts.append(bulk_array(words))
        if at == last:
            parts.append(_EXEC)
