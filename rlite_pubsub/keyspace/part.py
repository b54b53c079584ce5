"""A part of a keyspace: the keys of one environment, as one process works on them turn by turn.

Records that were read are cached. At the beginning of each turn the environment's transaction id says whether anybody
else has committed since: then the cache is dropped. Within a turn changes are made to the records in the cache; the
environment gets each of them once, at the end, or when somebody walks over it (`settle`).

The stored keys are one part of a keyspace, ephemeral topics are another (ephemeral.py). The keyspace (keyspace.py)
chooses the part for a name, and commits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from rlite_pubsub.keyspace.collection import Collection, Shelter
from rlite_pubsub.keyspace.effects import EXPIRY, VALUE, WHOLE
from rlite_pubsub.keyspace.hashes import Hash
from rlite_pubsub.keyspace.lists import List
from rlite_pubsub.keyspace.packing import DEFAULT, Packing
from rlite_pubsub.keyspace.records import Record, Text
from rlite_pubsub.keyspace.sets import Set
from rlite_pubsub.keyspace.sorted_sets import SortedSet
from rlite_pubsub.keyspace.topic.home import Directory
from rlite_pubsub.keyspace.topic.retention import Retention
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.storage.agenda import KEYS, READY
from rlite_pubsub.storage.databases import KEYS as KEYS_ROWS
from rlite_pubsub.storage.databases import SPACES as SPACES_ROWS
from rlite_pubsub.storage.environment import Environment, Txn
from rlite_pubsub.storage.journal.recording import change_rows
from rlite_pubsub.storage.keys import garbage, key_records
from rlite_pubsub.storage.keys.key_records import KeyRecord, Space
from rlite_pubsub.storage.turn import Turn

if TYPE_CHECKING:
    from rlite_pubsub.keyspace.effects import Effects
    from rlite_pubsub.keyspace.news import News
    from rlite_pubsub.keyspace.times import Times
    from rlite_pubsub.keyspace.topic.cold_shelf import ColdAccess
    from rlite_pubsub.keyspace.topic.rules import Rules
    from rlite_pubsub.keyspace.topic.stretch import Stretches

N = TypeVar("N", bound=Topic | Collection)

_ABSENT_BYTES: Final = 200
"""What it takes to know that there is no such key, apart from its name."""
_FREED_AT_ONCE: Final = 500
"""How many records are freed at the end of a turn: 0.2 ms."""


class Whole(Directory, Protocol):
    """The keyspace, as its parts need it."""

    @property
    def times(self) -> Times: ...

    @property
    def news(self) -> News: ...

    @property
    def stretches(self) -> Stretches: ...

    @property
    def cold(self) -> ColdAccess: ...

    def give_way(self) -> None:
        """Make room for somebody who needs a transaction in the middle of this turn."""

    def look(self, txn: Txn) -> None:
        """React to commits of others, which this transaction sees."""


class Part(Shelter):
    """One part of one keyspace."""

    def __init__(
        self, environment: Environment, whole: Whole, rules: Rules | None, behind: Part | None = None
    ) -> None:
        """`rules` say how much of topics is kept; without them, everything. `behind`: the part whose transaction this
        one depends on."""
        self.environment = environment
        self.turn = Turn(environment, whole.give_way)
        self.names: Whole = whole
        self.times = whole.times
        self.clock_ms = whole.times.clock_ms
        self.news = whole.news
        self.cold = whole.cold
        self.packing = DEFAULT  # what is small enough for one record
        self.caches: list[dict[bytes, Record | None]] = []  # by database. None: no such key
        self.dropped: list[dict[bytes, Record | None]] = []  # of the caches, and not yet freed
        self._held: list[int] = []  # how many keys these hold: where they are all that there are, nobody looks further
        self.unwritten: dict[Record, None] = {}  # what was changed and is not yet in the open transaction
        self.spaces_changed = False
        self.expiring_here: dict[tuple[int, bytes], int] = {}
        """When keys expire whose time clients of a writable replica have set in this process."""
        self.commits_of_others = 0  # how often another process has committed between our turns, or a turn failed
        self.committed = -1  # our own last transaction that has surely changed something
        self._agenda = whole.news.agenda
        self._stretches = whole.stretches
        self._behind = behind
        self._spaces: dict[int, Space] = {}
        self._places: dict[bytes, tuple[int, bytes]] = {}
        """What is in the cache, by its row, where the environment knows what others change."""
        self._knows_changes = environment.knows_changes
        self.cached_bytes = 0
        self._version = -1  # the last transaction that the cache reflects
        self._free_place = 0, b"", b""  # space, name and place of the last key that was looked for in vain
        self.retention: Retention | None = Retention(self, rules) if rules is not None else None
        self._is_ours: Callable[[bytes], bool] | None = None

    def go_by(self, is_ours: Callable[[bytes], bool]) -> None:
        """Ask `is_ours` whether keys of a name belong to this member of a sharded store."""
        self._is_ours = is_ours

    def is_ours(self, name: bytes) -> bool:
        """Return whether keys of this name belong to this member of a sharded store. It may have a copy of what has
        just become another member's."""
        return self._is_ours is not None and self._is_ours(name)

    # -- transactions

    def reading(self) -> Txn:
        """Return the turn's transaction; a snapshot if nothing has been written yet."""
        return self.turn.txn or self.begin(write=False)

    def writing(self) -> Txn:
        """Return the turn's transaction, which writes from now on. Raises StoreError."""
        turn = self.turn
        if turn.txn is not None and turn.writes:
            return turn.txn
        return self.begin(write=True)

    def begin(self, *, write: bool) -> Txn:
        """Open the turn's transaction, replacing a snapshot. Raises StoreError."""
        turn = self.turn
        if turn.txn is not None:
            turn.end(commit=False)
        if turn.failure is not None:
            raise turn.failure
        if self._behind is not None:
            if write:
                self._behind.writing()
            else:
                self._behind.reading()
        txn = self.environment.begin(turn, write=write)
        self._agenda.due |= KEYS
        version = turn.seen
        if version != self._version:
            if self.unwritten or self.spaces_changed:  # they were made to an old state
                turn.end(commit=False)
                raise RuntimeError("records were changed outside of a write transaction")
            self._catch_up(txn)
            self._version = version
            self.commits_of_others += 1
            if self._behind is None:
                self.names.look(txn)
        return txn

    def _catch_up(self, txn: Txn) -> None:
        """Drop of the cache what others have changed: everything, where the environment does not know what that is.
        Whoever changes anything of a key writes its record, so nothing else has to be looked at."""
        rows = self.environment.changed_since(self.turn)
        if rows is None:
            self.forget()
            return
        places, spaces_changed = self._places, False
        for row in rows:
            kind = row[:1]
            if kind == KEYS_ROWS:
                held = places.pop(row, None)
                if held is not None:
                    self._lose(*held)
            elif kind == SPACES_ROWS:
                spaces_changed = True
        if spaces_changed:
            for database, before in list(self._spaces.items()):
                now = self._spaces[database] = key_records.space(txn, database)
                if now.number != before.number:
                    self._drop_database(database)

    def _lose(self, database: int, name: bytes) -> None:
        """Drop what stands under this name in the cache."""
        records = self.caches[database]
        if name not in records:
            return
        record = records.pop(name)
        if record is None:
            self.cached_bytes -= len(name) + _ABSENT_BYTES
        else:
            self._held[database] -= 1
            self.cached_bytes -= len(name) + record.weight

    def settle(self) -> Txn:
        """Write what was changed to the open transaction, so that walks over the environment see it."""
        if self._stretches.open:
            self._stretches.take_in()
        turn = self.turn
        txn = turn.txn or self.begin(write=False)
        if not self.unwritten and not self.spaces_changed:
            return txn
        if not turn.writes:  # somebody needed the store in the middle of a change: `Keyspace.give_way`
            txn = self.writing()
        self._version = self.committed = txn.id()  # if nothing more is written, its number is reused
        modified = (self._version << key_records.TURN_BITS) + turn.place
        if self.unwritten:
            changed, self.unwritten = self.unwritten, {}
            rows: dict[bytes, bytes | None] = {}
            for record in changed:
                packed = rows[record.row] = record.packed(txn, modified)
                if record.stored_expires_ms != record.expires_ms:
                    if self.times.is_writable_replica and not self.times.is_master_s and record.expires_ms:
                        self.expiring_here[record.database, record.name] = record.expires_ms
                    if more := record.schedule(txn):
                        self._count(record.database, 0, more)
            if len(rows) == 1:
                txn.put(record.row, packed)
            else:
                change_rows(txn, rows)
        if self.spaces_changed:
            self.spaces_changed = False
            for database, space in self._spaces.items():
                key_records.put_space(txn, database, space)
        return txn

    def wrote_beside(self) -> None:
        """Note that this turn has surely written something, in none of the keys: the cache reflects its commit, too."""
        self._version = self.committed = self.writing().id()  # surely, or its number is reused, by whoever writes next

    def undo(self, error: Exception) -> Exception:
        """Undo the turn after this error; return what the error means, in the store's words."""
        if self.turn.txn is not None:
            self.turn.end(commit=False)
        self.unwritten.clear()
        self.spaces_changed = False
        self.forget()
        self._version = self.committed = -1
        return self.turn.told(error)

    def forget(self) -> None:
        """Drop the cache; it is read again. To free many records takes long, so that is done a few at a time, unless
        as many have come since the last ones."""
        self.dropped.clear()
        caches = self.caches
        for database, records in enumerate(caches):
            if len(records) <= _FREED_AT_ONCE:
                records.clear()
                continue
            caches[database] = {}
            self.dropped.append(records)
        self._held = [0] * len(caches)
        self._places.clear()
        self._spaces.clear()
        self.cached_bytes = 0

    def free_some(self) -> None:
        """Free some of the records that were dropped."""
        records = self.dropped[-1]
        for _ in range(min(_FREED_AT_ONCE, len(records))):
            records.popitem()
        if not records:
            self.dropped.pop()

    # -- looking up

    def get(self, database: int, name: bytes) -> Record | None:
        """Return the key, if it exists, even if it has expired."""
        if self.turn.txn is None:
            self.begin(write=False)
        records = self.cached(database)
        record = records.get(name)
        return self._load(database, name) if record is None and name not in records else record

    def cached(self, database: int) -> dict[bytes, Record | None]:
        """Return the cache of a database."""
        records = self.caches
        while len(records) <= database:
            records.append({})
            self._held.append(0)
        return records[database]

    def _load(self, database: int, name: bytes) -> Record | None:
        """Read a key that is not in the cache, if it exists."""
        space = self._spaces.get(database) or self.space(database)
        if space.size == self._held[database]:
            return None
        txn = self.reading()
        place = key_records.place(space.number, name)
        stored = key_records.get(txn, place)
        if stored is not None:
            return self._keep_loaded(database, place, stored)
        self._free_place = space.number, name, place
        if self._knows_changes:
            self._places[key_records.row(place)] = database, name
        self.cached(database)[name] = None
        self.cached_bytes += len(name) + _ABSENT_BYTES
        return None

    def found(self, database: int, place: bytes, stored: KeyRecord) -> Record:
        """Return the key whose record a walk has found at this place of a database; all was settled before."""
        return self.cached(database).get(stored.name) or self._keep_loaded(database, place, stored)

    def _keep_loaded(self, database: int, place: bytes, stored: KeyRecord) -> Record:
        name = stored.name
        record: Record
        kind = _NUMBERED.get(stored.type)
        if kind is None:
            record = Text(database, name, place, stored.body)
        else:
            record = kind(self, database, name, place)
        record.loaded(stored)
        record.touch(self.times.coarse_now)
        self._hold(database, name, record)
        self.cached_bytes += len(name) + record.weight
        return record

    def committed_topic(self, txn: Txn, database: int, name: bytes) -> Topic | None:
        """Return a topic as another transaction sees it."""
        space = key_records.space(txn, database)
        place = key_records.place(space.number, name)
        stored = key_records.get(txn, place) if space.number else None
        if stored is None or stored.type != key_records.TOPIC or 0 < stored.expires_ms <= self.clock_ms():
            return None
        topic = Topic(self, database, name, place)
        topic.loaded(stored)
        topic.see_cold(txn)
        return topic

    def version(self, record: Record) -> int:
        """Return a number that differs once anybody has changed the record."""
        if record in self.unwritten:
            self.settle()
        return record.modified

    # -- changing. Each of these makes the turn one that writes. Raises StoreError.

    def pack_by(self, packing: Packing) -> None:
        """Set the limits for packed collections."""
        self.packing = packing

    def changed(self, record: Record, grown_bytes: int = 0) -> None:
        """Note that this record was changed, or is about to be, for WATCH and CLIENT TRACKING. Call it before the
        change if the record may be from a snapshot: see `Keyspace.for_change`."""
        self.unwritten[record] = None
        self.cached_bytes += grown_bytes
        if self.news.is_heard:
            self._tell(record, VALUE)

    def rescheduled(self, record: Record) -> None:
        """Like `changed`, if only its expiry changes."""
        self.unwritten[record] = None
        if self.news.is_heard:
            self._tell(record, EXPIRY)

    def _tell(self, record: Record, what: int) -> None:
        effects = self.effects
        if effects is not None:
            effects.changed(record, what)
        self.news.listener.modified(record.database, record.name)

    @property
    def effects(self) -> Effects | None:
        """The notes on its keys for replicas, which have no ephemeral topics; None: nobody replicates."""
        return self.news.effects if self._behind is None else None

    def appended(self, record: Record, count: int = 0) -> None:
        """Like `changed` and `News.signal`, for a topic to which this many entries were appended."""
        self.unwritten[record] = None
        news = self.news
        if news.is_heard:
            effects = self.effects
            if effects is not None:
                effects.appended(record, count)
            news.listener.modified(record.database, record.name)
        if news.told is record and not news.awaited and news.awaited is not None:
            return  # nobody waits here, and others will be notified
        news.told = record
        key = record.database, record.name
        news.touched[key] = None
        if news.awaited is None or key in news.awaited:
            news.ready[key] = None
            self._agenda.due |= READY

    def keep(self, record: Record) -> None:
        """Like `changed`, for what WATCH and CLIENT TRACKING do not regard as a change: a group's deliveries, for
        example."""
        self.unwritten[record] = None

    def create(self, kind: type[N], database: int, name: bytes, *, replaces: bool = False) -> N:
        """Create a topic or collection under a name that is free. `replaces`: as for `add`."""
        txn = self.writing()
        record = kind(self, database, name, self.place_for(database, name))
        if isinstance(record, Topic):
            record.begin(txn)
        self.add(record, replaces=replaces)
        self.changed(record)
        effects = self.effects
        if effects is not None and isinstance(record, Topic):
            effects.changed(record, WHOLE)
        return record

    def place_for(self, database: int, name: bytes) -> bytes:
        """Return the place of a key of this name. Its database has a space from now on."""
        space = self.space(database)
        if not space.number:
            space = Space(key_records.new_space(self.writing()), 0, 0)
            self._spaces[database] = space
        number, free, place = self._free_place
        if number == space.number and free == name:
            return place
        return key_records.place(space.number, name)

    def add(self, record: Record, *, replaces: bool = False) -> None:
        """Add a key, which is about to be changed. `replaces`: its name was not free."""
        self._hold(record.database, record.name, record)
        record.touch(self.times.coarse_now)
        self.cached_bytes += len(record.name) + record.weight
        self._count(record.database, 1, 0)
        self.unwritten[record] = None  # with the count, whatever those do who are told
        if not replaces:
            self.news.listener.added(record.database, record.name)

    def adopt_topic(self, database: int, name: bytes, flags: int, expires_ms: int, body: bytes) -> Topic:
        """Create a topic from rows that are in the store already, with this record, under a name that is free."""
        topic = Topic(self, database, name, self.place_for(database, name))
        topic.loaded(KeyRecord(key_records.TOPIC, flags, 0, 0, name, body))
        topic.expire_at(expires_ms)
        self.add(topic)
        self.changed(topic)
        effects = self.effects
        if effects is not None:
            effects.changed(topic, WHOLE)
        topic.signal()
        return topic

    def remove(self, record: Record, *, keep_content: bool = False) -> None:
        """Remove a key from `Keyspace.for_change`."""
        txn = self.writing()
        self.unwritten.pop(record, None)
        self._hold(record.database, record.name, None)
        self._count(record.database, -1, -1 if record.erase(txn) else 0)
        effects = self.effects
        if effects is not None:
            effects.removed(record.database, record.name)
        if not keep_content and isinstance(record, (Topic, Collection)):
            record.drop(txn)
            self.news.signal(record.database, record.name)

    def move(self, record: Record, database: int, name: bytes) -> None:
        """Rename a key from `Keyspace.for_change` to a name that is free."""
        if isinstance(record, Topic):
            record.settle()
        old = record.database, record.name
        self.remove(record, keep_content=True)
        record.rename(database, name, self.place_for(database, name))
        self.add(record)
        self.news.listener.modified(*old)
        self.changed(record)
        effects = self.effects
        if effects is not None and isinstance(record, Topic):
            effects.changed(record, WHOLE)
        if isinstance(record, Topic | Collection):
            self.news.signal(*old)
            self.news.signal(database, name)

    def expire(self, record: Record) -> None:
        """Remove an expired key, unless somebody has prolonged its life meanwhile."""
        self.writing()
        found = self.get(record.database, record.name)
        if found is not None and 0 < found.expires_ms <= self.clock_ms():
            self.remove(found)
            effects = self.effects
            if effects is not None:
                effects.expired(record.database, record.name)
            self.news.listener.expired(record.database, record.name)

    def space(self, database: int) -> Space:
        """Return the database's space, and its counts."""
        if self.turn.txn is None:
            self.begin(write=False)
        space = self._spaces.get(database)
        if space is None:
            space = self._spaces[database] = key_records.space(self.reading(), database)
        return space

    def _count(self, database: int, keys: int, expiring: int) -> None:
        space = self._spaces.get(database) or self.space(database)
        space.size += keys
        space.expiring += expiring
        self.spaces_changed = True

    def spaces(self) -> dict[int, Space]:
        """Return the spaces of all databases."""
        return key_records.spaces(self.settle())

    def walk(self, database: int, digest: bytes = b"") -> Iterator[tuple[bytes, int, int, bytes]]:
        """Walk like `key_records.walk`."""
        number = self.space(database).number
        return key_records.walk(self.settle(), number, digest) if number else iter(())

    def flush(self, database: int) -> int:
        """Remove all keys of a database; return how many there were."""
        txn = self.writing()
        space = self.space(database)
        if space.size:
            self.settle()
            garbage.add(txn, garbage.SPACE, space.number)
            self._drop_database(database)
            self._spaces[database] = Space(key_records.new_space(txn), 0, 0)
            self.spaces_changed = True
            effects = self.effects
            if effects is not None:
                effects.flushed(database)
        return space.size

    def swap(self, first: int, second: int) -> None:
        """Swap two databases."""
        self.writing()
        self.settle()  # it counts keys that have begun to expire
        one, other = self.space(first), self.space(second)
        self._drop_database(first)
        self._drop_database(second)
        self._spaces[first], self._spaces[second] = other, one
        self.spaces_changed = True
        effects = self.effects
        if effects is not None and first != second:
            effects.swapped(first, second)

    def _drop_database(self, database: int) -> None:
        self.cached(database).clear()
        self._held[database] = 0
        if self._places:
            self._places = {row: held for row, held in self._places.items() if held[0] != database}

    def _hold(self, database: int, name: bytes, record: Record | None) -> None:
        """Put into the cache what stands under this name now; None: nothing."""
        records = self.cached(database)
        held = (record is not None) - (records.get(name) is not None)
        if held:
            self._held[database] += held
        if record is not None and self._knows_changes:
            self._places[record.row] = database, name
        records[name] = record


_NUMBERED: Final[dict[int, type[Topic | Collection]]] = {
    kind.type: kind for kind in (Topic, List, Set, Hash, SortedSet)
}
