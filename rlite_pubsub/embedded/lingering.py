"""Stores that stay open for a moment after their last use, for functions that are one call: opening and closing a store
takes a thousand times as long as an append to it.

A store that nobody has used for IDLE_S is closed by a thread, which ends with the last of them; the interpreter's end
closes all, as any open store. A forked child has none. Who opens the store with other options meanwhile is not refused
because of it. A folder that was removed, or made anew, is opened anew at its next use.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rlite_pubsub.embedded.client import Redis
from rlite_pubsub.embedded.host import Host
from rlite_pubsub.embedded.options import SCHEME, StoreOptions, options_of

IDLE_S = 1.0


class _Kept:
    """An open store, and a client of it."""

    def __init__(self, path: str, options: dict[str, Any]) -> None:
        self.host = Host.open(path, StoreOptions.taken_from(dict(options)))
        self.options = options
        self.client = Redis(path, **options)
        self.users = 0
        self.until = 0.0

    def is_at(self, path: str) -> bool:
        """Return whether that is the store that would be opened at this path."""
        return self.host.is_open and self.host.store.is_in_place() and os.path.samefile(self.host.store.folder, path)

    def close(self) -> None:
        self.client.close()
        self.host.close()


_kept: dict[str, _Kept] = {}
_changed = threading.Condition()
_thread: threading.Thread | None = None


@contextmanager
def kept_open(where: Any, options: dict[str, Any]) -> Iterator[Redis | None]:
    """Have the store of a folder, or of an `rlite://` URL, open meanwhile and for a moment behind that; a client with
    these options, which the caller does not close. None for anything else than a folder. Raises StoreUnavailable."""
    found = _path_of(where, options)
    if found is None:
        yield None
        return
    path, options = found
    with _changed:
        kept = _kept.get(path)
        if kept is None or kept.options != options or not kept.is_at(path):
            kept = _begin(path, options)
        kept.users += 1
    try:
        yield kept.client
    finally:
        with _changed:
            kept.users -= 1
            kept.until = time.monotonic() + IDLE_S
            if not kept.users and _kept.get(path) is not kept:
                kept.close()


def _path_of(where: Any, options: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
    if not isinstance(where, str | os.PathLike):
        return None
    place = os.fspath(where)
    if "://" not in place:
        return os.path.abspath(place), options
    if not place.startswith(f"{SCHEME}://"):
        return None
    options = {**options, **options_of(place)}
    return os.path.abspath(options.pop("path")), options


def _begin(path: str, options: dict[str, Any]) -> _Kept:
    global _thread
    before = _kept.get(path)
    if before is not None and before.host.is_open:
        before.host.look(surely=True)  # if its folder is gone, so are its sessions
    _let_go(path)
    kept = _kept[path] = _Kept(path, options)
    kept.host.spared_by = _let_go_of
    if _thread is None:
        _thread = threading.Thread(target=_close_idle, name="rlite-pubsub idle stores", daemon=True)
        _thread.start()
    else:
        _changed.notify()
    return kept


def _let_go(path: str) -> None:
    """Forget it; whoever uses it still closes it."""
    kept = _kept.pop(path, None)
    if kept is not None and not kept.users:
        kept.close()


def _let_go_of(host: Host) -> None:
    """Somebody wants to open the store with other options."""
    with _changed:
        for path in [path for path, kept in _kept.items() if kept.host is host]:
            _let_go(path)


def _close_idle() -> None:
    global _thread
    while True:
        with _changed:
            now = time.monotonic()
            for path in [path for path, kept in _kept.items() if not kept.users and kept.until <= now]:
                _let_go(path)
            if not _kept:
                _thread = None
                return
            _changed.wait(max(min(kept.until for kept in _kept.values()) - now, IDLE_S / 10))


def _forget_in_child() -> None:
    global _changed, _thread
    _kept.clear()
    _changed = threading.Condition()
    _thread = None


os.register_at_fork(after_in_child=_forget_in_child)
