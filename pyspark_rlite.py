"""Spark looks for modules whose names begin with `pyspark_`, and so finds `spark.read.format("rlite")` by itself."""

from __future__ import annotations

from rlite_pubsub.pipeline.source import RliteDataSource as DefaultSource

__all__ = ["DefaultSource"]
