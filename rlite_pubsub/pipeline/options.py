"""The options of the source and of the sink. Unknown ones are refused by name: a typo must not read everything.

Names are those of Spark's Kafka source where there is one, in any case. Secrets are in no repr, error or plan.

`url` is a server (redis://…) or a store's folder, which each process of Spark's then opens by itself. `coldPath` alone
is a cold store without either: what its manifests say is read, and nothing else is asked.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import quote

from rlite_pubsub import measures
from rlite_pubsub.pipeline.errors import OptionRefused
from rlite_pubsub.pipeline.field_columns import FieldColumn, field_columns
from rlite_pubsub.storage.topics import entry_ids
from rlite_pubsub.storage.topics.entry_ids import Id

DEFAULT_URL = "redis://127.0.0.1:6379/0"
EARLIEST, LATEST = "earliest", "latest"
_SERVERS = ("redis://", "rediss://", "unix://")
STORE = "rlite://"
"""Of a folder: `rlite:///absolute/path`."""
FAIL_FAST, PERMISSIVE = "FAILFAST", "PERMISSIVE"
_KNOWN = (
    "url",
    "username",
    "passwordFile",
    "coldPath",
    "subscribe",
    "subscribePattern",
    "startingOffsets",
    "endingOffsets",
    "startingTimestamp",
    "endingTimestamp",
    "maxOffsetsPerTrigger",
    "minPartitions",
    "failOnDataLoss",
    "includeHeaders",
    "fields",
    "inferFields",
    "mode",
    "allowMissingTopic",
    "ranges",
    "topic",
    "keepIds",
    "application",
    "batch",
)
_SPARKS = frozenset(("checkpointlocation", "queryname", "path"))
"""What Spark itself hands over."""
_NAMES = {name.lower(): name for name in _KNOWN}
_ID = re.compile(r"([0-9]{1,20})-([0-9]{1,20})")
_HOST_AND_PORT = re.compile(r"[^/\s]+:[0-9]{1,5}")

Bound = str | dict[str, str]
"""`earliest`, `latest`, or for each topic the id of the last entry that is done."""


@dataclass(frozen=True)
class SourceOptions:
    """All of them, read and checked."""

    url: str | None = field(default=DEFAULT_URL, repr=False)
    """None: there is only the cold store."""
    username: str | None = None
    password_file: str | None = None
    cold_path: str | None = None
    subscribe: tuple[str, ...] = ()
    subscribe_pattern: str | None = None
    starting: Bound | None = None
    ending: Bound | None = None
    starting_ms: int | None = None
    ending_ms: int | None = None
    max_offsets: int | None = None
    min_partitions: int | None = None
    fail_on_data_loss: bool = True
    include_headers: bool | None = None
    """None: where no fields are asked for."""
    fields: tuple[FieldColumn, ...] = ()
    infer_fields: bool = False
    is_permissive: bool = False
    """What is no value of its column's type is null, and not an error."""
    ranges: tuple[tuple[bytes, Id, Id], ...] | None = None
    """What read_topic (topic_frame.py) leaves to the source: a topic, above which id, up to and with which."""
    allow_missing: bool = False
    """A topic that is named and does not exist has no entries, and is no error."""
    topic: str | None = None
    keep_ids: bool = False
    """The sink's column `id` holds entries' ids, though it does not come from the source."""
    application: str | None = None
    batch: int | None = None

    @property
    def is_subscribed(self) -> bool:
        """Return whether topics are named that are to be read."""
        return bool(self.subscribe) or self.subscribe_pattern is not None

    @property
    def folder(self) -> str | None:
        """The store's, where there is no server between."""
        return self.url if self.url is not None and self.url.startswith(STORE) else None

    @classmethod
    def of(cls, given: Mapping[str, str]) -> SourceOptions:
        """Raises OptionRefused."""
        found = {}
        for name, value in given.items():
            if name.lower() not in _NAMES and name.lower() not in _SPARKS:
                raise OptionRefused(f"unknown option {name!r}; there are {', '.join(_KNOWN)}")
            found[name.lower()] = value
        if "path" in found:
            raise OptionRefused("load() and save() take no path: say subscribe, or topic")
        options = cls(
            url=_url(found.get("url"), is_optional="coldpath" in found),
            username=found.get("username"),
            password_file=found.get("passwordfile"),
            cold_path=found.get("coldpath"),
            subscribe=tuple(dict.fromkeys(filter(None, map(str.strip, found.get("subscribe", "").split(","))))),
            subscribe_pattern=_pattern(found.get("subscribepattern")),
            starting=_bound("startingOffsets", found.get("startingoffsets")),
            ending=_bound("endingOffsets", found.get("endingoffsets")),
            starting_ms=_moment("startingTimestamp", found.get("startingtimestamp")),
            ending_ms=_moment("endingTimestamp", found.get("endingtimestamp")),
            max_offsets=_number("maxOffsetsPerTrigger", found.get("maxoffsetspertrigger"), 1),
            min_partitions=_number("minPartitions", found.get("minpartitions"), 1),
            fail_on_data_loss=_flag("failOnDataLoss", found.get("failondataloss", "true")),
            include_headers=_flag("includeHeaders", found["includeheaders"]) if "includeheaders" in found else None,
            fields=field_columns(found.get("fields", "")),
            infer_fields=_flag("inferFields", found.get("inferfields", "false")),
            is_permissive=_mode(found.get("mode", FAIL_FAST)) == PERMISSIVE,
            ranges=_ranges(found["ranges"]) if "ranges" in found else None,
            allow_missing=_flag("allowMissingTopic", found.get("allowmissingtopic", "false")),
            topic=found.get("topic"),
            keep_ids=_flag("keepIds", found.get("keepids", "false")),
            application=found.get("application"),
            batch=_number("batch", found.get("batch"), 0),
        )
        if options.starting is not None and options.starting_ms is not None:
            raise OptionRefused("startingOffsets and startingTimestamp: only one of them can be given")
        if options.ending is not None and options.ending_ms is not None:
            raise OptionRefused("endingOffsets and endingTimestamp: only one of them can be given")
        if options.fields and options.infer_fields:
            raise OptionRefused("fields and inferFields: only one of them can be given")
        return options

    def for_reading(self) -> SourceOptions:
        """The options of a batch, which reads from the earliest entry to the latest if nothing else is said. Raises
        OptionRefused."""
        self._refuse("a batch", maxOffsetsPerTrigger=self.max_offsets)
        if self.starting == LATEST:
            raise OptionRefused("startingOffsets: latest has no meaning for a batch")
        if self.ending == EARLIEST:
            raise OptionRefused("endingOffsets: earliest has no meaning for a batch")
        return self._for_any_reading()

    def for_streaming(self) -> SourceOptions:
        """The options of a stream, which reads from the latest entry on if nothing else is said. Raises OptionRefused.
        """
        self._refuse("a stream", endingOffsets=self.ending, endingTimestamp=self.ending_ms)
        if self.url is None:
            raise OptionRefused("coldPath: history alone can't be streamed; give url, too")
        return self._for_any_reading()

    def _for_any_reading(self) -> SourceOptions:
        self._refuse(
            "reading", topic=self.topic, application=self.application, batch=self.batch, keepIds=self.keep_ids or None
        )
        if self.ranges is not None:
            return self
        if bool(self.subscribe) == (self.subscribe_pattern is not None):
            raise OptionRefused("give one of subscribe and subscribePattern")
        for name, bound in (("startingOffsets", self.starting), ("endingOffsets", self.ending)):
            if isinstance(bound, dict) and self.subscribe and bound.keys() - set(self.subscribe):
                raise OptionRefused(f"{name}: {sorted(bound.keys() - set(self.subscribe))} are not subscribed to")
        return self

    def for_writing(self) -> SourceOptions:
        """Raises OptionRefused."""
        self._refuse(
            "writing",
            subscribe=self.subscribe or None,
            subscribePattern=self.subscribe_pattern,
            startingOffsets=self.starting,
            endingOffsets=self.ending,
            startingTimestamp=self.starting_ms,
            endingTimestamp=self.ending_ms,
            maxOffsetsPerTrigger=self.max_offsets,
            minPartitions=self.min_partitions,
            coldPath=self.cold_path,
            includeHeaders=self.include_headers,
            fields=self.fields or None,
            inferFields=self.infer_fields or None,
        )
        if self.batch is not None and self.application is None:
            raise OptionRefused("batch: has no meaning without application")
        return replace(self, topic=self.topic or None)

    def _refuse(self, where: str, **given: object) -> None:
        for name, value in given.items():
            if value is not None:
                raise OptionRefused(f"{name}: is not for {where}")


