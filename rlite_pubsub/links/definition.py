"""One link as it was asked for."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from rlite_pubsub.links.held import Filter
from rlite_pubsub.links.target import Target


@dataclass(frozen=True)
class Definition:
    """The words of LINK CREATE. Names and patterns are text here, one character for each byte."""

    name: str
    url: str
    channels: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    direction: str = "both"
    prefix: str = ""
    since: str = "0"
    is_paused: bool = False

    @classmethod
    def of(cls, record: bytes) -> Definition:
        """Raises ValueError."""
        words: dict[str, Any] = json.loads(record)
        words["channels"] = tuple(words.get("channels", ()))
        words["topics"] = tuple(words.get("topics", ()))
        known = {name: words[name] for name in cls.__dataclass_fields__ if name in words}
        return cls(**known)

    def record(self) -> bytes:
        """As it is kept."""
        return json.dumps(asdict(self)).encode()

    @property
    def target(self) -> Target:
        """Raises BadTarget."""
        return Target(self.url)

    @property
    def wanted_channels(self) -> Filter:
        return Filter(pattern.encode("latin-1") for pattern in self.channels)

    @property
    def wanted_topics(self) -> Filter:
        return Filter(pattern.encode("latin-1") for pattern in self.topics)
