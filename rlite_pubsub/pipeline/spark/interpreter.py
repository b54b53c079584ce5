"""The Python that runs Spark's Python code: it must have this package.

Spark asks the environment of the process that starts its JVM, once: PYSPARK_PYTHON, and `python3` without it, which
need not be the Python of the program. A session of ours (session.py) sets it; in one of the program's own that is left
to the program.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rlite_pubsub.pipeline.errors import SourceMissing

_NOT_FOUND = "[DATA_SOURCE_NOT_FOUND]"


def advice() -> str:
    """Return, in one line, what to do if Spark's Python does not find us."""
    found = os.environ.get("PYSPARK_PYTHON", "python3")
    return (
        f"Spark's Python ({found}) has no rlite-pubsub, or did not start. Before the session is made say "
        f'os.environ["PYSPARK_PYTHON"] = {sys.executable!r}, or have rlite_pubsub.pipeline.session make it'
    )


@contextmanager
def source_is_there() -> Iterator[None]:
    """Check that Spark finds the source. Raises SourceMissing, which says in one line what to do."""
    try:
        yield
    except Exception as failure:  # Spark's, or py4j's own: that depends on the version
        if _NOT_FOUND in str(failure):
            raise SourceMissing(advice()) from failure
        raise