def _url(said: str | None, *, is_optional: bool) -> str | None:
    """A server's as it is, a folder's with its absolute path: tasks have a working directory of their own."""
    if said is None:
        return None if is_optional else DEFAULT_URL
    if said.startswith((*_SERVERS, STORE)):
        return _absolute(said) if said.startswith(STORE) else said
    if "://" in said:
        raise OptionRefused(f"url: begins with {', '.join(_SERVERS)} or {STORE}, or is the folder of a store")
    if _HOST_AND_PORT.fullmatch(said) and not os.path.exists(said):
        return f"redis://{said}"
    return f"{STORE}{quote(os.path.abspath(said))}"


def _absolute(url: str) -> str:
    from rlite_pubsub.embedded.options import options_of

    try:
        folder = options_of(url)["path"]
    except ValueError as failure:
        raise OptionRefused(f"url: {failure}") from failure
    _, mark, query = url.partition("?")
    return f"{STORE}{quote(folder)}{mark}{query}"


def id_of(text: str) -> Id:
    """Return an id in an offset. Raises ValueError."""
    found = _ID.fullmatch(text)
    if found is None or max(parts := (int(found[1]), int(found[2]))) > entry_ids.PART_MAX:
        raise ValueError(f"{text!r} is not an id such as 1700000000000-0")
    return parts


