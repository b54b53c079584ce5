"""Retention: a topic's own limits, rules for names, and when something is due to be removed.

    settings  'S', topic u64                        place (20 bytes), due ms u64, age ms u64, entries u64, bytes u64,
                                                    removed entries u64, removed bytes u64; and where any is
                                                    not 0: most bytes of an entry u64, synced every so many u64; and
                                                    where any of these is not 0: a new segment every so many entries
                                                    u64, or bytes u64, closed u64 (0 or 1)
    due       'S', 0 u64, 'd', due ms u64, topic u64    empty
    rules     'S', 0 u64, 'r'                       of each: age ms u64, entries u64, bytes u64, length u32, pattern
    walk      'S', 0 u64, 'w'                       place: topics from here on have not been held against new rules

No topic has the number 0. A topic has settings if it has limits, of its own or by a rule; `place` is where its key
stands. An age, entries or bytes of 2^64-1 is not the topic's own (a rule sets it, if any does); 0 is no limit. `due` is
when the topic must be looked at, because something in it exceeds a limit by then; 2^64-1 is never. Background work
follows the order of `due`: one look-up says whether there is anything to do, however many topics there are, and a
writer that appends too much makes it due in the same commit, so that any process can do the work.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple

from rlite_pubsub.storage import databases
from rlite_pubsub.storage.databases import TOPIC_SETTINGS
from rlite_pubsub.storage.environment import Txn

UNSAID = NEVER = 2**64 - 1
_LARGE_BYTES = 1 << 20
_NO_TOPIC = TOPIC_SETTINGS + bytes(8)
_DUE = _NO_TOPIC + b"d"
_RULES = _NO_TOPIC + b"r"
_WALK = _NO_TOPIC + b"w"

_TOPIC = Struct(">Q")
_DUE_KEY = Struct(">QQ")
_SETTINGS = Struct(">20s6Q")
_APPENDS = Struct(">2Q")
_SEGMENTED = Struct(">5Q")
_RULE = Struct(">3QI")


class RetentionLimits(NamedTuple):
    """How much of a topic is kept: entries younger than `age_ms`, at most this many of them, and this many bytes."""

    age_ms: int = 0
    entries: int = 0
    size_bytes: int = 0


NO_LIMITS = RetentionLimits()
NOTHING_SAID = RetentionLimits(UNSAID, UNSAID, UNSAID)


class AppendRules(NamedTuple):
    """The rules for appended entries; 0: none."""

    max_entry_bytes: int = 0
    """The most bytes that the fields and values of one entry may have together."""
    sync_every: int = 0
    """After every this many entries, everything committed is brought to the disk before the append is answered."""
    segment_entries: int = 0
    """A push to a queue that has this many entries under its own key begins a new segment."""
    segment_bytes: int = 0
    is_closed: int = 0
    """1: it is a closed segment of a queue, and takes nothing more."""


NO_APPEND_RULES = AppendRules()


class TopicSettings(NamedTuple):
    """The settings of one topic."""

    place: bytes
    due_ms: int = NEVER
    own: RetentionLimits = NOTHING_SAID
    removed_entries: int = 0
    removed_bytes: int = 0
    appends: AppendRules = NO_APPEND_RULES


class Rule(NamedTuple):
    """The limits of topics whose name matches a pattern, unless they have their own."""

    pattern: bytes
    limits: RetentionLimits


def get(txn: Txn, topic: int) -> TopicSettings | None:
    found = txn.get(TOPIC_SETTINGS + _TOPIC.pack(topic))
    if found is None:
        return None
    place, due_ms, age_ms, entries, size_bytes, removed_entries, removed_bytes = _SETTINGS.unpack_from(found)
    own = RetentionLimits(age_ms, entries, size_bytes)
    appends = NO_APPEND_RULES
    if len(found) > _SETTINGS.size:
        layout = _APPENDS if len(found) == _SETTINGS.size + _APPENDS.size else _SEGMENTED
        appends = AppendRules(*layout.unpack_from(found, _SETTINGS.size))
    return TopicSettings(place, due_ms, own, removed_entries, removed_bytes, appends)


def put(txn: Txn, topic: int, settings: TopicSettings, before: TopicSettings | None) -> None:
    """Write a topic's settings; `before` are its present ones."""
    if before is None or before.due_ms != settings.due_ms:
        if before is not None:
            remove_due(txn, before.due_ms, topic)
        if settings.due_ms != NEVER:
            txn.put(_DUE + _DUE_KEY.pack(settings.due_ms, topic), b"")
    place, due_ms, own, removed_entries, removed_bytes, appends = settings
    packed = _SETTINGS.pack(place, due_ms, *own, removed_entries, removed_bytes)
    if any(appends[2:]):
        packed += _SEGMENTED.pack(*appends)
    elif appends != NO_APPEND_RULES:
        packed += _APPENDS.pack(*appends[:2])
    txn.put(TOPIC_SETTINGS + _TOPIC.pack(topic), packed)


def remove_due(txn: Txn, due_ms: int, topic: int) -> None:
    if due_ms != NEVER:
        txn.delete(_DUE + _DUE_KEY.pack(due_ms, topic))


def first_due(txn: Txn) -> tuple[int, int] | None:
    """Return (when, topic) of the first one that is due."""
    cursor = txn.cursor()
    if not cursor.set_range(_DUE):
        return None
    key = cursor.key()
    return _DUE_KEY.unpack_from(key, len(_DUE)) if key.startswith(_DUE) else None


def packed_rules(txn: Txn) -> bytes:
    """Return the stored rules: different bytes are different rules."""
    return txn.get(_RULES) or b""


def unpack_rules(packed: bytes) -> tuple[Rule, ...]:
    at, found = 0, []
    while at < len(packed):
        age_ms, entries, size_bytes, length = _RULE.unpack_from(packed, at)
        at += _RULE.size
        found.append(Rule(packed[at : at + length], RetentionLimits(age_ms, entries, size_bytes)))
        at += length
    return tuple(found)


def put_rules(txn: Txn, rules: Sequence[Rule]) -> None:
    """Write new rules; all topics are to be checked against them."""
    packed = [_RULE.pack(*rule.limits, len(rule.pattern)) + rule.pattern for rule in rules]
    txn.put(_RULES, b"".join(packed))
    put_walk(txn, b"")


def walk(txn: Txn) -> bytes | None:
    """Return the place from which topics have not been checked against the rules; None if all have."""
    return txn.get(_WALK)


def put_walk(txn: Txn, place: bytes | None) -> None:
    if place is None:
        txn.delete(_WALK)
    else:
        txn.put(_WALK, place)


def keys_from(txn: Txn, place: bytes, limit: int) -> list[tuple[bytes, bytes]]:
    """Return (place, record) of at most `limit` keys of any type, from a place on; fewer if they are large."""
    found, size = [], 0
    for key, value in databases.items_from(txn, databases.KEYS, databases.KEYS + place):
        found.append((key[len(databases.KEYS) :], value))
        size += len(value)
        if len(found) == limit or size > _LARGE_BYTES:
            break
    return found
