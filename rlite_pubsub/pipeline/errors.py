"""The errors of the pipeline: refused options, and missing data."""

from __future__ import annotations


class OptionRefused(ValueError):
    """An option is unknown, missing, or has no such value. Names the option, never the value of a secret."""


class TopicMissing(OptionRefused):
    """A topic that was named does not exist."""

    def __init__(self, topic: str) -> None:
        super().__init__(f"there is no topic {topic!r}; allowMissingTopic=true reads it as an empty one")
        self.topic = topic

    def __reduce__(self) -> tuple[type[TopicMissing], tuple[str]]:
        return TopicMissing, (self.topic,)


class SourceMissing(RuntimeError):
    """Spark does not find the source. The text says what to do."""


class RowRefused(ValueError):
    """A row cannot become an entry."""


class ValueRefused(ValueError):
    """A field's text is not a value of its column's type. Names the entry."""

    def __init__(self, topic: str, entry_id: str, column: str, value: bytes, type: str) -> None:
        super().__init__(
            f"topic {topic!r}: entry {entry_id}: column {column!r}: {value.decode(errors='backslashreplace')!r} is no "
            f"{type}; mode PERMISSIVE makes it null"
        )
        self.told = topic, entry_id, column, value, type

    def __reduce__(self) -> tuple[type[ValueRefused], tuple[str, str, str, bytes, str]]:
        return ValueRefused, self.told


class DataLoss(RuntimeError):
    """Entries that were to be read are gone. Names the topic and the ids."""

    def __init__(self, topic: str, what: str) -> None:
        super().__init__(
            f"topic {topic!r}: {what}. What is gone was not read. "
            "To go on with what is there, set failOnDataLoss to false."
        )
        self.topic, self.what = topic, what

    def __reduce__(self) -> tuple[type[DataLoss], tuple[str, str]]:
        return DataLoss, (self.topic, self.what)
