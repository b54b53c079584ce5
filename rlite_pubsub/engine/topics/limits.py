"""A topic's own settings, its limits above all: the arguments of TOPIC.CREATE and TOPIC.CONFIG, and their answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from rlite_pubsub.engine.settings.retention_words import age_ms, count, size_bytes
from rlite_pubsub.engine.table import Arg
from rlite_pubsub.keyspace.topic.retention import Retention
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.protocol.errors import SYNTAX, CommandError
from rlite_pubsub.protocol.replies import Reply
from rlite_pubsub.storage.topics.topic_settings import (
    NO_APPEND_RULES,
    NOTHING_SAID,
    UNSAID,
    AppendRules,
    RetentionLimits,
)


class _Option(NamedTuple):
    """One option: the field that it sets, how its value is read, and the error for a bad value."""

    field: str
    read: Callable[[bytes], int | None]
    wanted: str
    has_default: bool = True
    """Rules of retention can set it, too."""


class TopicWords(NamedTuple):
    """The settings of a topic's own."""

    own: RetentionLimits = NOTHING_SAID
    appends: AppendRules = NO_APPEND_RULES


_OPTIONS = {
    b"RETAIN-AGE": _Option("age_ms", age_ms, "an age like 7d, or milliseconds"),
    b"RETAIN-LENGTH": _Option("entries", count, "a number of entries"),
    b"RETAIN-BYTES": _Option("size_bytes", size_bytes, "a size like 512mb, or bytes"),
    b"MAX-ENTRY-BYTES": _Option(
        "max_entry_bytes", size_bytes, "a size like 64kb, a number of bytes", has_default=False
    ),
    b"SYNC-EVERY": _Option("sync_every", count, "a number of entries", has_default=False),
    b"SEGMENT-LENGTH": _Option("segment_entries", count, "a number of entries", has_default=False),
    b"SEGMENT-BYTES": _Option("segment_bytes", size_bytes, "a size like 512mb, or bytes", has_default=False),
}
_WORDS = {b"NONE": 0, b"0": 0, b"DEFAULT": UNSAID}

ARGUMENTS = (
    Arg("age", "string", token="RETAIN-AGE", optional=True),
    Arg("count", "string", token="RETAIN-LENGTH", optional=True),
    Arg("size", "string", token="RETAIN-BYTES", optional=True),
    Arg("entry-size", "string", token="MAX-ENTRY-BYTES", optional=True),
    Arg("entries", "string", token="SYNC-EVERY", optional=True),
    Arg("segment-entries", "string", token="SEGMENT-LENGTH", optional=True),
    Arg("segment-size", "string", token="SEGMENT-BYTES", optional=True),
)


def take_words(words: list[bytes], told: TopicWords) -> TopicWords:
    """Return a topic's settings, changed by these words. Raises CommandError."""
    if len(words) % 2:
        raise CommandError(SYNTAX)
    said: dict[str, int] = {}
    for word, value in zip(words[::2], words[1::2], strict=True):
        option = _OPTIONS.get(word.upper())
        if option is None or option.field in said:
            raise CommandError(SYNTAX)
        limit = _WORDS.get(value.upper())
        if limit is None:
            limit = count(value) or option.read(value)
        if limit is None or (limit == UNSAID and not option.has_default):
            others = b", none or default" if option.has_default else b" or none"
            raise CommandError(b"ERR %b must be %b%b" % (word.upper(), option.wanted.encode(), others))
        said[option.field] = limit
    appends = {field: said.pop(field) for field in AppendRules._fields if field in said}
    return TopicWords(told.own._replace(**said), told.appends._replace(**appends))


def words_of(topic: Topic) -> TopicWords:
    """Return a topic's present settings."""
    settings = retention_of(topic).settings(topic)
    return TopicWords() if settings is None else TopicWords(settings.own, settings.appends)


def tell(topic: Topic, told: TopicWords) -> None:
    """Give new settings to a topic that `for_change` has found."""
    before, retention = words_of(topic), retention_of(topic)
    if told.own != before.own:
        retention.set_own(topic, told.own)
    if told.appends != before.appends:
        retention.set_append_rules(topic, told.appends)


def retention_of(topic: Topic) -> Retention:
    retention = topic.keyspace.retention
    assert isinstance(retention, Retention)
    return retention


def limits_of(topic: Topic) -> dict[Reply, Reply]:
    """Return the limits that apply to a topic; 0 is no limit. The rule is the pattern that matches its name, even if
    the topic's own limits override it."""
    retention = retention_of(topic)
    retention.rules.follow(topic.keyspace.reading())
    age, entries, size = retention.limits(topic)
    appends = retention.append_rules(topic)
    return {
        b"retain-age": age,
        b"retain-length": entries,
        b"retain-bytes": size,
        b"retain-rule": retention.rules.pattern_of(topic.name),
        b"max-entry-bytes": appends.max_entry_bytes,
        b"sync-every": appends.sync_every,
        b"segment-length": appends.segment_entries,
        b"segment-bytes": appends.segment_bytes,
    }
