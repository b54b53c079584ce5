"""The limits of topics among the arguments of TOPIC.CREATE and TOPIC.CONFIG, and as these answer them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from rlite_pubsub.engine.settings.retention_words import age_ms, count, size_bytes
from rlite_pubsub.engine.table import Arg
from rlite_pubsub.keyspace.topic.retention import Retention
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.protocol.errors import SYNTAX, CommandError
from rlite_pubsub.protocol.replies import Reply
from rlite_pubsub.storage.topics.topic_settings import UNSAID, RetentionLimits


class _Option(NamedTuple):
    """One option: the limit that it sets, how its value is read, and what is said of one that can't be."""

    field: str
    read: Callable[[bytes], int | None]
    wanted: str


_OPTIONS = {
    b"RETAIN-AGE": _Option("age_ms", age_ms, "an age like 7d, or milliseconds"),
    b"RETAIN-LENGTH": _Option("entries", count, "a number of entries"),
    b"RETAIN-BYTES": _Option("size_bytes", size_bytes, "a size like 512mb, or bytes"),
}
_WORDS = {b"NONE": 0, b"0": 0, b"DEFAULT": UNSAID}

ARGUMENTS = (
    Arg("age", "string", token="RETAIN-AGE", optional=True),
    Arg("count", "string", token="RETAIN-LENGTH", optional=True),
    Arg("size", "string", token="RETAIN-BYTES", optional=True),
)


def take_limits(words: list[bytes], own: RetentionLimits) -> RetentionLimits:
    """A topic's own limits, changed as these words say. Raises CommandError."""
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
        if limit is None:
            raise CommandError(b"ERR %b must be %b, none or default" % (word.upper(), option.wanted.encode()))
        said[option.field] = limit
    return own._replace(**said)


def retention_of(topic: Topic) -> Retention:
    retention = topic.keyspace.retention
    assert isinstance(retention, Retention)
    return retention


def limits_of(topic: Topic) -> dict[Reply, Reply]:
    """What holds for a topic; 0 is no limit. The rule is the pattern that matches its name, whether it says anything
    or the topic's own limits do."""
    retention = retention_of(topic)
    retention.rules.follow(topic.keyspace.reading())
    age, entries, size = retention.limits(topic)
    return {
        b"retain-age": age,
        b"retain-length": entries,
        b"retain-bytes": size,
        b"retain-rule": retention.rules.pattern_of(topic.name),
    }
