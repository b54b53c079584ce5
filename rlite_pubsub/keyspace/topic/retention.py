"""Retention: what is too old or too much of a topic goes, in the background, a little at a time.

Promises:
 - Exact to a second: an entry stays as long as its topic's limits let it, and not a second longer. Its age is its id's.
   Of the cold part whole blocks go, once all of their entries are too old or too many, and nothing is read for it; and
   so do closed segments of a queue, wherever they are.
 - A step removes at most `STEP_CHUNKS` chunks of entries, in a transaction of its own: no loop is stalled by it.
 - What a group that holds has not acknowledged stays, whatever the limits say, and all that came after it.
 - What is removed is counted (law 8), and readers that come back can be told how much it was (Topic.trimmed).

An append makes a topic due in the same commit (`schedule`), and any process that has the store may take the next
step: each looks again at what is due in its own write transaction, so that two of them remove nothing twice.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import islice
from typing import TYPE_CHECKING

from rlite_pubsub.keyspace.topic.home import Home
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.storage.groups import pending, released
from rlite_pubsub.storage.keys import key_records
from rlite_pubsub.storage.keys.key_records import KeyRecord
from rlite_pubsub.storage.topics import chunks, entry_ids, segments, topic_settings
from rlite_pubsub.storage.topics.entry_ids import Id
from rlite_pubsub.storage.topics.topic_settings import (
    NEVER,
    NO_APPEND_RULES,
    NOTHING_SAID,
    AppendRules,
    RetentionLimits,
    TopicSettings,
)

if TYPE_CHECKING:
    from rlite_pubsub.keyspace.topic.rules import Rules
    from rlite_pubsub.storage.environment import Txn
    from rlite_pubsub.storage.topics.chunks import Chunk

STEP_CHUNKS = 64
STEP_BYTES = 1 << 20
"""After so much a step ends, too: an entry larger than a page has a chunk to itself."""
STEP_KEYS = 100
"""Held against new rules in one step."""
HELD_STEPS = 32
"""In one turn, for a topic whose limit holds at each commit: more than a turn appends."""
HELD_MS = 500
"""How often it is looked whether a group that holds has gone on."""


class Retention:
    """Trims the topics of a part of a keyspace."""

    def __init__(self, keyspace: Home, rules: Rules) -> None:
        self._keyspace = keyspace
        self.rules = rules
        self.removed_entries = 0  # by this process
        self.removed_bytes = 0

    # -- a topic's settings

    def settings(self, topic: Topic) -> TopicSettings | None:
        """Return a topic's stored settings; None if it has no limits and has never lost anything to any."""
        if not topic.settings_are_known:
            topic.know_settings(topic_settings.get(self._keyspace.reading(), topic.number))
        return topic.settings

    def limits(self, topic: Topic) -> RetentionLimits:
        """Return the limits that apply to a topic."""
        settings = self.settings(topic)
        return self.rules.limits(settings.own if settings is not None else NOTHING_SAID, topic.name)

    def set_own(self, topic: Topic, own: RetentionLimits) -> None:
        """Give a topic that `for_change` has found limits of its own. They hold from now on."""
        txn = self._keyspace.writing()
        self.rules.follow(txn)
        topic.settle()
        before = self.settings(topic)
        due_ms = self._due_ms(topic, self.rules.limits(own, topic.name), None)
        self._put(txn, topic, (before or TopicSettings(topic.place))._replace(own=own, due_ms=due_ms), before)
        self._keyspace.keep(topic)

    def set_append_rules(self, topic: Topic, rules: AppendRules) -> None:
        """Set the rules for entries that are appended from now on, like `set_own`."""
        txn = self._keyspace.writing()
        before = self.settings(topic)
        self._put(txn, topic, (before or TopicSettings(topic.place))._replace(appends=rules), before)
        topic.has_append_rules = rules != NO_APPEND_RULES
        self._keyspace.keep(topic)

    def append_rules(self, topic: Topic) -> AppendRules:
        """Return the rules for appended entries."""
        settings = self.settings(topic) if topic.has_append_rules else None
        return settings.appends if settings is not None else NO_APPEND_RULES

    def count(self, topic: Topic, before: int) -> None:
        """Have the turn's answers wait for the disk, where a topic has passed a multiple of its `sync_every`."""
        every = self.append_rules(topic).sync_every
        if every and topic.entries_added // every > before // every:
            self._keyspace.turn.want_sync()

    def copy(self, source: Topic, target: Topic) -> None:
        """A new topic gets what another one was told."""
        settings = self.settings(source)
        target.know_settings(None)
        if settings is not None and (settings.own != NOTHING_SAID or settings.appends != NO_APPEND_RULES):
            fresh = TopicSettings(target.place, own=settings.own, appends=settings.appends)
            self._put(self._keyspace.writing(), target, fresh, None)
            target.has_append_rules = source.has_append_rules

    def _put(self, txn: Txn, topic: Topic, settings: TopicSettings, before: TopicSettings | None) -> None:
        topic_settings.put(txn, topic.number, settings, before)
        topic.know_settings(settings)

    # -- when it is due

    def schedule(self, txn: Txn, topic: Topic) -> None:
        """A topic is being written: it becomes due where it has too much now, or has something that will be too old."""
        settings = topic.settings
        is_placed = topic.is_stored  # neither new nor under a new name
        if settings is None and topic.settings_are_known and is_placed:
            return
        before = settings = self.settings(topic)
        if settings is None and is_placed:
            return
        rules = self.rules
        rules.follow(txn)
        if settings is None:
            if rules.of(topic.name) is None:
                return
            settings = TopicSettings(topic.place)
        limits = rules.limits(settings.own, topic.name)
        if settings.place == topic.place:
            due_ms = min(settings.due_ms, self._due_ms(topic, limits, settings))
        else:
            due_ms = self._due_ms(topic, limits, None)
        if due_ms != settings.due_ms or settings.place != topic.place or before is None:
            self._put(txn, topic, settings._replace(due_ms=due_ms, place=topic.place), before)

    def _due_ms(self, topic: Topic, limits: RetentionLimits, settings: TopicSettings | None) -> int:
        """Return when something of the topic is too much. `settings` saves a look: it need not be sooner."""
        if topic.has_segments and (due_ms := self._segment_due_ms(topic, limits)) != NEVER:
            return due_ms
        length = topic.length
        if not length:
            return NEVER
        age_ms, entries, size_bytes = limits
        spared, spared_bytes, oldest_ms = 0, 0, None  # as long as they are in the first block
        if topic.has_cold and (block := topic.cold.first_block) is not None:
            state = topic.cold.state
            spared, spared_bytes, oldest_ms = state.first_live - 1, state.first_bytes - 1, block.last[0]
        if (entries and length - spared > entries) or (size_bytes and topic.size_bytes - spared_bytes > size_bytes):
            return self._keyspace.clock_ms()
        if not age_ms or (settings is not None and settings.due_ms != NEVER):
            return NEVER
        return min((topic.first_id[0] if oldest_ms is None else oldest_ms) + age_ms + 1, NEVER)

    def _segment_due_ms(self, topic: Topic, limits: RetentionLimits) -> int:
        """Return when the oldest closed segment of a queue is too much: it goes whole, as a block does."""
        txn = self._keyspace.reading()
        oldest = segments.oldest(txn, topic.number)
        if oldest is None:
            return NEVER
        closed, closed_bytes = segments.totals(txn, topic.number)
        age_ms, entries, size_bytes = limits
        spared = closed + topic.length - oldest.entries
        spared_bytes = closed_bytes + topic.size_bytes - oldest.size_bytes
        if (entries and spared >= entries) or (size_bytes and spared_bytes >= size_bytes):
            return self._keyspace.clock_ms()
        return min(oldest.last[0] + age_ms + 1, NEVER) if age_ms else NEVER

    # -- what is due

    def step(self) -> bool:
        """Do a little of what is due, to be committed with the turn. Whether there is more. Raises StoreError."""
        keyspace = self._keyspace
        txn = keyspace.settle()
        self.rules.follow(txn)
        due = topic_settings.first_due(txn)
        if due is not None and due[0] <= keyspace.clock_ms():
            self._trim_due()
            return True
        if topic_settings.walk(txn) is not None:
            self._walk()
            return True
        return False

    def _trim_due(self) -> None:
        """Trim the topic that is due first, if it still is."""
        keyspace = self._keyspace
        txn = keyspace.writing()
        self.rules.follow(txn)
        due = topic_settings.first_due(keyspace.settle())
        if due is None or due[0] > keyspace.clock_ms():
            return
        due_ms, number = due
        settings = topic_settings.get(txn, number)
        topic = self._topic_at(settings.place, number) if settings is not None else None
        if topic is None or settings is None:
            topic_settings.remove_due(txn, due_ms, number)
            return
        topic.know_settings(settings)
        self._trim(txn, topic, settings, due_ms)

    def hold(self, topic: Topic) -> None:
        """Trim a topic that `for_change` has found in this turn, if it has too much; more than `HELD_STEPS` are left to
        later turns. Raises StoreError."""
        txn = self._keyspace.writing()
        self.rules.follow(txn)
        topic.settle()
        for _ in range(HELD_STEPS):
            settings, before = self.settings(topic), topic.size_bytes
            if settings is None or not 0 < self.rules.limits(settings.own, topic.name).size_bytes < before:
                return
            self._trim(txn, topic, settings, self._keyspace.clock_ms())
            if topic.size_bytes == before:  # a group holds
                return

    def _trim(self, txn: Txn, topic: Topic, settings: TopicSettings, due_ms: int) -> None:
        """Do a step for a topic that was due at this time, and note when it is due next."""
        keyspace = self._keyspace
        limits = self.rules.limits(settings.own, topic.name)
        if topic.has_segments and self._segment_due_ms(topic, limits) <= keyspace.clock_ms():
            count, removed_bytes, state = self._lose_segment(txn, topic)
        else:
            count, state = self._excess(txn, topic, limits)
            size_before = topic.size_bytes
            if count:
                topic.retain_less(count)
                keyspace.news.listener.trimmed(topic.database, topic.name)
            removed_bytes = size_before - topic.size_bytes
        self.removed_entries += count
        self.removed_bytes += removed_bytes
        now_ms = keyspace.clock_ms()
        if state == "more":
            next_ms = due_ms
        elif state == "held":
            next_ms = now_ms + HELD_MS
        else:
            next_ms = self._due_ms(topic, limits, None)
        if next_ms <= due_ms and not count:
            next_ms = now_ms + 1  # its entries are older than they can be: the clock has gone back
        self._put(
            keyspace.writing(),
            topic,
            settings._replace(
                due_ms=next_ms,
                removed_entries=settings.removed_entries + count,
                removed_bytes=settings.removed_bytes + removed_bytes,
            ),
            settings,
        )

    def _lose_segment(self, txn: Txn, topic: Topic) -> tuple[int, int, str]:
        """Remove the oldest closed segment; return how many entries that were, how many bytes, and whether there may be
        `more`. It stays if a group that holds needs it, and if the queue has become another member's."""
        oldest, held = segments.oldest(self._keyspace.settle(), topic.number), _held_from(txn, topic)
        assert oldest is not None
        if (held is not None and held <= oldest.last) or not self._keyspace.is_ours(topic.name):
            return 0, 0, "held"
        topic.lose_segment(oldest)
        return oldest.entries, oldest.size_bytes, "more"

    def _excess(self, txn: Txn, topic: Topic, limits: RetentionLimits) -> tuple[int, str]:
        """Return how many entries are too many, as far as a step looks; and whether there are `more` of them, the next
        one is `held`, or that is `enough`."""
        topic.settle()
        age_ms, entries, size_bytes = limits
        too_many = topic.length - entries if entries else 0
        too_large = topic.size_bytes - size_bytes if size_bytes else 0
        oldest = entry_ids.pack((max(self._keyspace.clock_ms() - age_ms, 0), 0)) if age_ms else b""
        held = _held_from(txn, topic)
        if topic.has_cold:
            return _excess_block(topic, too_many, too_large, oldest, held)
        held_from = entry_ids.pack(held) if held is not None else None
        count = seen_bytes = 0
        for chunk in islice(chunks.forward(txn, topic.number, entry_ids.MIN), STEP_CHUNKS):
            wanted = max(
                min(too_many - count, chunk.count),
                _leading(chunk, too_large) if too_large > 0 else 0,
                chunk.place_of(oldest) if oldest else 0,
            )
            allowed = min(wanted, chunk.place_of(held_from)) if held_from is not None else wanted
            count += max(allowed, 0)
            if allowed < wanted:
                return count, "held"
            if wanted < chunk.count:
                return count, "enough"
            too_large -= chunk.ends[-1]
            seen_bytes += len(chunk)
            if seen_bytes >= STEP_BYTES:
                break
        return count, "more" if count < topic.length else "enough"

    def _topic_at(self, place: bytes, number: int) -> Topic | None:
        """Return the topic of this number, to be changed, if its key is still there."""
        keyspace = self._keyspace
        txn = keyspace.settle()
        stored = key_records.get(txn, place)
        return self._to_change(place, stored, number) if stored is not None else None

    def _to_change(self, place: bytes, stored: KeyRecord, number: int | None = None) -> Topic | None:
        keyspace = self._keyspace
        space = key_records.space_of(place)
        databases = {found.number: database for database, found in key_records.spaces(keyspace.settle()).items()}
        database = databases.get(space)
        if database is None or stored.type != key_records.TOPIC:
            return None
        topic = keyspace.names.for_change(database, stored.name)
        if not isinstance(topic, Topic) or (number is not None and topic.number != number):
            return None
        return topic

    # -- new rules

    def _walk(self) -> None:
        """Hold a few more topics against the rules."""
        keyspace = self._keyspace
        txn = keyspace.writing()
        self.rules.follow(txn)
        place = topic_settings.walk(keyspace.settle())
        if place is None:
            return
        found = topic_settings.keys_from(txn, place, STEP_KEYS)
        for at, value in found:
            stored = key_records.unpack(value)
            topic = self._to_change(at, stored) if stored.type == key_records.TOPIC else None
            if topic is not None:
                self._hold_against_rules(txn, topic)
        topic_settings.put_walk(txn, found[-1][0] + b"\0" if found else None)

    def _hold_against_rules(self, txn: Txn, topic: Topic) -> None:
        before = self.settings(topic)
        if before is None and self.rules.of(topic.name) is None:
            return
        settings = before or TopicSettings(topic.place)
        due_ms = self._due_ms(topic, self.rules.limits(settings.own, topic.name), None)
        if before is None or due_ms != before.due_ms:
            self._put(txn, topic, settings._replace(due_ms=due_ms), before)


