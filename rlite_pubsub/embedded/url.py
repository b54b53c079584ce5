"""`rlite:///abs/path/store?db=0`: where a store is, and how to use it, in one word."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote, urlsplit

from redis.connection import parse_url, to_bool

SCHEME = "rlite"
_ALSO_BOOLEAN = frozenset(("decode_responses", "single_connection_client"))
"""redis-py leaves these as text, so that even `no` would mean yes."""


def options_of(url: str) -> dict[str, Any]:
    """The keywords for a connection: `path`, and what the query says, by the rules of redis-py for unix sockets' URLs.

    Raises ValueError for what is no such URL.
    """
    parts = urlsplit(url)
    if parts.scheme != SCHEME or parts.hostname:
        raise ValueError(f"{url!r} is not the URL of a store: it must be {SCHEME}:///absolute/path, with three slashes")
    if not unquote(parts.path).strip("/"):
        raise ValueError(f"{url!r} names no folder")
    options: dict[str, Any] = dict(parse_url("unix" + url[len(SCHEME) :]))  # type: ignore[no-untyped-call]
    options.pop("connection_class", None)
    for name in _ALSO_BOOLEAN & options.keys():
        options[name] = to_bool(options[name])  # type: ignore[no-untyped-call]
    return options