def _bound(name: str, text: str | None) -> Bound | None:
    if text is None:
        return None
    word = text.strip().lower()
    if word in (EARLIEST, LATEST):
        return word
    try:
        told = json.loads(text)
    except ValueError:
        told = None
    if not isinstance(told, dict) or not all(isinstance(value, str) for value in told.values()):
        raise OptionRefused(f'{name}: is earliest, latest or {{"topic": "id", …}}, not {text!r}')
    for topic, value in told.items():
        if value not in (EARLIEST, LATEST):
            try:
                id_of(value)
            except ValueError as failure:
                raise OptionRefused(f"{name}: topic {topic!r}: {failure}") from failure
    return dict(told)


def _number(name: str, text: str | None, low: int) -> int | None:
    if text is None:
        return None
    if not re.fullmatch(r"[0-9]{1,19}", text.strip()) or int(text) < low:
        raise OptionRefused(f"{name}: is a number from {low} on, not {text!r}")
    return int(text)


def _moment(name: str, text: str | None) -> int | None:
    """A moment as of now: in ms since 1970."""
    if text is None:
        return None
    found = measures.moment_or_ms(text.strip(), time.time_ns() // 1_000_000)
    if found is None:
        raise OptionRefused(f"{name}: is ms since 1970, a time (2026-11-18T10:00Z) or an age (24h), not {text!r}")
    return found


def _flag(name: str, text: str) -> bool:
    word = text.strip().lower()
    if word not in ("true", "false"):
        raise OptionRefused(f"{name}: is true or false, not {text!r}")
    return word == "true"


def _ranges(text: str) -> tuple[tuple[bytes, Id, Id], ...]:
    words = text.split()
    return tuple(
        (b"" if name == "-" else bytes.fromhex(name), id_of(after), id_of(upto))
        for name, after, upto in zip(words[::3], words[1::3], words[2::3], strict=True)
    )


def _mode(text: str) -> str:
    word = text.strip().upper()
    if word not in (FAIL_FAST, PERMISSIVE):
        raise OptionRefused(f"mode: is {FAIL_FAST} or {PERMISSIVE}, not {text!r}")
    return word


def _pattern(text: str | None) -> str | None:
    if text is not None:
        try:
            re.compile(text)
        except re.error as failure:
            raise OptionRefused(f"subscribePattern: {text!r} is not a regular expression ({failure})") from failure
    return text
