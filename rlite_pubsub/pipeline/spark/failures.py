"""Why a job could not be done, in one sentence, and with an exit code that a scheduler can act on.

Of what Spark tells there are pages, and it can only be asked while its session is there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

from pyspark.errors import AnalysisException, ParseException, PySparkException
from redis.exceptions import RedisError

from rlite_pubsub.cold.errors import ColdError
from rlite_pubsub.pipeline.errors import DataLoss, OptionRefused, RowRefused, ValueRefused


class Failed(IntEnum):
    """Why, as an exit code. 0 is done, 1 is done and something wrong was found, 130 is Ctrl-C."""

    OPTIONS = 2
    """An option, an expression, or a name makes no sense: to try again does not help."""
    DATA = 3
    """A row or a field's text is not what it has to be."""
    LOSS = 4
    """Entries that were to be read are gone."""
    DAMAGE = 5
    """A file of the cold store is damaged, missing, or not to be reached."""
    SERVER = 6
    """The server is not there, or refuses."""
    SPARK = 7
    """Spark, or what it runs on."""


_KINDS: dict[Failed, tuple[type[Exception], ...]] = {
    Failed.OPTIONS: (OptionRefused, AnalysisException, ParseException),
    Failed.DATA: (RowRefused, ValueRefused),
    Failed.LOSS: (DataLoss,),
    Failed.DAMAGE: (ColdError,),
    Failed.SERVER: (RedisError,),
    Failed.SPARK: (PySparkException,),
}
_OURS = re.compile(r"^rlite_pubsub[.]\S*[.](\w+): (.*)")
_CLASS = re.compile(r"^\[[A-Z0-9_.]+\] ")
_STATE = re.compile(r"[.;]? *SQLSTATE: .*")


class JobFailed(Exception):
    """The text says why."""

    def __init__(self, text: str, kind: Failed) -> None:
        super().__init__(text)
        self.kind = kind


@contextmanager
def one_line() -> Iterator[None]:
    """Raise JobFailed, with one sentence, for what is wrong with the options, the data, the server, or Spark. Called
    while the session is there."""
    try:
        yield
    except Exception as failure:
        if _was_interrupted(failure):  # Spark's client trips over its own feet then
            raise KeyboardInterrupt from None
        found = next((kind for kind, types in _KINDS.items() if isinstance(failure, types)), None)
        if found is None:
            raise
        if not isinstance(failure, PySparkException):
            raise JobFailed(str(failure), found) from failure
        told, ours = reason(str(failure))
        raise JobFailed(told, found if ours is None else ours) from failure


@contextmanager
def naming(option: str, expression: str) -> Iterator[None]:
    """Raise OptionRefused, which names the expression, where Spark does not understand it."""
    try:
        yield
    except (AnalysisException, ParseException) as failure:
        raise OptionRefused(f"{option}: {expression!r}: {reason(str(failure))[0]}") from failure


def _was_interrupted(failure: BaseException | None) -> bool:
    while failure is not None and not isinstance(failure, KeyboardInterrupt):
        failure = failure.__cause__ or failure.__context__
    return failure is not None


def reason(text: str) -> tuple[str, Failed | None]:
    """Return the sentence of Spark's output that gives the reason, and its kind if it is ours: the last error of ours,
    or the first line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    ours = [found for line in lines if (found := _OURS.match(line))]
    if ours:
        name = ours[-1][1]
        return ours[-1][2], next((kind for kind in _KINDS if name in _names(kind)), Failed.DATA)
    return (_STATE.sub("", _CLASS.sub("", lines[0])) if lines else "Spark gives no reason"), None


def _names(kind: Failed) -> set[str]:
    waiting, found = list(_KINDS[kind]), set[str]()
    while waiting:
        one = waiting.pop()
        found.add(one.__name__)
        waiting += one.__subclasses__()
    return found
