"""The keys of a store, as one process works on them: their names, and the one commit of a turn.

Laws kept here:
 5. acknowledge after commit: replies to commands that changed something leave once `end_turn` has committed; if it
    cannot, all changes of the turn are undone, and it says what went wrong, so that those replies are taken back.
 1. Sessions that wait for a key are woken after the commit, in this process and (bells) in others.

The keys are in parts (part.py): what is stored in one, and, once there is any, ephemeral topics in another, in memory
(ephemeral.py). A name is looked up here, in whichever part has it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Protocol, TypeVar

from rlite_pubsub.keyspace.collection import Collection
from rlite_pubsub.keyspace.databases import Databases
from rlite_pubsub.keyspace.ephemeral import Ephemeral
from rlite_pubsub.keyspace.news import News
from rlite_pubsub.keyspace.part import N, Part
from rlite_pubsub.keyspace.records import AS_IT_IS, Record, Text
from rlite_pubsub.keyspace.times import Times
from rlite_pubsub.keyspace.topic.cold_shelf import ColdAccess
from rlite_pubsub.keyspace.topic.rules import Rules
from rlite_pubsub.keyspace.topic.stretch import Stretches
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.storage.agenda import KEYS, Agenda
from rlite_pubsub.storage.environment import Environment, Txn
from rlite_pubsub.storage.errors import StoreHeld
from rlite_pubsub.storage.memory import EPHEMERAL

T = TypeVar("T")

MAX_CACHED_BYTES = 64 << 20


class Teller(Protocol):
    """Writes down, inside each commit, what it has done."""

    def write(self) -> None:
        """Write what belongs to the commit that follows. Raises StoreError."""

    def committed(self) -> None:
        """Note that the commit is done."""

    def failed(self) -> None:
        """Note that the turn has failed: nothing of it was done, or nothing since it gave way."""


class Keyspace:
    """All databases. One for each thread that executes commands."""

    def __init__(
        self,
        environment: Environment,
        clock_ms: Callable[[], int],
        agenda: Agenda | None = None,
        rules: Rules | None = None,
    ) -> None:
        """`rules` say how much of topics is kept; without them, everything."""
        self.environment = environment
        self.agenda = agenda or Agenda()
        self.clock_ms = clock_ms
        self.times = Times(clock_ms)
        self.news = News(self.agenda)
        self.ready, self.touched = self.news.ready, self.news.touched
        self.stretches = Stretches()  # what this turn's XADDs append to topics
        self.cold = ColdAccess()
        self.stored = Part(environment, self, rules)
        self.turn = self.stored.turn
        self.parts = [self.stored]
        self.databases = Databases(self.parts)
        self.memory: Ephemeral | None = None  # since there was an ephemeral topic
        self._rules = rules
        self._on_giving_way: Callable[[], None] = _nobody_waits
        self._before_given_way: Callable[[], None] = _nobody_waits
        self._on_given_way: Callable[[], None] = _nobody_waits
        self._teller: Teller | None = None
        self._on_others: Callable[[Txn], None] | None = None

    # -- transactions

    def reading(self) -> Txn:
        """Return the turn's transaction; a snapshot if nothing has been written yet."""
        return self.stored.reading()

    def writing(self) -> Txn:
        """Return the turn's transaction, which writes from now on. Raises StoreError."""
        return self.stored.writing()

    def settle(self) -> Txn:
        """Write what was changed to the open transaction, so that walks over the store see it."""
        return self.stored.settle()

    def last_commit(self) -> int:
        """Return the last commit of any process. Raises StoreError."""
        turn = self.turn
        if turn.txn is not None and turn.writes:
            return turn.txn.id() - 1
        return self.environment.last_commit()

    def end_turn(self) -> Exception | None:
        """Commit. Returns what went wrong if that failed: then nothing of this turn was done."""
        failure = self._commit()
        for part in self.parts:
            if part.cached_bytes > MAX_CACHED_BYTES:
                part.forget()
            if part.dropped:
                part.free_some()
        return failure

    def _commit(self) -> Exception | None:
        turn, stored, memory, teller = self.turn, self.stored, self.memory, self._teller
        failure = turn.failure
        if failure is not None:
            turn.recover()
        elif turn.writes or stored.unwritten or stored.spaces_changed:
            try:
                if teller is not None:
                    teller.write()
                stored.settle()
                if memory is not None:
                    memory.prepare()
                self.environment.end(turn, commit=True)
                if teller is not None:
                    teller.committed()
            except Exception as error:
                failure = self._undo(error)
        if turn.txn is not None:
            self.environment.end(turn, commit=False)
        if memory is not None:
            memory.end_turn()
        return failure

    def fail(self, error: Exception) -> Exception:
        """Undo the whole turn after an error of the store; return what the error means, for the reply."""
        failure = self._undo(error)
        self.turn.fail(failure)
        self.agenda.due |= KEYS
        return failure

    def interrupt(self, error: Exception) -> None:
        """Undo the whole turn after an exception from without, which may have come in the middle of anything."""
        self.times.end_wholes()
        for part in reversed(self.parts):
            part.turn.drop()
        self.fail(error)

    def _undo(self, error: Exception) -> Exception:
        if self.memory is not None:
            error = self.memory.undo(error)
        self.stretches.forget()
        self.news.forget()
        if self._teller is not None:
            self._teller.failed()
        return self.stored.undo(error)

    def give_way(self) -> None:
        """Commit what there is, in the middle of the turn, for somebody who needs a transaction. The cache stays: a
        command may be in the middle of a change of what it has found there."""
        if self.turn.writes:
            try:
                self._on_giving_way()
                self._before_given_way()
            except Exception as error:
                self.fail(error)
            failure = self._commit()
            if failure is not None:
                self.turn.fail(failure)
            else:
                self._on_given_way()
        else:
            for part in self.parts:
                part.turn.end(commit=False)

    def call_when_giving_way(self, giving_way: Callable[[], None] | None) -> None:
        """Call `giving_way` before that commit, so that it may write, too; None: nobody."""
        self._on_giving_way = giving_way or _nobody_waits

    def call_when_given_way(self, before_commit: Callable[[], None], given_way: Callable[[], None]) -> None:
        """Call `before_commit` before the turn's changes so far are committed in the middle of it, in their
        transaction, and `given_way` once they have been."""
        self._before_given_way, self._on_given_way = before_commit, given_way

    def tell_of_commits(self, teller: Teller | None) -> None:
        """Let `teller` write down each commit of keys; None: nobody."""
        self._teller = teller

    def call_after_others(self, on_others: Callable[[Txn], None]) -> None:
        """Call `on_others` with the first transaction after somebody else's commits."""
        self._on_others = on_others

    def look(self, txn: Txn) -> None:
        """React to commits of others, which this transaction sees."""
        if self._on_others is not None:
            self._on_others(txn)

    @property
    def may_write_aside(self) -> bool:
        """Return whether a command that reads may write something on the way. In an EXEC or a script that has only read
        so far it may not: the rest would see what other processes have committed since it began."""
        return self.turn.writes or not self.times.wholes

    @property
    def may_remove_expired(self) -> bool:
        """Return whether a command that meets an expired key or field may remove it."""
        return self.times.may_expire and self.may_write_aside

    def close(self) -> None:
        """Close it between two turns: what is in memory is gone."""
        if self.memory is not None:
            self.memory.close()

    # -- looking up

    def find(self, database: int, name: bytes) -> Record | None:
        """Return the key, if it exists and has not expired."""
        part = self.stored
        if self.turn.txn is None:
            part.begin(write=False)
        if name in self.stretches.open:
            self.stretches.take_in()
        memory = self.memory
        if memory is not None and name.endswith(EPHEMERAL) and memory.part.get(database, name) is not None:
            part = memory.part
        caches = part.caches
        record = caches[database].get(name) if database < len(caches) else None
        if record is None:
            record = part.get(database, name)
        if record is not None and record.expires_ms and record.expires_ms <= self.clock_ms():
            if self.may_remove_expired:
                with suppress(StoreHeld):  # it is hidden; the next process that can write removes it
                    part.expire(record)
            return record if self.times.is_master_s else None
        return record

    def read_topic(self, database: int, name: bytes, read: Callable[[Txn, Topic | None], T]) -> T:
        """Return what `read` makes of a topic as it is committed, in a snapshot of its own, without anything that this
        turn may still undo. `read` gets None if there is no such topic; an ephemeral one is never committed. Raises
        StoreError."""
        stored = self.stored
        return self.environment.read(lambda txn: read(txn, stored.committed_topic(txn, database, name)))

    def version(self, database: int, name: bytes) -> int:
        """Return a number that differs once anybody has changed the key; 0 if it does not exist or has expired, without
        removing it."""
        if name in self.stretches.open:
            self.stretches.take_in()
        for part in reversed(self.parts):
            record = part.get(database, name)
            if record is not None and not 0 < record.expires_ms <= self.clock_ms():
                return part.version(record)
        return 0

    # -- changing. Each of these makes the turn one that writes. Raises StoreError.

    def for_change(self, database: int, name: bytes) -> Record | None:
        """Like `find`, for changing: the record holds the latest that anybody has committed."""
        stored = self.stored
        if not self.turn.writes:
            stored.begin(write=True)
        memory = self.memory
        if memory is not None and name.endswith(EPHEMERAL):
            memory.part.writing()
        elif name not in self.stretches.open:
            caches = stored.caches
            record = caches[database].get(name) if database < len(caches) else None
            if record is not None and not record.expires_ms:
                return record  # as mostly: `find` would find it the same
        record = self.find(database, name)
        if record is None and self.times.is_writable_replica:
            hidden = stored.get(database, name)
            if hidden is not None:  # it would stand in the way of a new one
                stored.expire(hidden)
        return record

    def put_string(self, database: int, name: bytes, value: bytes, expires_ms: int = 0, form: int = AS_IT_IS) -> None:
        """Set a key to a string, whatever it was."""
        stored = self.stored
        record = self.for_change(database, name)
        if not isinstance(record, Text):
            existing = record
            if existing is not None:
                self._part_of(existing).remove(existing)
            record = Text(database, name, stored.place_for(database, name))
            stored.add(record, replaces=existing is not None)
        record.put(value, form, expires_ms, self.times.coarse_now)
        stored.changed(record, len(value))

    def put_value(self, text: Text, value: bytes) -> None:
        """Give a string from `for_change` another value, keeping its expiry."""
        text.value = value
        text.form = AS_IT_IS
        self.stored.changed(text, len(value))

    def create_topic(self, database: int, name: bytes) -> Topic:
        """Create a topic under a name that is free."""
        return self.create(Topic, database, name)

    def create(self, kind: type[N], database: int, name: bytes, *, replaces: bool = False) -> N:
        """Create a topic or collection under a name that is free; `replaces`: since this command has freed it, so that
        the key is not new."""
        part = self.stored
        if kind is Topic and name.endswith(EPHEMERAL):
            if self.memory is None:
                self.memory = Ephemeral(self, part, self._rules)
                self.parts.append(self.memory.part)
            part = self.memory.part
        return part.create(kind, database, name, replaces=replaces)

    def _part_of(self, record: Record) -> Part:
        memory = self.memory
        if memory is not None and isinstance(record, Topic) and record.keyspace is memory.part:
            return memory.part
        return self.stored

    def delete(self, database: int, name: bytes) -> bool:
        """Remove a key; return False if it does not exist."""
        record = self.for_change(database, name)
        if record is None:
            return False
        self.remove(record)
        return True

    def remove(self, record: Record) -> None:
        """Remove a key from `for_change`."""
        self._part_of(record).remove(record)
        self.news.listener.modified(record.database, record.name)

    def set_expiry(self, record: Record, expires_ms: int) -> None:
        """Set when a key from `for_change` expires; 0: never."""
        record.expire_at(expires_ms)
        self._part_of(record).rescheduled(record)

    def move(self, record: Record, database: int, name: bytes) -> None:
        """Give a key from `for_change` another name, or another database, replacing what had that name.

        An ephemeral topic's name goes on saying so, and no other topic is given such a name."""
        self._make_room(database, name)
        self._part_of(record).move(record, database, name)

    def copy(self, record: Record, database: int, name: bytes) -> None:
        """Copy a key's contents to another name, replacing what had that name."""
        self._make_room(database, name)
        if isinstance(record, Topic):
            topic = self.create_topic(database, name)
            assert topic.keyspace is record.keyspace, "an ephemeral topic's copy must be one, too, and no other's"
            topic.copy_from(record)
            topic.expire_at(record.expires_ms)
            self.news.signal(database, name)
        elif isinstance(record, Collection):
            copied = self.stored.create(type(record), database, name)
            copied.copy_from(record)
            copied.expire_at(record.expires_ms)
            self.news.signal(database, name)
        else:
            assert isinstance(record, Text)
            self.put_string(database, name, record.value, record.expires_ms, record.form)

    def _make_room(self, database: int, name: bytes) -> None:
        existing = self.for_change(database, name)
        if existing is not None:
            self._part_of(existing).remove(existing)


def _nobody_waits() -> None:
    """Do nothing: nobody wants to know."""
