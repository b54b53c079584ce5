"""All keys of a store's folder as an RDB file, whether or not others use the store."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

from rlite_pubsub.embedded.host import Host
from rlite_pubsub.replication.dumping import Dumped, dump


def export_from(folder: str, write: Callable[[bytes], object], *, only_functions: bool = False) -> Dumped:
    """Write the file, or one of the functions alone. Raises StoreUnavailable, StoreError, and what `write` does."""
    with closing(Host.open(folder)) as host:
        session = host.begin_session()
        written: list[Dumped] = []
        try:
            host.turn(lambda: written.append(dump(session.engine, write, only_functions=only_functions)))
        finally:
            host.end_session(session)
        return written[0]
