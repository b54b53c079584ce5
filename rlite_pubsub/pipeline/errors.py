"""What the pipeline refuses, and what it has found missing."""

from __future__ import annotations


class OptionRefused(ValueError):
    """An option is unknown, missing, or has no such value. Names the option, never the value of a secret."""


class RowRefused(ValueError):
    """A row cannot become an entry."""


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
