"""A topic's history as Arrow: `arrow`. What it needs (the extra `arrow`) is imported when it is asked for."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from rlite_pubsub import measures
from rlite_pubsub.extras import missing
from rlite_pubsub.measures import Since

if TYPE_CHECKING:
    from rlite_pubsub.pipeline.history import History


def arrow(
    where: str | os.PathLike[str],
    topic: str,
    *,
    since: Since = measures.BEGINNING,
    until: Since = None,
    columns: str | Iterable[str] | None = None,
    **options: object,
) -> History:
    """The entries that a topic has now, wherever they are, as a stream of Arrow record batches.

    `where` is a folder, a URL of a server, or a cold store by itself (`s3://…`). `columns` are some of topic, id, ms,
    seq, timestamp, key, value, headers, and fields with their types: "id, item, price double". `options` are those of
    the Spark source, such as mode="PERMISSIVE". Raises ValueError where an option or a type makes no sense or there is
    no such topic, DataLoss where entries are gone, and ModuleNotFoundError without the extra `arrow`."""
    try:
        from rlite_pubsub.pipeline.history import history
    except ModuleNotFoundError as failure:
        raise ModuleNotFoundError(missing("topics.arrow", "arrow"), name=failure.name) from failure

    return history(where, topic, since=_bound("since", since), until=_bound("until", until), wanted=columns, **options)


def _bound(name: str, said: Since) -> str | None:
    """Return an id or a number of ms; None for no bound. Raises ValueError, TypeError."""
    if said is None:
        return None
    found = measures.start_since(said, time.time_ns() // 1_000_000, name)
    if found in (measures.END, measures.LAST):
        raise ValueError(f"{name}= is a moment, an id or `beginning`, not {said!r}: history is what there is")
    return None if found == measures.BEGINNING else found
