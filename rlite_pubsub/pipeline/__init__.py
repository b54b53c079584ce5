"""Topics and Spark: the data source `rlite`, `read_topic`, and the jobs. All that imports pyspark is here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rlite_pubsub.pipeline.topic_frame import read_topic as read_topic

__all__ = ["read_topic"]


def __getattr__(name: str) -> Any:
    """Imported when it is first used: each of Spark's workers imports this package."""
    if name != "read_topic":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from rlite_pubsub.pipeline.topic_frame import read_topic

    return read_topic
