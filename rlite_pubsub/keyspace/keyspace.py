"""The keys of a store, as one process works on them: a turn's reads and writes, and its one commit.

Laws kept here:
 5. acknowledge after commit: replies to commands that changed something leave once `end_turn` has committed; where
    it can't, all that this turn changed is undone, and it says what went wrong, so that those replies are taken back.
 1. What waits for a key is woken after the commit, in this process and (bells) in others.

What is read is cached. The store's transaction id says, at the beginning of each turn, whether anybody else has
committed since: then the cache is dropped. Within a turn changes are made to the records in the cache; the store gets
each of them once, at the end, or when somebody walks over the store (`settle`).

Ephemeral topics are in a part of their own, in memory (memory_keyspace.py), once there is one: whoever looks here finds
them, too.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Container, Iterable, Iterator
from heapq import merge
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from mypy_extensions import mypyc_attr

from rlite_pubsub.keyspace.collection import Collection
from rlite_pubsub.keyspace.lists import List
from rlite_pubsub.keyspace.records import AS_IT_IS, Record, Text
from rlite_pubsub.keyspace.sets import Set
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.storage.agenda import KEYS, READY, Agenda
from rlite_pubsub.storage.environment import Environment, Txn
from rlite_pubsub.storage.keys import garbage, key_records
from rlite_pubsub.storage.keys.key_records import Space
from rlite_pubsub.storage.memory import EPHEMERAL
from rlite_pubsub.storage.turn import Turn

if TYPE_CHECKING:
    from rlite_pubsub.keyspace.memory_keyspace import MemoryKeyspace
    from rlite_pubsub.keyspace.topic.cold_shelf import Shelf
    from rlite_pubsub.keyspace.topic.retention import Retention
    from rlite_pubsub.keyspace.topic.stretch import Stretch

T = TypeVar("T")
N = TypeVar("N", Topic, List, Set, Collection)

MAX_CACHED_BYTES = 64 << 20


class KeyListener(Protocol):
    """Hears what happens to keys: (database, name)."""

    def expired(self, database: int, name: bytes) -> None:
        """One was removed, its time being over."""

    def added(self, database: int, name: bytes) -> None:
        """A name that was free is taken."""

    def modified(self, database: int, name: bytes) -> None:
        """For WATCH and CLIENT TRACKING; not called while nobody wants to know (`Keyspace.is_heard`)."""

    def appended(self, database: int, name: bytes) -> None:
        """A topic has an entry that no command put there now."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Keyspace:
    """All databases. One for each thread that executes commands."""

    def __init__(
        self, environment: Environment, clock_ms: Callable[[], int], agenda: Agenda | None = None
    ) -> None:
        self.agenda = agenda or Agenda()
        self._environment = environment
        self.turn = Turn(environment, self._give_way)
        self.clock_ms = clock_ms
        self.coarse_now = 0.0  # seconds: for when keys are used; set now and then
        self.on_expired: Callable[[int, bytes], None] = _nobody  # (database, key): one was removed, its time being over
        self.on_added: Callable[[int, bytes], None] = _nobody  # a name that was free is taken
        self.on_modified: Callable[[int, bytes], None] = _nobody  # WATCH and CLIENT TRACKING
        self.is_heard = True  # False while nobody wants to know what is modified
        self.on_appended: Callable[[int, bytes], None] = _nobody  # a topic has an entry that no command put there now
        self.on_deadline: Callable[[int], None] = _nobody_cares  # something is to be done at this time
        self.on_memory: Callable[[MemoryKeyspace], None] = _nobody_tends  # the first ephemeral topic is made
        self.memory: MemoryKeyspace | None = None  # where ephemeral topics are, since there was one
        self.retention: Retention | None = None  # told of every topic that is written
        self.cold: Shelf | None = None  # where what is read from the cold store stands
        self.open_cold: Callable[[Txn], Shelf | None] = _no_cold  # makes one where there is none; None: it can't be
        self.cold_grace_ms = 0  # so long files of the cold store stay that nobody needs any more, but who reads them
        self.may_expire = True  # False while writes are paused: what is over is only not shown
        self.ready: dict[tuple[int, bytes | None], None] = {}  # keys (None: all) that whoever is blocked should look at
        self.touched: dict[tuple[int, bytes | None], None] = {}  # topics that this turn appended to, or removed
        self.awaited: Container[tuple[int, bytes | None]] | None = None
        """Keys that somebody in this process waits for; only they become `ready`. None: all of them do."""
        self.stretches: dict[bytes, Stretch] = {}  # what this turn's XADDs are putting behind topics, by their names
        self.failure: Exception | None = None  # of this turn: nothing more can be written in it
        self._records: list[dict[bytes, Record | None]] = []  # by database; None: there is no such key
        self._spaces: dict[int, Space] = {}
        self._spaces_changed = False
        self._changed: dict[Record, None] = {}
        self._cached_bytes = 0
        self._version = -1  # the last transaction that the cache knows
        self.commits_of_others = 0  # so often somebody else has committed between two turns of ours, or a turn failed
        self._has_written = False  # this turn, into the open transaction
        self.committed = -1  # our own last transaction that has surely changed something

    # -- who takes part

    def tell(self, listener: KeyListener) -> None:
        """Tell of what happens to keys."""
        self.on_expired = listener.expired
        self.on_added = listener.added
        self.on_modified = listener.modified
        self.on_appended = listener.appended

    def show_only(self, awaited: Container[tuple[int, bytes | None]]) -> None:
        """Only these keys need become `ready`: those that somebody in this process waits for."""
        self.awaited = awaited

    def call_at_deadlines(self, due: Callable[[int], None]) -> None:
        """Call `due` with a time (ms) at which something of a topic will have to be done."""
        self.on_deadline = due

    def call_on_memory(self, made: Callable[[MemoryKeyspace], None]) -> None:
        """Call `made` when the first ephemeral topic is made."""
        self.on_memory = made

    def read_cold_by(self, open_cold: Callable[[Txn], Shelf | None]) -> None:
        """`open_cold` makes what reads the cold store, when something is to be read there."""
        self.open_cold = open_cold

    def begin_cold(self, txn: Txn) -> None:
        """There is a cold store: read there from now on."""
        self.cold = self.open_cold(txn)

    def keep_cold(self, grace_ms: int) -> None:
        """So long files of the cold store stay that nobody needs any more, but who reads them."""
        self.cold_grace_ms = grace_ms

    # -- transactions

    @property
    def environment(self) -> Environment:
        """Where the keys are stored."""
        return self._environment

    def reading(self) -> Txn:
        """The turn's transaction; a snapshot if nothing has been written yet."""
        return self.turn.txn or self._begin(write=False)

    def writing(self) -> Txn:
        """The turn's transaction, which writes from now on. Raises StoreError."""
        turn = self.turn
        if turn.txn is not None:
            if turn.writes:
                return turn.txn
            turn.end(commit=False)
        return self._begin(write=True)

    def _begin(self, *, write: bool) -> Txn:
        if self.failure is not None:
            raise self.failure
        txn = self._environment.begin(self.turn, write=write)
        self.agenda.due |= KEYS
        version = txn.id() - 1 if write else txn.id()
        if version != self._version:
            if self._changed or self._spaces_changed:  # they were made to what is not the latest any more
                self.turn.end(commit=False)
                raise RuntimeError("records were changed outside of a write transaction")
            self.forget()
            self._version = version
            self.commits_of_others += 1
        return txn

    def forget(self) -> None:
        """Drop what is cached; it is read again."""
        for records in self._records:
            records.clear()
        self._spaces.clear()
        self._cached_bytes = 0

    def last_commit(self) -> int:
        """The last commit of anybody. Raises StoreError."""
        turn = self.turn
        if turn.txn is not None and turn.writes:
            return turn.txn.id() - 1
        return self._environment.last_commit()

    def settle(self) -> Txn:
        """Bring what was changed into the open transaction, so that walks over the store see it."""
        if self.stretches:
            self.take_in()
        turn = self.turn
        txn = turn.txn or self._begin(write=False)
        if self._changed or self._spaces_changed:
            if not turn.writes:  # somebody needed the store in the middle of a change: `_give_way`
                txn = self.writing()
            self._has_written = True
        if self._changed:
            changed, self._changed = self._changed, {}
            modified = txn.id()
            values = []
            for record in changed:
                values.append((record.place, record.packed(txn, modified)))
                record.is_stored = True
                if record.stored_expires_ms != record.expires_ms:
                    self._store_expiry(txn, record)
            key_records.put_all(txn, values)
        if self._spaces_changed:
            self._spaces_changed = False
            for database, space in self._spaces.items():
                key_records.put_space(txn, database, space)
        return txn

    def end_turn(self) -> Exception | None:
        """Commit. What went wrong, if it can't be: then nothing of this turn was done."""
        turn = self.turn
        failure = self.failure
        if (turn.writes or self._changed or self._spaces_changed) and failure is None:
            try:
                txn = self.settle()
                if self.memory is not None:
                    self.memory.prepare()
                version = txn.id()
                self._environment.end(turn, commit=True)
                if self._has_written:
                    self._version = self.committed = version
                else:  # an empty transaction's number is given again to the next one
                    self._version = version - 1
            except Exception as error:
                failure = self._undo(error)
            self._has_written = False
        elif turn.txn is not None:
            self._environment.end(turn, commit=False)
        if self.memory is not None:
            self.memory.end_turn()
        self.failure = None
        if self._cached_bytes > MAX_CACHED_BYTES:
            self.forget()
        return failure

    def fail(self, error: Exception) -> Exception:
        """A command met this error of the store: the whole turn is undone. What it means, to answer."""
        self.failure = self._undo(error)
        self.agenda.due |= KEYS
        return self.failure

    def _undo(self, error: Exception) -> Exception:
        memory = self.memory
        if memory is not None:
            is_of_memory = memory.turn.is_broken
            told = memory._undo(error)
            if is_of_memory:
                error = told
        if self.turn.txn is not None:
            self.turn.end(commit=False)
        self.stretches.clear()
        self._changed.clear()
        self._spaces_changed = self._has_written = False
        self.ready.clear()
        self.touched.clear()
        self.forget()
        self._version = -1
        return self.turn.told(error)

    def _give_way(self) -> None:
        """Somebody else needs a transaction in the middle of this turn: what there is is committed now."""
        if self.turn.writes:
            failure = self.end_turn()
            self.failure = failure
        else:
            self.turn.end(commit=False)
            if self.memory is not None:
                self.memory.turn.end(commit=False)

    # -- looking up

    def find(self, database: int, name: bytes) -> Record | None:
        """The key, if there is one and its time is not over."""
        if self.turn.txn is None:
            self._begin(write=False)
        if self.stretches:
            self.take_in()
        if self.memory is not None and name.endswith(EPHEMERAL):
            ephemeral = self.memory.find(database, name)
            if ephemeral is not None:
                return ephemeral
        record = self._known(database, name)
        if record is not None and record.expires_ms and record.expires_ms <= self.clock_ms():
            if not self.may_expire:
                return None
            self.expire(record)
            return None
        return record

    def _known(self, database: int, name: bytes) -> Record | None:
        """The key as this turn has it, whether its time is over or not."""
        records = self._records_of(database)
        record = records.get(name)
        return self._load(database, name) if record is None and name not in records else record

    def _records_of(self, database: int) -> dict[bytes, Record | None]:
        """What is cached of a database."""
        records = self._records
        while len(records) <= database:
            records.append({})
        return records[database]

    def _load(self, database: int, name: bytes) -> Record | None:
        txn = self.reading()
        record: Record | None = None
        space = self.space(database)
        if space.number:
            place = key_records.place(space.number, name)
            stored = key_records.get(txn, place)
            if stored is not None:
                record = self._made(database, name, place, stored)
                record.used_at = self.coarse_now
        self._records_of(database)[name] = record
        self._cached_bytes += 200 if record is None else record.weight
        return record

    def _made(self, database: int, name: bytes, place: bytes, stored: key_records.KeyRecord) -> Record:
        kind = _NUMBERED.get(stored.type)
        record = Text(database, name, place, stored.body) if kind is None else kind(self, database, name, place)
        record.loaded(stored)
        return record

    def read_topic(self, database: int, name: bytes, read: Callable[[Txn, Topic | None], T]) -> T:
        """What `read` makes of a topic as it is committed, in a snapshot of its own: nothing that this turn may still
        take back. None: there is no such topic; an ephemeral one is never committed. Raises StoreError."""
        return self._environment.read(lambda txn: read(txn, self._committed_topic(txn, database, name)))

    def _committed_topic(self, txn: Txn, database: int, name: bytes) -> Topic | None:
        space = key_records.space(txn, database)
        place = key_records.place(space.number, name)
        stored = key_records.get(txn, place) if space.number else None
        if stored is None or stored.type != key_records.TOPIC or 0 < stored.expires_ms <= self.clock_ms():
            return None
        topic = Topic(self, database, name, place)
        topic.loaded(stored)
        topic.see_cold(txn)
        return topic

    def space(self, database: int) -> Space:
        """The database's space, and its counts."""
        if self.turn.txn is None:
            self._begin(write=False)
        space = self._spaces.get(database)
        if space is None:
            space = self._spaces[database] = key_records.space(self.reading(), database)
        return space

    def version(self, database: int, name: bytes) -> int:
        """A number that differs once anybody has changed the key; 0 where there is none, or its time is over: but it is
        not removed."""
        if self.turn.txn is None:
            self._begin(write=False)
        if self.stretches:
            self.take_in()
        if self.memory is not None and name.endswith(EPHEMERAL):
            version = self.memory.version(database, name)
            if version:
                return version
        record = self._known(database, name)
        if record is None or 0 < record.expires_ms <= self.clock_ms():
            return 0
        if record in self._changed:
            self.settle()
        return record.modified

    # -- changing. Each of these makes the turn one that writes. Raises StoreError.

    def take_in(self) -> None:
        """Somebody looks: what was put behind topics becomes entries."""
        stretches, self.stretches = self.stretches, {}
        for stretch in stretches.values():
            stretch.take_in()

    def changed(self, record: Record) -> None:
        """This record was changed, or is about to be. Has WATCH and CLIENT TRACKING told. To be called before the
        change where the record may be from a snapshot: see `for_change`."""
        home = self if self.memory is None else self._home(record)
        home._changed[record] = None
        if self.is_heard:
            self.on_modified(record.database, record.name)

    def appended(self, record: Record) -> None:
        """As `changed` and `signal`."""
        home = self if self.memory is None else self._home(record)
        home._changed[record] = None
        if self.is_heard:
            self.on_modified(record.database, record.name)
        key = record.database, record.name
        self.touched[key] = None
        if self.awaited is None or key in self.awaited:
            self.ready[key] = None
            self.agenda.due |= READY

    def keep(self, record: Record) -> None:
        """As `changed`, where it is no change in the eyes of WATCH and CLIENT TRACKING: a group's deliveries, say."""
        home = self if self.memory is None else self._home(record)
        home._changed[record] = None

    def _home(self, record: Record) -> Keyspace:
        """The part that has it: this one, or the memory."""
        memory = self.memory
        return memory if memory is not None and isinstance(record, Topic) and record.keyspace is memory else self

    def for_change(self, database: int, name: bytes) -> Record | None:
        """As `find`, and the record may be changed: what it holds is the latest that anybody has committed."""
        turn = self.turn
        if not turn.writes:
            if turn.txn is not None:
                turn.end(commit=False)
            self._begin(write=True)
        if self.memory is not None:
            if name.endswith(EPHEMERAL):
                self.memory.writing()
        elif not self.stretches:
            record = self._records_of(database).get(name)
            if record is not None and not record.expires_ms:
                return record  # as most are: `find` would find it so
        return self.find(database, name)

    def put_string(
        self, database: int, name: bytes, value: bytes, expires_ms: int = 0, form: int = AS_IT_IS
    ) -> None:
        """Set a key to a string, whatever it was."""
        record = self.for_change(database, name)
        if not isinstance(record, Text):
            existing = record
            if existing is not None:
                self._remove(existing)
            record = Text(database, name, self._place_for(database, name))
            self._add(record, replaces=existing is not None)
        record.value = value
        record.form = form
        record.expires_ms = expires_ms
        record.used_at = self.coarse_now
        self._cached_bytes += len(value)
        self.changed(record)

    def create_topic(self, database: int, name: bytes) -> Topic:
        """A new topic under a name that is free."""
        return self.create(Topic, database, name)

    def create(self, kind: type[N], database: int, name: bytes) -> N:
        """A new topic, list or set under a name that is free."""
        if kind is Topic and name.endswith(EPHEMERAL):
            return self._with_memory().create(kind, database, name)
        return self._create(kind, database, name)

    def _with_memory(self) -> MemoryKeyspace:
        memory = self.memory
        if memory is None:
            from rlite_pubsub.keyspace.memory_keyspace import MemoryKeyspace

            memory = self.memory = MemoryKeyspace(self)
            self.on_memory(memory)
        return memory

    def _create(self, kind: type[N], database: int, name: bytes) -> N:
        txn = self.writing()
        record = kind(self, database, name, self._place_for(database, name))
        record.number = key_records.new_topic(txn)
        self._add(record)
        self.changed(record)
        return record

    def _place_for(self, database: int, name: bytes) -> bytes:
        space = self.space(database)
        if not space.number:
            space = Space(key_records.new_space(self.writing()), 0, 0)
            self._spaces[database] = space
        return key_records.place(space.number, name)

    def _add(self, record: Record, *, replaces: bool = False) -> None:
        self._records_of(record.database)[record.name] = record
        record.used_at = self.coarse_now
        self._cached_bytes += record.weight
        self._count(record.database, 1, 0)
        if not replaces:
            self.on_added(record.database, record.name)

    def _count(self, database: int, keys: int, expiring: int) -> None:
        space = self._spaces[database] if database in self._spaces else self.space(database)
        self._spaces[database] = Space(space.number, space.size + keys, space.expiring + expiring)
        self._spaces_changed = True

    def delete(self, database: int, name: bytes) -> bool:
        """Remove a key; False if there is none."""
        record = self.for_change(database, name)
        if record is None:
            return False
        self.remove(record)
        return True

    def remove(self, record: Record) -> None:
        """Remove a key that `for_change` has found."""
        self._remove(record)
        self.on_modified(record.database, record.name)

    def signal(self, database: int, name: bytes | None) -> None:
        """Whoever is blocked on this key (None: on any of the database's) should look, here and in other processes."""
        key = database, name
        self.touched[key] = None
        if self.awaited is None or name is None or key in self.awaited:
            self.ready[key] = None
            self.agenda.due |= READY

    def show(self, keys: Iterable[tuple[int, bytes | None]]) -> None:
        """Whoever is blocked on one of these keys here should look at it."""
        self.ready.update(dict.fromkeys(keys))
        self.agenda.due |= READY

    def _remove(self, record: Record, *, keep_content: bool = False) -> None:
        home = self._home(record)
        if home is not self:
            home._remove(record, keep_content=keep_content)
            return
        txn = self.writing()
        self._changed.pop(record, None)
        self._records_of(record.database)[record.name] = None
        if record.is_stored:
            key_records.delete(txn, record.place)
            record.is_stored = False
        if record.stored_expires_ms:
            key_records.set_expiry(txn, record.place, record.stored_expires_ms, 0)
            record.stored_expires_ms = 0
            self._count(record.database, -1, -1)
        else:
            self._count(record.database, -1, 0)
        if not keep_content and isinstance(record, Topic | Collection):
            record.drop(txn)
            self.signal(record.database, record.name)

    def expire(self, record: Record) -> None:
        """Its time is over."""
        found = self.for_change_of(record)
        if found is not None:
            self._remove(found)
            self.on_expired(record.database, record.name)

    def for_change_of(self, record: Record) -> Record | None:
        """The same record, ready to be changed; None if it is gone meanwhile."""
        if not self.turn.writes:
            self.writing()
        return self._known(record.database, record.name)

    def set_expiry(self, record: Record, expires_ms: int) -> None:
        """When a key that `for_change` has found expires; 0: never."""
        record.expires_ms = expires_ms
        self.changed(record)

    def move(self, record: Record, database: int, name: bytes) -> None:
        """Give a key that `for_change` has found another name, or another database; what had that name is removed.

        An ephemeral topic's name goes on saying so, and no other topic is given such a name."""
        existing = self.for_change(database, name)
        if existing is not None:
            self._remove(existing)
        home = self._home(record)
        if home is not self:
            home.move(record, database, name)
            return
        if isinstance(record, Topic):
            record.settle()
        old = record.database, record.name
        self._remove(record, keep_content=True)
        record.database, record.name = database, name
        record.place = self._place_for(database, name)
        self._add(record)
        self.on_modified(*old)
        self.changed(record)
        if isinstance(record, Topic | Collection):
            self.signal(*old)
            self.signal(database, name)

    def copy(self, record: Record, database: int, name: bytes) -> None:
        """The same content under another name; what had that name is removed."""
        existing = self.for_change(database, name)
        if existing is not None:
            self._remove(existing)
        if isinstance(record, Topic):
            topic = self.create_topic(database, name)
            assert topic.keyspace is record.keyspace, "an ephemeral topic's copy is one, too, and no other topic's is"
            topic.copy_from(record)
            topic.expires_ms = record.expires_ms
            self.signal(database, name)
        elif isinstance(record, Collection):
            copied = self.create(type(record), database, name)
            copied.copy_from(record)
            copied.expires_ms = record.expires_ms
            self.signal(database, name)
        else:
            assert isinstance(record, Text)
            self.put_string(database, name, record.value, record.expires_ms, record.form)

    def _store_expiry(self, txn: Txn, record: Record) -> None:
        before, after = record.stored_expires_ms, record.expires_ms
        key_records.set_expiry(txn, record.place, before, after)
        record.stored_expires_ms = after
        if bool(before) != bool(after):
            self._count(record.database, 0, 1 if after else -1)

    # -- whole databases

    def size(self, database: int) -> int:
        """How many keys it has, those included whose time is over and that nobody has noticed."""
        return self.space(database).size + (self.memory.size(database) if self.memory is not None else 0)

    def sizes(self) -> dict[int, tuple[int, int]]:
        """(keys, keys that expire) of every database that has any."""
        spaces = key_records.spaces(self.settle())
        sizes = {database: (space.size, space.expiring) for database, space in spaces.items() if space.size}
        for database, (size, expiring) in (self.memory.sizes() if self.memory is not None else {}).items():
            stored = sizes.get(database, (0, 0))
            sizes[database] = stored[0] + size, stored[1] + expiring
        return dict(sorted(sizes.items()))

    def databases(self) -> list[int]:
        """Those that hold any keys."""
        return list(self.sizes())

    def walk(self, database: int) -> Iterator[tuple[bytes, int]]:
        """(name, type) of every key, but for those whose time is over. Nothing may be changed meanwhile."""
        now_ms = self.clock_ms()
        for _, type_, expires_ms, name in self._walk(database):
            if not expires_ms or expires_ms > now_ms:
                yield name, type_

    def _walk(self, database: int, digest: bytes = b"") -> Iterator[tuple[bytes, int, int, bytes]]:
        """As `key_records.walk`, over both parts."""
        number = self.space(database).number
        stored = key_records.walk(self.settle(), number, digest) if number else iter(())
        return stored if self.memory is None else merge(stored, self.memory._walk(database, digest))

    def scan(self, database: int, cursor: int, count: int) -> tuple[int, list[tuple[bytes, int]], list[bytes]]:
        """A step of SCAN: the next cursor, 0 at the end, and the (name, type) of about `count` keys; apart from them
        the names of those whose time is over, to be looked for and so removed.

        A cursor is the first half of a digest, so a key that is there all the time is seen whatever else changes.
        """
        now_ms = self.clock_ms()
        found: list[tuple[bytes, int]] = []
        over: list[bytes] = []
        next_cursor = steps = 0
        for digest, type_, expires_ms, name in self._walk(database, cursor.to_bytes(8, "big")):
            steps += 1
            place = int.from_bytes(digest[:8], "big")
            if steps > count and place > cursor:
                next_cursor = place
                break
            if not expires_ms or expires_ms > now_ms:
                found.append((name, type_))
            else:
                over.append(name)
        return next_cursor, found, over

    def random(self, database: int) -> bytes | None:
        """The name of any key."""
        now_ms = self.clock_ms()
        start = random.randbytes(key_records.DIGEST_BYTES)
        for digest in (start, b""):
            for _, _, expires_ms, name in self._walk(database, digest):
                if not expires_ms or expires_ms > now_ms:
                    return name
        return None

    def flush(self, database: int) -> int:
        """Remove all keys of a database; how many there were."""
        txn = self.writing()
        ephemeral = self.memory.flush(database) if self.memory is not None else 0
        space = self.space(database)
        if not space.size:
            return ephemeral
        self.settle()
        garbage.add(txn, garbage.SPACE, space.number)
        self._drop_database(database)
        self._spaces[database] = Space(key_records.new_space(txn), 0, 0)
        self._spaces_changed = True
        self.signal(database, None)
        return space.size + ephemeral

    def swap(self, first: int, second: int) -> None:
        """Let two databases change places."""
        self.writing()
        if self.memory is not None:
            self.memory.swap(first, second)
        one, other = self.space(first), self.space(second)
        self.settle()
        self._drop_database(first)
        self._drop_database(second)
        self._spaces[first], self._spaces[second] = other, one
        self._spaces_changed = True
        self.signal(first, None)
        self.signal(second, None)

    def _drop_database(self, database: int) -> None:
        self._records_of(database).clear()

    # -- in the background

    def expire_some(self, limit: int) -> int:
        """Remove at most `limit` keys whose time is over; how many there were."""
        ephemeral = self.memory.expire_some(limit) if self.memory is not None else 0
        due = key_records.expired(self.settle(), self.clock_ms(), limit)
        if not due:
            return ephemeral
        databases = {space.number: database for database, space in key_records.spaces(self.settle()).items()}
        self.writing()
        for when, place in due:
            database = databases.get(key_records.space_of(place))
            stored = key_records.get(self.settle(), place) if database is not None else None
            if database is None or stored is None:
                key_records.set_expiry(self.writing(), place, when, 0)  # of a space that is garbage
                continue
            record = self.for_change(database, stored.name)  # which finds that it is over
            assert record is None or record.stored_expires_ms > when
        return len(due) + ephemeral

    def sweep_some(self, limit: int) -> int:
        """Remove at most about `limit` records of what is garbage; how many there were."""
        ephemeral = self.memory.sweep_some(limit) if self.memory is not None else 0
        if not garbage.exists(self.settle()):
            return ephemeral
        return garbage.sweep(self.writing(), limit, self.clock_ms() + self.cold_grace_ms) + ephemeral


_NUMBERED: Final[dict[int, type[Topic | Collection]]] = {kind.type: kind for kind in (Topic, List, Set)}


def _no_cold(txn: Txn) -> Shelf | None:
    """Blocks cannot be read here."""
    return None


def _nobody(database: int, name: bytes) -> None:
    """Nobody wants to know."""


def _nobody_tends(memory: MemoryKeyspace) -> None:
    """Nobody looks after ephemeral topics."""


def _nobody_cares(at_ms: int) -> None:
    """Nobody wants to know when."""
