"""What a task does to its process."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
import redis

from rlite_pubsub.pipeline.catalog import ServerCatalog
from rlite_pubsub.pipeline.options import SourceOptions
from rlite_pubsub.pipeline.reading.partition import partitions_of, read
from rlite_pubsub.pipeline.reading.planning import plan
from rlite_pubsub.pipeline.schema import schema_of
from rlite_pubsub.pipeline.spark import worker


@pytest.fixture
def fresh_worker() -> Iterator[None]:
    """As if no task had been here."""
    worker.settle.cache_clear()
    gc.unfreeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("fresh_worker")
def test_what_is_imported_is_not_looked_at_after_each_task(client: redis.Redis, url: str) -> None:
    client.xadd("t", {"value": "v"})
    (partition,) = partitions_of(plan(ServerCatalog(client), [(b"t", (0, 0), (2**64 - 1, 0))], 1))
    options, schema = SourceOptions.of({"url": url, "subscribe": "t"}), schema_of(SourceOptions())
    assert sum(batch.num_rows for batch in read(options, schema, partition)) == 1
    assert gc.get_freeze_count() > 0


@pytest.mark.usefixtures("fresh_worker")
def test_what_later_tasks_leave_is_collected() -> None:
    worker.settle()
    frozen = gc.get_freeze_count()
    left: list[list[int]] = [[] for _ in range(1000)]
    worker.settle()
    assert gc.get_freeze_count() <= frozen, left
