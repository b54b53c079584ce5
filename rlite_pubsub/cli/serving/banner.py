"""The lines that a server logs once it is ready: its version, its store, retention and durability, its addresses, and
whether a password is set."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rlite_pubsub.build import state
from rlite_pubsub.server.addresses import http_urls, redis_urls
from rlite_pubsub.storage.errors import StoreError
from rlite_pubsub.version import __version__

if TYPE_CHECKING:
    from rlite_pubsub.engine.settings.settings import Settings
    from rlite_pubsub.server.node import Node

_DURABILITY = {
    "always": "every write is on the disk before it is answered",
    "everysec": "a power cut may take the last second of writes",
    "no": "a power cut may take what the system has not yet written",
}


def banner(node: Node) -> Iterator[str]:
    """Yield a line for each."""
    settings = node.settings
    yield f"rlite-pubsub {__version__}, {state()}, Python {sys.version.partition(' ')[0]}; speaks Redis 7.0.15"
    yield f"Store: {node.store.folder.absolute()}, {_size(node)}"
    yield f"Retention: {'; '.join(_limits(settings))}"
    policy = settings["appendfsync"].decode()
    yield f"Durability: appendfsync {policy} ({_DURABILITY[policy]})"
    yield f"Redis: {', '.join(redis_urls(settings, node.listening))}; {_password(node)}"
    if node.gateway is None:
        yield "Page and HTTP: off (--http-port 8080 turns them on)"
    else:
        yield f"Page and HTTP: {' and '.join(http_urls(settings))}"


def _size(node: Node) -> str:
    try:
        sizes = [environment.account.sizes() for environment in (node.store.data, node.store.live)]
    except StoreError as failure:
        return f"of unknown size ({failure})"
    live, free = sum(each.live for each in sizes), sum(each.free for each in sizes)
    disk = sum(each.disk for each in sizes)
    return f"{_bytes(live)} in use, {_bytes(free)} in free pages, {_bytes(disk)} on the disk"


def _bytes(count: int) -> str:
    size, unit = float(count), "bytes"
    for larger in ("kB", "MB", "GB", "TB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{count} bytes" if unit == "bytes" else f"{size:.1f} {unit}"


def _limits(settings: Settings) -> Iterator[str]:
    retain, memory, quota = settings.text("retain").decode(), settings["maxmemory"], settings["store-quota"]
    yield f"topics and channels as retain says ({retain})" if retain else "topics unlimited, channels not (retain)"
    yield f"keys up to maxmemory {_bytes(memory)}" if memory else "keys without a limit (maxmemory)"
    if quota:
        yield f"at most {_bytes(quota)} on the disk (store-quota)"


def _password(node: Node) -> str:
    users = node.engine.users
    others = sum(1 for user in users.all if user.name != b"default")
    who = f"; {others} more user{'s' if others > 1 else ''} (ACL)" if others else ""
    if users.default.no_password:
        return f"no password is set (requirepass){who}"
    return f"a password is set{who}"
