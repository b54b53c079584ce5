"""Redis pub/sub as SQLite is SQL: a Redis-compatible server and an embedded library over LMDB.

Names are imported when they are first used: `import rlite_pubsub` itself costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rlite_pubsub.embedded.client import Redis as Redis
    from rlite_pubsub.embedded.client import from_url as from_url
    from rlite_pubsub.embedded.errors import CutOff as CutOff
    from rlite_pubsub.embedded.errors import StoreUnavailable as StoreUnavailable
    from rlite_pubsub.embedded.errors import TakenOver as TakenOver
    from rlite_pubsub.embedded.errors import UsedAfterFork as UsedAfterFork
    from rlite_pubsub.queues.queue import Queue as Queue
    from rlite_pubsub.server.background import Server as Server
    from rlite_pubsub.version import __version__ as __version__

_PLACES = {
    "CutOff": "rlite_pubsub.embedded.errors",
    "Queue": "rlite_pubsub.queues.queue",
    "Redis": "rlite_pubsub.embedded.client",
    "Server": "rlite_pubsub.server.background",
    "StoreUnavailable": "rlite_pubsub.embedded.errors",
    "TakenOver": "rlite_pubsub.embedded.errors",
    "UsedAfterFork": "rlite_pubsub.embedded.errors",
    "__version__": "rlite_pubsub.version",
    "from_url": "rlite_pubsub.embedded.client",
}

__all__ = [
    "CutOff",
    "Queue",
    "Redis",
    "Server",
    "StoreUnavailable",
    "TakenOver",
    "UsedAfterFork",
    "__version__",
    "asyncio",
    "from_url",
]


def __getattr__(name: str) -> Any:
    import importlib

    if name == "asyncio":
        return importlib.import_module("rlite_pubsub.asyncio")
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_PLACES[name]), name)
    globals()[name] = value
    return value
