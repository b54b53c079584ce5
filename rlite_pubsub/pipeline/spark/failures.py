"""Why a job could not be done, in one line: of what Spark tells there are pages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import PySparkException

from rlite_pubsub.pipeline.errors import DataLoss, OptionRefused, RowRefused


class JobFailed(Exception):
    """The text says why."""


@contextmanager
def one_line() -> Iterator[None]:
    """Raise JobFailed, with one line, for what is wrong with the options, the data, or Spark."""
    try:
        yield
    except (OptionRefused, RowRefused, DataLoss) as failure:
        raise JobFailed(str(failure)) from failure
    except Exception as failure:
        if _was_interrupted(failure):  # Spark's client trips over its own feet then
            raise KeyboardInterrupt from None
        if isinstance(failure, PySparkException):
            raise JobFailed(reason(str(failure))) from failure
        raise


def _was_interrupted(failure: BaseException | None) -> bool:
    while failure is not None and not isinstance(failure, KeyboardInterrupt):
        failure = failure.__cause__ or failure.__context__
    return failure is not None


def reason(text: str) -> str:
    """Return the line of Spark's output that gives the reason: the last error of ours, or the first line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    ours = [line for line in lines if line.startswith("rlite_pubsub.")]
    return (ours[-1] if ours else lines[0]) if lines else "Spark gives no reason"
