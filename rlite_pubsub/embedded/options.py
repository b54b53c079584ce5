"""The options of a store's first opener in a process: `store_quota` and `appendfsync`, a server's directives.

They hold for the process, as long as it has the store open. Later openers of the folder must give the same options, or
none.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from rlite_pubsub.storage.environment import SMALLEST_QUOTA_BYTES, Durability
from rlite_pubsub.storage.store import UNLIMITED_QUOTA_BYTES, Store

# -- `rlite:///abs/path/store?db=0`, `rlite:///./store`: where a store is, and how to use it, in one word.

SCHEME = "rlite"
_ALSO_BOOLEAN = frozenset(("decode_responses", "single_connection_client"))
"""redis-py leaves these as text, so that even `no` would mean yes."""


def options_of(url: str) -> dict[str, Any]:
    """The keywords for a connection: `path`, and what the query says, by the rules of redis-py for unix sockets' URLs.

    A path that begins with a dot is relative to the working directory, as it is now. Raises ValueError for what is no
    such URL.
    """
    from urllib.parse import unquote, urlsplit  # late: most name a folder, and wait for what is imported

    from redis.connection import parse_url, to_bool

    parts = urlsplit(url)
    if parts.scheme != SCHEME or parts.hostname:
        raise ValueError(f"{url!r} is not the URL of a store: it must be {SCHEME}:///absolute/path, with three slashes")
    if not unquote(parts.path).strip("/"):
        raise ValueError(f"{url!r} names no folder")
    options: dict[str, Any] = dict(parse_url("unix" + url[len(SCHEME) :]))  # type: ignore[no-untyped-call]
    options.pop("connection_class", None)
    if options["path"].split("/")[1] in (".", ".."):
        options["path"] = os.path.abspath(options["path"][1:])
    for name in _ALSO_BOOLEAN & options.keys():
        options[name] = to_bool(options[name])  # type: ignore[no-untyped-call]
    return options


_DIRECTIVES = {"store_quota": "store-quota", "appendfsync": "appendfsync"}


class StoreOptions(NamedTuple):
    """The options; None: unchanged, or the default."""

    quota_bytes: int | None = None
    durability: Durability | None = None

    @classmethod
    def taken_from(cls, keywords: dict[str, Any]) -> StoreOptions:
        """Remove them from the keywords of a client. Raises ValueError for what they cannot be."""
        given = {name: keywords.pop(name) for name in _DIRECTIVES if keywords.get(name) is not None}
        for name in _DIRECTIVES:
            keywords.pop(name, None)
        if not given:
            return cls()
        from rlite_pubsub.engine.settings.settings import SettingError, Settings

        settings = Settings()
        for name, value in given.items():
            text = value if isinstance(value, bytes) else str(value).encode()
            try:
                settings.set(_DIRECTIVES[name], [text])
            except SettingError as refusal:
                raise ValueError(f"{name}={value!r}: {refusal}") from refusal
        quota_bytes = (settings["store-quota"] or UNLIMITED_QUOTA_BYTES) if "store_quota" in given else None
        return cls(quota_bytes, settings["appendfsync"].decode() if "appendfsync" in given else None)

    def open(self, folder: Any) -> Store:
        """Open the store, with these options if nobody in this process has it open yet. Raises StoreError."""
        return Store.open(
            folder, quota_bytes=self.quota_bytes or UNLIMITED_QUOTA_BYTES, durability=self.durability or "everysec"
        )

    def contradiction(self, store: Store) -> str:
        """Return how the options contradict an open store; empty if they do not."""
        data = store.data
        if self.durability is not None and data.durability != self.durability:
            return f"with appendfsync {data.durability}, not {self.durability}"
        if self.quota_bytes is not None and data.quota_bytes != max(self.quota_bytes, SMALLEST_QUOTA_BYTES):
            return f"with a quota of {data.quota_bytes} bytes, not {self.quota_bytes}"
        return ""
