"""What `rlite-pubsub tail` shows: entries of topics, messages of channels."""

from __future__ import annotations

from dataclasses import dataclass

from rlite_pubsub.cli_text import escaped, for_json, text
from rlite_pubsub.topics.entry import Entry


@dataclass(frozen=True, slots=True)
class EntryItem:
    """`ID field=value field=value`"""

    entry: Entry

    def line(self) -> str:
        return " ".join([self.entry.id, *[f"{escaped(field)}={escaped(value)}" for field, value in self.entry.pairs]])

    def raw(self) -> bytes:
        return b"\n".join([value for _, value in self.entry.pairs])

    def about(self) -> dict[str, object]:
        entry = self.entry
        return {
            "topic": entry.topic,
            "id": entry.id,
            "time": entry.time.isoformat(timespec="milliseconds"),
            "fields": {text(field): for_json(value) for field, value in entry.pairs},
        }


@dataclass(frozen=True, slots=True)
class Message:
    """The payload, of a pattern's messages behind the channel."""

    channel: bytes
    pattern: bytes | None
    data: bytes

    def line(self) -> str:
        return escaped(self.data) if self.pattern is None else f"{escaped(self.channel)} {escaped(self.data)}"

    def raw(self) -> bytes:
        return self.data

    def about(self) -> dict[str, object]:
        pattern = {} if self.pattern is None else {"pattern": text(self.pattern)}
        return {"channel": text(self.channel), **pattern, "data": for_json(self.data)}
