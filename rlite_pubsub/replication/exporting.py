"""All keys of a store's folder as an RDB file, whether or not others use the store."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

from rlite_pubsub.embedded.host import Host
from rlite_pubsub.replication.dumping import Dumped, dump
from rlite_pubsub.storage.commons.replica_stream import Stream


def export_from(
    folder: str,
    write: Callable[[bytes], object],
    *,
    only_functions: bool = False,
    for_replica: Callable[[Stream], None] | None = None,
) -> Dumped:
    """Write the file, or one of the functions alone; `for_replica` as for `dump`. Raises StoreUnavailable, StoreError,
    and what the functions do."""
    with closing(Host.open(folder)) as host:
        session = host.begin_session()
        written: list[Dumped] = []
        try:
            engine = session.engine
            host.turn(
                lambda: written.append(dump(engine, write, only_functions=only_functions, for_replica=for_replica))
            )
        finally:
            host.end_session(session)
        return written[0]
