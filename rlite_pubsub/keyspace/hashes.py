"""Hashes, as a turn works on them. Any field may expire by itself.

An expired field is not shown any more. It is counted until it is removed, in the background or by the next command on
its hash (engine/field_expiry.py), as in Redis since 7.4.

The record of a hash, after its number (0: it is small):

    due ms u64 (when its first field expires, 0: none does)
    small words (words.py): fields and values alternate, in the order in which the fields came; flags 1: and behind each
            value its due ms u64
    large   fields u64
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from struct import Struct
from typing import TYPE_CHECKING, ClassVar, Final

from rlite_pubsub.keyspace.collection import Collection, Shelter
from rlite_pubsub.storage import databases
from rlite_pubsub.storage.keys import digests, fields, key_records, words
from rlite_pubsub.storage.keys.fields import Field, HeldField

if TYPE_CHECKING:
    from rlite_pubsub.storage.environment import Txn
    from rlite_pubsub.storage.keys.key_records import KeyRecord

_HEAD: Final = fields.HASH_HEAD
_COUNT: Final = Struct(">Q")
_DUE: Final = Struct(">Q")
_WITH_DUES: Final = 1
_FIELD_BYTES: Final = 60
"""About how many bytes a field takes beside its own."""
_SAMPLES: Final = 5
_HELD_BYTES: Final = 300
"""About how many bytes of memory a field takes beside its own."""
_MOST_IN_VAIN: Final = 1000
"""How many expired fields are drawn before the others are looked up one by one."""


class Hash(Collection):
    """A hash."""

    __slots__ = ("_count", "_dues", "_fields", "_held", "_row", "due_ms")

    type = key_records.HASH
    database_bytes: ClassVar[tuple[bytes, ...]] = (databases.FIELDS, databases.FIELD_EXPIRIES)

    def __init__(self, keyspace: Shelter, database: int, name: bytes, place: bytes) -> None:
        super().__init__(keyspace, database, name, place)
        self._fields: dict[bytes, bytes] = {}  # of a small one
        self._dues: dict[bytes, int] = {}  # of a small one: when its expiring fields expire
        self._count = 0  # of a large one
        self._held: dict[bytes, HeldField] = {}  # of a large one: fields that were looked up
        self.due_ms = 0  # when the first of its fields expires; 0: none does
        self._row = b""  # its stored row in the order of hashes with expiring fields

    def __len__(self) -> int:
        return self._count if self.number else len(self._fields)

    @property
    def is_small(self) -> bool:
        """True if Redis would keep it in a listpack."""
        return not self.number

    @property
    def expires_by_fields(self) -> bool:
        """True if any field expires."""
        return bool(self.due_ms)

    # -- stored

    def loaded(self, stored: KeyRecord) -> None:
        super().loaded(stored)
        self.number, self.due_ms = _HEAD.unpack_from(stored.body)
        self._row = fields.expiring(self.due_ms, self.place)
        if self.number:
            self._count = _COUNT.unpack_from(stored.body, _HEAD.size)[0]
            return
        found = words.unpack(stored.body, _HEAD.size)
        if stored.flags & _WITH_DUES:
            self._fields = dict(zip(found[::3], found[1::3], strict=True))
            dues = [_DUE.unpack(due)[0] for due in found[2::3]]
            self._dues = {name: due for name, due in zip(self._fields, dues, strict=True) if due}
        else:
            self._fields = dict(zip(found[::2], found[1::2], strict=True))

    @property
    def flags(self) -> int:
        return _WITH_DUES if self._dues else 0

    def body(self, txn: Txn) -> bytes:
        if self.due_ms or self._row:
            row = fields.expiring(self.due_ms, self.place)
            if row != self._row:
                fields.set_expiring(txn, self._row, row)
                self._row = row
        head = _HEAD.pack(self.number, self.due_ms)
        if self.number:
            return head + _COUNT.pack(self._count)
        stored: list[bytes] = []
        if self._dues:
            dues = self._dues
            for name, value in self._fields.items():
                stored += [name, value, _DUE.pack(dues.get(name, 0))]
        else:
            for name, value in self._fields.items():
                stored.append(name)
                stored.append(value)
        return head + words.pack(stored)

    def drop(self, txn: Txn) -> None:
        if self._row:
            fields.set_expiring(txn, self._row, b"")
            self._row = b""
        super().drop(txn)

    def copy_from(self, other: Collection) -> None:
        assert isinstance(other, Hash)
        self.due_ms = other.due_ms
        if other.number:
            self._count = other._count
            self.copy_content(other)
        else:
            self._fields, self._dues = dict(other._fields), dict(other._dues)
        self._keyspace.changed(self)

    @property
    def weight(self) -> int:
        return 400 + len(self._fields) * 200

    @property
    def content_bytes(self) -> int:
        sample = [one for one, _ in zip(self._walk(), range(_SAMPLES), strict=False)]
        size = sum(_FIELD_BYTES + len(field.name) + len(field.value) for field in sample)
        return size * len(self) // max(1, len(sample))

    # -- changing

    def put(self, names_and_values: list[bytes], *, keeps_dues: bool = False) -> int:
        """Set fields to values, which alternate. Their expiry is removed, unless `keeps_dues` is set. Returns how many
        are new."""
        keyspace = self._keyspace
        if not self.number:
            packing = keyspace.packing
            found = self._fields
            if len(names_and_values) == 2 and not self._dues:  # usually
                name, value = names_and_values
                if len(name) <= packing.hash_value_bytes >= len(value):
                    new = int(name not in found)
                    found[name] = value
                    if new and len(found) > packing.hash_entries:
                        self._grow()
                    keyspace.changed(self)
                    return new
            longest = 0
            for word in names_and_values:  # compiled, loops take less than `max`, `map` and `zip`
                if len(word) > longest:
                    longest = len(word)
            if longest <= packing.hash_value_bytes:
                before = len(found)
                for at in range(0, len(names_and_values), 2):
                    found[names_and_values[at]] = names_and_values[at + 1]
                if self._dues and not keeps_dues:
                    for name in names_and_values[::2]:
                        self._dues.pop(name, None)
                    self._see_dues()
                new = len(found) - before
                if len(found) > packing.hash_entries:
                    self._grow()
                keyspace.changed(self)
                return new
            self._grow()
        txn = keyspace.writing()
        before = self._count
        moved = False
        for at in range(0, len(names_and_values), 2):
            name, value = names_and_values[at], names_and_values[at + 1]
            self._mind_memory()
            held = self._look_for(name)
            if held is None:
                self._count += 1
                held = self._hold(name, HeldField(fields.key(self.number, name), value, 0))
            else:
                self._rows.held_bytes += len(value) - len(held.value)
                held.value = value
                if held.due_ms and not keeps_dues:
                    fields.set_due(txn, self.number, held.key, held.due_ms, 0)
                    held.due_ms = 0
                    moved = True
            self._rows.put(txn, held.key, fields.pack(name, value, held.due_ms))
        if moved:
            self._see_dues()
        keyspace.changed(self)
        return self._count - before

    def take_packed(self, names_and_values: list[bytes]) -> None:
        """Take over fields that were packed already, even if values are long; this one is new. Too many fields make it
        large."""
        self._fields = dict(zip(names_and_values[::2], names_and_values[1::2], strict=True))
        if len(self._fields) > self._keyspace.packing.hash_entries:
            self._grow()
        self._keyspace.changed(self)

    def _grow(self) -> None:
        """Become large."""
        txn = self._keyspace.writing()
        self.number = key_records.new_topic(txn)
        self._count = len(self._fields)
        for name, value in self._fields.items():
            key, due_ms = fields.key(self.number, name), self._dues.get(name, 0)
            self._hold(name, HeldField(key, value, due_ms))
            self._rows.put(txn, key, fields.pack(name, value, due_ms))
            fields.set_due(txn, self.number, key, 0, due_ms)
        self._fields, self._dues = {}, {}

    def remove(self, names: list[bytes]) -> int:
        """Remove fields; return how many existed."""
        removed = moved = 0
        if not self.number:
            for name in names:
                removed += self._fields.pop(name, None) is not None
                moved += self._dues.pop(name, None) is not None
        else:
            txn = self._keyspace.writing()
            for name in names:
                held = self._look_for(name)
                if held is not None:
                    del self._held[name]
                    self._rows.held_bytes -= _HELD_BYTES + len(name) + len(held.value)
                    self._rows.delete(txn, held.key)
                    fields.set_due(txn, self.number, held.key, held.due_ms, 0)
                    self._count -= 1
                    removed += 1
                    moved += bool(held.due_ms)
        if moved:
            self._see_dues()
        if removed:
            self._keyspace.changed(self)
        return removed

    def set_due(self, name: bytes, due_ms: int) -> None:
        """Set when an existing field expires; 0: never."""
        if not self.number:
            if due_ms:
                self._dues[name] = due_ms
            else:
                self._dues.pop(name, None)
        else:
            txn = self._keyspace.writing()
            held = self._look_for(name)
            assert held is not None
            fields.set_due(txn, self.number, held.key, held.due_ms, due_ms)
            held.due_ms = due_ms
            self._rows.put(txn, held.key, fields.pack(name, held.value, due_ms))
        self._see_dues()
        self._keyspace.changed(self)

    def _see_dues(self) -> None:
        """Update its own due time after a change of its fields'."""
        if self.number:
            self.due_ms = fields.first_due_ms(self._keyspace.writing(), self.number)
        else:
            self.due_ms = min(self._dues.values(), default=0)

    def take_over(self, limit: int) -> int:
        """Remove at most `limit` expired fields; return how many there were."""
        now_ms = self._keyspace.clock_ms()
        if self.number:
            self._keyspace.writing()
            over = fields.over(self._content(), self.number, now_ms, limit)
            return self.remove([field.name for field in over])
        return self.remove([name for name, due_ms in self._dues.items() if due_ms <= now_ms][:limit])

    # -- reading. Expired fields do not exist.

    def get(self, name: bytes) -> bytes | None:
        """Return a field's value; None if there is no such field."""
        if not self.number and not self.due_ms:
            return self._fields.get(name)
        if self.number:
            held = self._held.get(name) or self._look_for(name)
            if held is None or (held.due_ms and held.due_ms <= self._keyspace.clock_ms()):
                return None
            return held.value
        field = self.field(name)
        return None if field is None else field.value

    def field(self, name: bytes) -> Field | None:
        """Return a field with its value and its expiry."""
        if self.number:
            held = self._look_for(name)
            found = None if held is None else Field(name, held.value, held.due_ms)
        else:
            value = self._fields.get(name)
            found = None if value is None else Field(name, value, self._dues.get(name, 0))
        if found is not None and 0 < found.due_ms <= self._keyspace.clock_ms():
            return None
        return found

    def _walk(self) -> Iterator[Field]:
        if self.number:
            return fields.walk(self._content(), self.number)
        return iter([Field(name, value, self._dues.get(name, 0)) for name, value in self._fields.items()])

    def fields(self) -> Iterator[Field]:
        """Yield every field. Change nothing meanwhile."""
        now_ms = self._keyspace.clock_ms()
        for field in self._walk():
            if not 0 < field.due_ms <= now_ms:
                yield field

    def pairs(self) -> list[tuple[bytes, bytes]]:
        """Return every field and its value."""
        if not self.number and not self.due_ms:
            return list(self._fields.items())
        return [(field.name, field.value) for field in self.fields()]

    def page(self, cursor: int, count: int) -> tuple[int, list[Field]]:
        """Do a step of HSCAN: return the next cursor, 0 at the end, and about `count` fields; all of a small one."""
        if not self.number:
            return 0, list(self.fields())
        prefix = fields.prefix(self.number)
        next_cursor, found = digests.page(self._content(), prefix, cursor, count, len(self))
        now_ms = self._keyspace.clock_ms()
        return next_cursor, [field for field in map(fields.unpack, found) if not 0 < field.due_ms <= now_ms]

    def any(self, count: int) -> list[Field]:
        """Return this many random fields, which may repeat, each with the same chance; none if all have expired."""
        if not self.number:
            found = list(self.fields())
            return random.choices(found, k=count) if found else []
        txn, prefix, now_ms = self._content(), fields.prefix(self.number), self._keyspace.clock_ms()
        if not self.due_ms:
            return [fields.unpack(value) for value in digests.many_of(txn, prefix, self._count, count)]
        if next(self.fields(), None) is None:
            return []
        if count * digests.DRAW_STEPS > self._count:
            return random.choices(list(self.fields()), k=count)
        drawn: list[Field] = []
        in_vain = 0
        while len(drawn) < count:
            field = fields.unpack(digests.any_of(txn, prefix, self._count))
            if not 0 < field.due_ms <= now_ms:
                drawn.append(field)
            elif (in_vain := in_vain + 1) > _MOST_IN_VAIN:
                return [*drawn, *random.choices(list(self.fields()), k=count - len(drawn))]
        return drawn

    def sample(self, count: int) -> list[Field]:
        """Return this many different fields; all, if there are fewer."""
        if count >= len(self):
            return list(self.fields())
        if not self.number or self.due_ms:
            found = list(self.fields())
            return random.sample(found, min(count, len(found)))
        prefix = fields.prefix(self.number)
        return [*map(fields.unpack, digests.some_of(self._content(), prefix, self._count, count))]

    # -- the content of a large one

    def _look_for(self, name: bytes) -> HeldField | None:
        """Return a field, even if it has expired."""
        held = self._held.get(name)
        if held is not None:
            return held
        if len(self._held) == self._count:
            return None  # all fields are held
        self._mind_memory()
        key = fields.key(self.number, name)
        stored = self._rows.get(self._keyspace.reading(), key)
        if stored is None:
            return None
        found = fields.unpack(stored)
        return self._hold(name, HeldField(key, found.value, found.due_ms))

    def _hold(self, name: bytes, held: HeldField) -> HeldField:
        self._held[name] = held
        self._rows.held_bytes += _HELD_BYTES + len(name) + len(held.value)
        return held

    def let_go(self) -> None:
        super().let_go()
        self._held = {}