def _excess_block(topic: Topic, too_many: int, too_large: int, oldest: bytes, held: Id | None) -> tuple[int, str]:
    """As `_excess`, of the cold part: the first block goes whole or not at all."""
    state, block = topic.cold.state, topic.cold.first_block
    if block is None:
        return 0, "enough"
    is_excess = too_many >= state.first_live or too_large >= state.first_bytes or entry_ids.pack(block.last) < oldest
    if not is_excess or block.last > state.sealed_to:  # one that is being sealed is yet to be whole
        return 0, "enough"
    if held is not None and held <= block.last:
        return 0, "held"
    return state.first_live, "more"


def _leading(chunk: Chunk, excess_bytes: int) -> int:
    """Return how many of its first entries make up this many bytes; all of them if they do not."""
    return min(bisect_left(chunk.ends, excess_bytes) + 1, chunk.count)


def _held_from(txn: Txn, topic: Topic) -> Id | None:
    """Return the first id that a group which holds may still need; None: nobody holds."""
    if not topic.group_count:
        return None
    bounds = []
    for group in topic.stored_groups(txn):
        if group.settings.holds:
            bounds.append(entry_ids.after(group.last_id) or entry_ids.MAX)
            oldest = next(pending.walk(txn, pending.prefix(topic.number, group.number)), None)
            given_back = released.first_id(txn, released.prefix(topic.number, group.number))
            bounds += [entry_ids.unpack(ids) for ids in (oldest.ids if oldest else None, given_back) if ids is not None]
    return min(bounds, default=None)
