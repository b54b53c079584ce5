"""The sink under kill -9 of driver, executor and server: every row once, in order."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import redis
from patience import until
from server_process import Serve, ServerProcess

from tests.pipeline.spark_process import SparkProcess

DRIVER = Path(__file__).parent / "driver.py"
ROWS = 30_000
PER_BATCH = 3_000
STARTS = 20
Start = Callable[[], SparkProcess]


@pytest.fixture
def start(url: str, tmp_path: Path) -> Iterator[Start]:
    """Start the driver; all starts share one checkpoint."""
    drivers: list[SparkProcess] = []

    def begin() -> SparkProcess:
        folder = tmp_path / f"spark{len(drivers)}"
        folder.mkdir()
        words = [url, "in", "out", str(tmp_path / "checkpoint"), str(PER_BATCH), str(folder)]
        drivers.append(SparkProcess([sys.executable, str(DRIVER), *words]))
        return drivers[-1]

    yield begin
    for driver in drivers:
        driver.clean_up()


def fill(client: redis.Redis) -> None:
    for low in range(0, ROWS, 10_000):
        pipeline = client.pipeline(transaction=False)
        for number in range(low, low + 10_000):
            pipeline.xadd("in", {"value": b"%d" % number})
        pipeline.execute()


def copied(client: redis.Redis) -> int:
    with suppress(redis.RedisError):
        return int(client.xlen("out"))
    return -1


def test_every_row_is_there_once_and_in_order_whoever_was_killed(
    serve: Serve, server: ServerProcess, client: redis.Redis, url: str, start: Start
) -> None:
    fill(client)
    driver = start()

    def reaches(rows: int) -> None:
        until(lambda: copied(client) >= rows or driver.is_over(), f"{rows} rows")

    reaches(PER_BATCH)
    driver.kill()  # in the middle of a batch, wherever it is
    after_driver = copied(client)
    driver = start()
    reaches(after_driver + PER_BATCH)
    workers = driver.python_workers()
    for worker in workers:
        with suppress(ProcessLookupError):
            os.kill(worker, signal.SIGKILL)
    assert workers or driver.is_over()
    reaches(copied(client) + PER_BATCH)
    server.end(signal.SIGKILL)
    serve(port=server.port)
    until(lambda: copied(client) >= 0, "the server")
    for _ in range(STARTS):
        until(driver.is_over, "the end of the driver")
        if driver.process.returncode == 0:
            break
        driver = start()
    assert driver.process.returncode == 0, driver.output()
    found = [int(value) for value in _values(client)]
    assert len(found) == ROWS
    assert found == list(range(ROWS))


def _values(client: redis.Redis) -> Iterator[bytes]:
    after = b"-"
    while entries := client.xrange("out", after, count=10_000):
        for entry_id, fields in entries:  # type: ignore[union-attr]
            yield fields[b"value"]
            after = b"(" + entry_id
