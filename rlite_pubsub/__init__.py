"""Redis pub/sub as SQLite is SQL: a Redis-compatible server and an embedded library over LMDB.

Names are imported when they are first used: `import rlite_pubsub` itself costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rlite_pubsub.server.background import Server as Server

__version__ = "0.1.0"

_PLACES = {"Server": "rlite_pubsub.server.background"}

__all__ = ["Server", "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(_PLACES[name]), name)
    globals()[name] = value
    return value
